"""What chaos must know of a stack: how its members join, so that they may be restarted and come late."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from semcast.core.registry import Registry

GROUP_PROGRAMS = MappingProxyType({"talks": True, "answers": True, "publishes": False, "bursts": True})
"""The programs of `chaos.member`, and whether they read."""


def _alike(_program: str) -> Mapping[str, Any]:
    return {}


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A stack whose members come and go."""

    name: str
    settings: Callable[[Sequence[str]], Mapping[str, Any]]
    """What a member of a group of these joins with, besides what is set alike for all stacks."""
    module: str = "semcast.chaos.member"
    """What a member's process runs."""
    programs: Mapping[str, bool] = GROUP_PROGRAMS
    """What it can do, and whether it sees views and messages then."""
    by_program: Callable[[str], Mapping[str, Any]] = _alike
    """What a member that runs a program joins with besides."""
    silent: tuple[str, ...] = ()
    """Programs that never send."""
    agreed_views: bool = True
    """Whether all members come to see the same view; else each has its own, of the same members."""
    late: bool = True
    """Whether members may start in the middle; else all have to be there at the beginning."""
    everybody: bool = False
    """Whether all may be killed at once, and nothing that was answered is lost."""
    stalls: bool = False
    """Whether its members wait for disks, which can be made to stand still."""
    states: bool = False
    """Whether all members have the same state in the end."""
    rests: bool = False
    """Whether nothing is under way any more once all are quiet and have each other's marks."""
    pause: float = 0.0
    """Seconds after that until what is said only now and then was said again."""


FAMILIES: Registry[Family] = Registry("stack")


def _ring(_names: Sequence[str]) -> Mapping[str, Any]:
    return {}


def _vsync(names: Sequence[str]) -> Mapping[str, Any]:
    return {"minimum": len(names) // 2 + 1}


def _replication(names: Sequence[str]) -> Mapping[str, Any]:
    return {"founders": tuple(names)}


def _gossip(_names: Sequence[str]) -> Mapping[str, Any]:
    return {}


def _gossip_program(program: str) -> Mapping[str, Any]:
    """Loggers have a disk, and the others wait for them. Who takes nothing is judged as if it took all."""
    if program == "logs":
        return {"logger": True, "receive": False}
    return {"data": "", "durable": True, "start": "all", "receive": GROUP_PROGRAMS[program]}


FAMILIES.register(Family(name="ring", settings=_ring))
FAMILIES.register(
    Family(
        name="gossip",
        settings=_gossip,
        programs={"logs": False, **GROUP_PROGRAMS},
        by_program=_gossip_program,
        silent=("logs",),
        agreed_views=False,
        rests=True,
        pause=5.0,
    )
)
FAMILIES.register(Family(name="vsync", settings=_vsync, states=True))
FAMILIES.register(
    Family(
        name="replication",
        settings=_replication,
        module="semcast.chaos.server",
        late=False,
        everybody=True,
        stalls=True,
        programs={"strict": True, "queued": True, "mixed": True, "asks": True},
        states=True,
        rests=True,
    )
)
