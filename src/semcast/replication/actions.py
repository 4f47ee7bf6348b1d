"""Actions, and the runs in which they travel.

An action is bytes: what kind it is in the first one, then its contents. All actions that a server creates at
once are one *run*: it has one Lamport clock, and is red, yellow or green as a whole. So everything that the
algorithm does to an action it does to a run, and a single action costs little more than its bytes.
"""

from operator import itemgetter
from typing import Annotated

import msgspec

from semcast.replication.ids import Creator, Name, Number, Server

PLAIN, ASKED, CHANGE = 0, 1, 2
"""Kinds: a body that nobody here reads, what a client asks for and may repeat, a change of the servers."""

_PLAIN, _ASKED, _CHANGE = b"\x00", b"\x01", b"\x02"

Client = Annotated[str, msgspec.Meta(max_length=64)]
Weight = Annotated[int, msgspec.Meta(ge=0, le=1000)]

RunId = tuple[Creator, int]
"""A run, by its creator and the index of its first action."""

RED_KEY = tuple[int, Creator, int]
_kind = itemgetter(0)


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Consecutive actions of one creator, made at once."""

    creator: Creator
    first: Number
    clock: Number
    actions: list[Annotated[bytes, msgspec.Meta(min_length=1)]]

    @property
    def plain(self) -> bool:
        """Whether all of them are, as nearly always: then nobody has to look at each."""
        return not any(map(_kind, self.actions))

    @property
    def id(self) -> RunId:
        """What names it."""
        return self.creator, self.first

    @property
    def last(self) -> int:
        """The index of its last action."""
        return self.first + len(self.actions) - 1

    def __str__(self) -> str:
        return f"({self.creator},{self.first}..{self.last})"


def red_key(run: Run) -> RED_KEY:
    """Reds turn green in this order (OR-2): what a server knew when it made an action comes before it."""
    return run.clock, run.creator, run.first


class Asked(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a client asked for under a number of its own; it has all outcomes below `floor`."""

    client: Client
    number: Number
    floor: Number
    body: bytes


class Join(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """From here on a server is one of the group; another store of its name is not any more."""

    server: Server
    weight: Weight


class Leave(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """From here on a server is not one of the group, and this store never will be again."""

    server: Server


class Reweigh(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """From here on a server counts for so much."""

    server: Server
    weight: Weight


Change = Join | Leave | Reweigh
Names = tuple[Name, ...]

_encode = msgspec.msgpack.encode
_decode_asked = msgspec.msgpack.Decoder(Asked).decode
_decode_change: "msgspec.msgpack.Decoder[Change]" = msgspec.msgpack.Decoder(Change)


def plain(body: bytes) -> bytes:
    """An action that is nothing but its body."""
    return _PLAIN + body


def asked(request: Asked) -> bytes:
    """The action for what a client asked."""
    return _ASKED + _encode(request)


def change(what: Change) -> bytes:
    """The action that changes the servers."""
    return _CHANGE + _encode(what)


def read_asked(action: bytes) -> Asked | None:
    """What a client asked; None if that is not what it says."""
    try:
        return _decode_asked(action[1:])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def read_change(action: bytes) -> Change | None:
    """How the servers change; None if that is not what it says."""
    try:
        return _decode_change.decode(action[1:])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def body_of(action: bytes) -> bytes | None:
    """What the service is given; None for what is not for it."""
    kind = action[0]
    if kind == PLAIN:
        return action[1:]
    if kind == ASKED:
        request = read_asked(action)
        return None if request is None else request.body
    return None
