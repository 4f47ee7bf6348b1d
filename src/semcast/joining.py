"""`join`: how a program becomes a member of a group, by itself or in a domain with others."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from semcast.core.handover import StateHooks
from semcast.group.errors import ConfigurationError
from semcast.group.group import Group
from semcast.group.joining import join as join_alone

if TYPE_CHECKING:
    from semcast.domains.sharing import DomainJoin


@overload
def join(
    group: str,
    *,
    domain: None = None,
    config: Path | None = None,
    state: StateHooks | None = None,
    **settings: Any,
) -> Group: ...


@overload
def join(group: str, *, domain: str, config: Path | None = None, **settings: Any) -> "DomainJoin": ...


def join(
    group: str,
    *,
    domain: str | None = None,
    config: Path | None = None,
    state: StateHooks | None = None,
    **settings: Any,
) -> "Group | DomainJoin":
    """Become a member of a group: `async with semcast.join("prices") as group: ...`.

    Args:
        group: name of the group, the same at all members.
        domain: name of a domain; the group then shares one order with all groups of that domain, and joining
            is cheap. Settings are those of the domain (`semcast.domain`); `flavour` is that of the group.
        config: folder of `semcast.toml`.
        state: hooks that export and restore the state of the program, for joiners (stack vsync).
        settings: see `GroupSettings`. A setting that is not given comes from `SEMCAST_*`, then from
            `semcast.toml` in the working folder (or in `config`), then from the default. Without any
            settings, members on one host find each other.
    """
    if domain is None:
        return join_alone(group, config=config, state=state, **settings)
    if state is not None:
        raise ConfigurationError("state= is not available for groups of a domain")
    from semcast.domains.sharing import DomainJoin  # noqa: PLC0415 (who needs no domain need not load it)

    flavour = settings.pop("flavour", "evs")
    given = settings if config is None else {**settings, "config": config}
    return DomainJoin(group, domain, flavour, given)
