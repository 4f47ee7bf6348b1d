"""Vector times of groups as others are told of them, and what is yet to be said (1991, 6.1 and 6.3)."""

from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple, Protocol

import msgspec

from semcast.protocols.isis.client_frames import Fields
from semcast.protocols.isis.settings import MAX_GROUP
from semcast.protocols.semantic.frames import Seq
from semcast.protocols.vsync.orders import Stamp

_MOST = 256
"""Groups in one head that are read, at most."""
Counts = dict[int, int]
"""By rank, the last message of a member; ranks that are left out have none in this view."""


class Foreign(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The vector time of another group, or those fields of it that are new."""

    group: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_GROUP)]
    view: Seq
    counts: Fields


class Head(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a message says besides its payload."""

    changed: Stamp
    """Of the vector time of its own group, the fields that changed."""
    others: Annotated[list[Foreign], msgspec.Meta(max_length=_MOST)] = []
    """Of other groups."""
    number: Seq = 0
    """Its number among all that its sender asked for in the domain, where that is not the next one."""
    epoch: Seq = 0
    """Of its sender, where it has risen since it was last said in this view."""
    lamport: Seq = 0
    """The highest number of an ordered message that its sender knows of, where it has not said so before."""


class Ending(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What members say when a view ends, and what is agreed on: the largest of it."""

    epoch: Seq = 0
    """Nothing below it is sent in the next view."""
    said: Annotated[list[Foreign], msgspec.Meta(max_length=_MOST)] = []
    """What was said in the group of others, where those who join have to wait for it."""
    number: Seq = 0
    """The highest of an ordered message, in this group or elsewhere."""
    unnumbered: Seq = 0
    """Ordered messages without a number, at most: those get the next ones."""


class Audience(Protocol):
    """Who is told in one group of others: its members, or the contact of a client."""

    name: str
    told: "Times"


class Time(NamedTuple):
    """How far somebody has come in a group."""

    view: int
    counts: Counts

    def covers(self, view: int, counts: Mapping[int, int]) -> bool:
        """Whether whoever is here has come as far as that."""
        if view != self.view:
            return view < self.view
        return all(self.counts.get(rank, 0) >= count for rank, count in counts.items())


Times = dict[str, Time]
"""By group."""


def merge(known: Times, group: str, view: int, counts: Iterable[tuple[int, int]]) -> None:
    """Somebody has come as far as this.

    >>> times = {"g": Time(2, {0: 5})}
    >>> merge(times, "g", 2, [(0, 3), (1, 4)]); merge(times, "g", 1, [(0, 9)]); times["g"].counts
    {0: 5, 1: 4}
    """
    time = known.get(group)
    if time is None or view > time.view:
        known[group] = Time(view, dict(counts))
    elif view == time.view:
        for rank, count in counts:
            if count > time.counts.get(rank, 0):
                time.counts[rank] = count


def news(said: Times, group: str, time: Time) -> Foreign | None:
    """What of a time is yet to be said, where others were told those.

    >>> news({"g": Time(2, {0: 5, 1: 1})}, "g", Time(2, {0: 5, 1: 3}))
    Foreign(group='g', view=2, counts=[(1, 3)])
    """
    known = said.get(group)
    if known is None or time.view > known.view:
        return Foreign(group, time.view, sorted(time.counts.items()))
    if time.view < known.view:
        return None
    changed = [
        (rank, count) for rank, count in sorted(time.counts.items()) if count > known.counts.get(rank, 0)
    ]
    return Foreign(group, time.view, changed) if changed else None
