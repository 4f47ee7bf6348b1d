"""The log of a server: what it appends to its disk, and reads when it starts again."""

import msgspec

from semcast.replication.actions import Names, Run, RunId
from semcast.replication.colours import Painted
from semcast.replication.dedupe import Answered
from semcast.replication.ids import Number, Server, Weighted
from semcast.replication.knowledge import Prim, Vulnerable
from semcast.replication.membership import Roll


class Boot(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """The server starts. The first of these makes the store."""

    server: Server
    epoch: Number
    names: Names = ()


class Own(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Actions that this server made, and that it has not been delivered."""

    run: Run


class Red(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Known from now on; no place in the order yet."""

    run: Run


class OwnRed(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """The same of an own run, whose actions are in the log already."""

    id: RunId


class Yellow(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """Delivered when the primary was over, so that others may have it green."""

    run: Run


class Green(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    """Next in the global order."""

    run: Run


class KnownGreen(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    """The same of a run whose actions are in the log already."""

    id: RunId


class Learnt(msgspec.Struct, frozen=True, array_like=True, tag=8, gc=False):
    """What the server knows of primaries from now on."""

    prim: Prim
    attempt: Number
    vulnerable: Vulnerable | None
    yellow: tuple[RunId, ...] | None
    heard: tuple[tuple[Server, Number], ...] = ()
    """How far the disks of others were by their word; nothing where there is no news."""


class Install(msgspec.Struct, frozen=True, array_like=True, tag=9, gc=False):
    """A primary, and what turns green with it, in order: all or nothing."""

    prim: Prim
    turning: tuple[RunId, ...]


class Founders(msgspec.Struct, frozen=True, array_like=True, tag=10, gc=False):
    """Who founded the group, as others told."""

    servers: Weighted


class Fetched(msgspec.Struct, frozen=True, array_like=True, tag=11, gc=False):
    """Green at another server. It counts once the `Pulled` after it is here, too."""

    run: Run


class Pulled(msgspec.Struct, frozen=True, array_like=True, tag=12, gc=False):
    """What another server knew on its disk, with all it had green there."""

    prim: Prim
    attempt: Number
    founders: Weighted


class Forgot(msgspec.Struct, frozen=True, array_like=True, tag=13, gc=False):
    """An operator vouches that servers are gone for good: the next primary needs all others of the last."""

    servers: tuple[Server, ...]
    lineage: Number


class Base(msgspec.Struct, frozen=True, array_like=True, tag=14, gc=False):
    """All that the log before it said, but for green actions: the log begins anew here."""

    server: Server
    epoch: Number
    index: Number
    names: Names
    prim: Prim
    attempt: Number
    vulnerable: Vulnerable | None
    yellow: tuple[RunId, ...] | None
    trans_yellow: tuple[RunId, ...]
    clock: Number
    colours: Painted
    ongoing: list[Run]
    members: Roll
    requests: Answered
    heard: tuple[tuple[Server, Number], ...] = ()


class KeptRun(msgspec.Struct, frozen=True, array_like=True, tag=15, gc=False):
    """A green run that is not forgotten yet."""

    run: Run


class Based(msgspec.Struct, frozen=True, array_like=True, tag=16, gc=False):
    """The base and what is kept are complete. Without this they do not count."""


class StatePiece(msgspec.Struct, frozen=True, array_like=True, tag=17, gc=False):
    """Bytes of the state of the service, as it was after the action at a position; after a base."""

    position: Number
    data: bytes


Record = (
    Boot
    | Own
    | Red
    | OwnRed
    | Yellow
    | Green
    | KnownGreen
    | Learnt
    | Install
    | Founders
    | Fetched
    | Pulled
    | Forgot
    | Base
    | KeptRun
    | Based
    | StatePiece
)

_decoder: "msgspec.msgpack.Decoder[Record]" = msgspec.msgpack.Decoder(Record)
_encoder = msgspec.msgpack.Encoder()


def encode(record: Record) -> bytes:
    """As it is written."""
    return _encoder.encode(record)


def decode(data: bytes) -> Record:
    """As it is read. What is on the disk of a server was written by one: an error is one of the program."""
    return _decoder.decode(data)
