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
        group: its name, the same at all members.
        domain: be in the group as a light one of this domain, which all groups of the program share that name
            it. There is one order over all of them, and joining costs nobody else anything. Settings are
            those of the domain (`semcast.domain`); `flavour` is that of the group.
        config: folder of `semcast.toml`.
        state: hooks by which who joins is given the state of the application (stack vsync).
        settings: those of `GroupSettings`; what is not given comes from `SEMCAST_*`, then from
            `semcast.toml` in the working folder (or in `config`), then from defaults. With nothing set, the
            members on one host find each other.
    """
    if domain is None:
        return join_alone(group, config=config, state=state, **settings)
    if state is not None:
        raise ConfigurationError("state is for groups by themselves, and this one is in a domain")
    from semcast.domains.sharing import DomainJoin  # noqa: PLC0415 (who needs no domain need not load it)

    flavour = settings.pop("flavour", "evs")
    given = settings if config is None else {**settings, "config": config}
    return DomainJoin(group, domain, flavour, given)
