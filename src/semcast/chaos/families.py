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


class Clients(msgspec.Struct, frozen=True, kw_only=True):
    """Programs that use members from processes of their own, and come and go as they do."""

    module: str
    """What a client's process runs."""
    programs: Mapping[str, bool]
    """What it can do, and whether it sees views and messages then."""
    least: int
    """There are as many clients as members, and at least so many."""


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A stack whose members come and go."""

    name: str
    stack: str = ""
    """Of its groups, where that has another name."""
    settings: Callable[[Sequence[str]], Mapping[str, Any]]
    """What a member of a group of these joins with, besides what is set alike for all stacks."""
    module: str = "semcast.chaos.member"
    """What a member's process runs."""
    programs: Mapping[str, bool] = GROUP_PROGRAMS
    """What it can do, and whether it sees views and messages then."""
    by_program: Callable[[str], Mapping[str, Any]] = _alike
    """What a member that runs a program joins with besides."""
    clients: Clients | None = None
    """Of its members, where these serve programs in other processes."""
    silent: tuple[str, ...] = ()
    """Programs that never send."""
    unlisted: tuple[str, ...] = ()
    """Programs that need not be in views."""
    agreed_views: bool = True
    """Whether all members come to see the same view; else each has its own, of the same members."""
    late: bool = True
    """Whether members may start in the middle; else all have to be there at the beginning."""
    early: tuple[str, ...] = ()
    """Programs that have to be there at the beginning all the same."""
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

    @property
    def group_stack(self) -> str:
        """What its members join with."""
        return self.stack or self.name

    def client_names(self, members: Sequence[str]) -> tuple[str, ...]:
        """Of the clients of these members."""
        count = 0 if self.clients is None else max(self.clients.least, len(members))
        return tuple(f"client{number}" for number in range(1, count + 1))


FAMILIES: Registry[Family] = Registry("stack")


def _ring(_names: Sequence[str]) -> Mapping[str, Any]:
    return {}


def _vsync(names: Sequence[str]) -> Mapping[str, Any]:
    return {"minimum": len(names) // 2 + 1}


def _replication(names: Sequence[str]) -> Mapping[str, Any]:
    return {"founders": tuple(names)}


_GOSSIP_PROGRAMS = MappingProxyType({"logs": False, **GROUP_PROGRAMS, "deals": True})


def _gossip(names: Sequence[str]) -> Mapping[str, Any]:
    """Where there are several loggers, all know them by name."""
    loggers = tuple(names[:: len(_GOSSIP_PROGRAMS)])
    return {"loggers": loggers} if len(loggers) > 1 else {}


def _gossip_program(program: str) -> Mapping[str, Any]:
    """Loggers have a disk, and the others wait for them. Who takes nothing is judged as if it took all.

    Who left and comes back is given the whole log, if it asks for that. Programs that read slowly, because
    they sleep or wait for the answers they send, do not ask for it: they would read for longer than a group
    takes to heal before they come to what is sent now.
    """
    if program == "logs":
        return {"logger": True, "receive": False}
    start = "new" if program in ("answers", "bursts") else "all"
    given = {"data": "", "durable": True, "start": start, "receive": _GOSSIP_PROGRAMS[program]}
    return {**given, "explicit": True, "stays": True} if program == "deals" else given


FAMILIES.register(Family(name="ring", settings=_ring))
FAMILIES.register(
    Family(
        name="gossip",
        settings=_gossip,
        programs=_GOSSIP_PROGRAMS,
        by_program=_gossip_program,
        silent=("logs",),
        early=("logs",),  # a new log begins once all others have said what is past
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
FAMILIES.register(
    Family(
        name="daemon",
        stack="lightweight",
        settings=_ring,
        module="semcast.chaos.daemon",
        programs={"serves": False},
        clients=Clients(
            module="semcast.chaos.client",
            programs={"roams": True, "answers": True, "publishes": False, "sleeps": False},
            least=6,
        ),
        silent=("serves", "sleeps"),
        unlisted=("serves", "publishes", "sleeps"),
        rests=True,
        pause=5.0,
    )
)
