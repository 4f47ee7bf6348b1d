"""The frames of a causal domain: those of virtual synchrony, each with its group, and a few more.

A group goes by a number that follows from its name: nobody has to agree on it, and it is of one size.
"""

import hashlib
from typing import Annotated, get_args

import msgspec

from semcast.core.ids import MAX_NUMBER
from semcast.core.outbox import Frame
from semcast.protocols.isis.client_frames import ClientFrame, Fields
from semcast.protocols.pieces import Piece
from semcast.protocols.semantic.frames import Rank, Seq, Seqs
from semcast.protocols.vsync.frames import Members, WholeFrame
from semcast.wire.limits import MAX_MEMBERS

Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
"""Of a group."""

MAX_PARTS = 1 << 14
"""Of one direct message."""
MAX_HEAD = 16 << 10
"""Bytes of what a direct message says that it comes after."""


class Taken(Frame, frozen=True, array_like=True, tag=150, gc=False):
    """What the program of its sender has taken of each member's messages, by rank in this view."""

    view: Seq
    upto: Seqs
    told: Seq = 0
    """The latest view that the program has taken word of: it has all that belongs to those before it."""
    certain: Annotated[list[tuple[Rank, Seq]], msgspec.Meta(max_length=MAX_MEMBERS)] = msgspec.field(
        default_factory=list
    )
    """Of whose messages it has only so many, or what replaces them: of those behind, replacements wait."""


class TakenWanted(Frame, frozen=True, array_like=True, tag=151, gc=False):
    """Say what your program has taken: somebody waits for it."""

    view: Seq


class Reached(Frame, frozen=True, array_like=True, tag=152, gc=False):
    """The view that its sender is in, and who is in it; nobody, if it was in that view and has left."""

    view: Seq
    members: Members
    told: Seq = 0
    """The latest view that its program was told of: it has all that belongs to those before it."""


class ReachedWanted(Frame, frozen=True, array_like=True, tag=153, gc=False):
    """I have left: say which view you are in, until it is later than this one."""

    view: Seq


class StableWanted(Frame, frozen=True, array_like=True, tag=155, gc=False):
    """To whoever is in the group: say when all of its members have come as far as this."""

    view: Seq
    counts: Fields


class Stable(Frame, frozen=True, array_like=True, tag=156, gc=False):
    """They have."""

    view: Seq
    counts: Fields


class Marker(Frame, frozen=True, array_like=True, tag=165, gc=False):
    """Behind its first `count` messages of this view its sender sends nothing below an epoch in the group."""

    view: Seq
    count: Seq
    epoch: Seq


class MarkWanted(Frame, frozen=True, array_like=True, tag=166, gc=False):
    """Say a marker of at least this epoch: somebody waits for it."""

    epoch: Seq


MarkFrame = Marker | MarkWanted


class Direct(Frame, frozen=True, array_like=True, tag=157, gc=False):
    """A message for one member (1991, 7.2), or a part of one."""

    view: Seq
    """That its sender was in."""
    nth: Seq
    """Counts all parts that its sender ever sent to one member."""
    part: Annotated[int, msgspec.Meta(ge=0, lt=MAX_PARTS)]
    parts: Annotated[int, msgspec.Meta(ge=1, le=MAX_PARTS)]
    marked: bool
    """Whether it belongs to calls."""
    head: Annotated[bytes, msgspec.Meta(max_length=MAX_HEAD)]
    """What it comes after; only the last part says so."""
    data: bytes


class DirectHeard(Frame, frozen=True, array_like=True, tag=158, gc=False):
    """Of your direct messages, parts up to `upto` are in place, and those up to `taken` were taken."""

    upto: Seq
    taken: Seq
    refused: bool = False
    """Whether the last of them is for nobody: its addressee was not in that view, or not with its sender."""


class DirectWanted(Frame, frozen=True, array_like=True, tag=159, gc=False):
    """Say how many of my direct messages your program has taken."""


class Advance(Frame, frozen=True, array_like=True, tag=164, gc=False):
    """To the holder of the group: say this number, for ordered messages of other groups wait for it."""

    view: Seq
    number: Seq


DirectFrame = Direct | DirectHeard | DirectWanted
OwnFrame = (
    Taken | TakenWanted | Reached | ReachedWanted | StableWanted | Stable | Advance | DirectFrame | MarkFrame
)
OWN_FRAMES: frozenset[type[Frame]] = frozenset(get_args(OwnFrame))
"""The same, to look a type up."""
Inside = WholeFrame | Piece | OwnFrame | ClientFrame


class InGroup(Frame, frozen=True, array_like=True, tag=154, gc=False):
    """A frame about one group of the domain."""

    group: Number
    frame: Inside


FRAMES: tuple[type[Frame], ...] = (InGroup,)
"""What the codec of a domain reads and writes."""


def number_of(group: str) -> int:
    """The number of a group, by its name.

    >>> number_of("orders") == number_of("orders") != number_of("quotes")
    True
    """
    return int.from_bytes(hashlib.blake2b(group.encode(), digest_size=8).digest(), "big") >> 2
