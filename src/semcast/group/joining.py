"""`join`: how a program becomes a member of a group."""

from pathlib import Path
from typing import Any

from semcast.core.handover import StateHooks
from semcast.group.errors import ConfigurationError
from semcast.group.families import FAMILIES
from semcast.group.group import Group
from semcast.group.settings import check_group, resolve


def join(
    group: str, *, config: Path | None = None, state: StateHooks | None = None, **settings: Any
) -> Group:
    """Become a member of a group: `async with semcast.join("prices") as group: ...`.

    Settings are those of `GroupSettings`; what is not given comes from `SEMCAST_*`, then from `semcast.toml`
    in the working folder (or in `config`), then from defaults. With nothing set, the members on one host find
    each other. With `state` who joins is given the state of the application (stack vsync).
    """
    check_group(group)
    found = resolve(settings, config)
    if FAMILIES.of(found.stack).clients:
        raise ConfigurationError(f"stack {found.stack}: programs use it by semcast.domain, not by join")
    return Group(group, found, state)
