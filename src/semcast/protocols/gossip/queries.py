"""What programs that are no members ask a logger, and what it answers: positions over the wire.

A question is asked again, with another serial, until it is answered; so every question can be asked twice.
Pages and batches come in parts, since a datagram holds one large message.
"""

from typing import Annotated, Literal

import msgspec

from semcast.core.ids import MAX_NAME, MemberId
from semcast.core.outbox import Frame
from semcast.protocols.gossip.settings import MAX_FILTER
from semcast.wire.annotations import WireAnnotation
from semcast.wire.limits import MAX_SEQ

PAGE_MESSAGES = 1024
PAGE_BYTES = 1 << 17
"""Of messages in one answer: it must fit into the buffer of a socket. The last may exceed it."""
MAX_KEY = 256
MAX_PARTS = 4096
MAX_PIECES = 1 << 16
"""Of a stage."""
MAX_STAGES = 1024
"""Of a batch."""

Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)]
Position = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Why = Annotated[str, msgspec.Meta(max_length=512)]
Trouble = Literal["offset", "log", "busy", "invalid", "stage", "full"]
"""A position beyond either end; another log; too much at once; something that can never be; pieces of a batch
that are not there; no room for pieces."""
StageName = Annotated[str, msgspec.Meta(max_length=64)]


class Find(Frame, frozen=True, array_like=True, tag=135, gc=False):
    """To anybody: who is a logger?"""

    serial: Number


class Found(Frame, frozen=True, array_like=True, tag=136, gc=False):
    """A logger is here, with this log."""

    serial: Number
    log: Number


class Ask(Frame, frozen=True, array_like=True, tag=137, gc=False):
    """Where the log begins and ends; the position of a time; or go on without a logger."""

    serial: Number
    log: Number
    what: Literal["ends", "time", "forget"]
    at: Position = 0
    name: Annotated[str, msgspec.Meta(max_length=MAX_NAME)] = ""


class Told(Frame, frozen=True, array_like=True, tag=138, gc=False):
    """The answer: where the log begins and ends, or a position."""

    serial: Number
    first: Position = 0
    next: Position = 0
    oldest: Position = 0
    newest: Position = 0
    settled: Position = 0
    """The time of day before which nothing will be logged any more."""


class Read(Frame, frozen=True, array_like=True, tag=139, gc=False):
    """The messages at some positions, please."""

    serial: Number
    log: Number
    lo: Position
    hi: Position
    most: Annotated[int, msgspec.Meta(ge=1, le=PAGE_MESSAGES)]
    size: Annotated[int, msgspec.Meta(ge=1, le=PAGE_BYTES)]
    prefix: Annotated[str, msgspec.Meta(max_length=MAX_FILTER)] = ""


class Lines(Frame, frozen=True, array_like=True, tag=140, gc=False):
    """Messages of a page: of one sender, logged at one time, as far apart by number as by position."""

    serial: Number
    number: Number
    position: Position
    at: Position
    sender: MemberId
    first: Number
    payloads: Annotated[list[bytes], msgspec.Meta(min_length=1, max_length=PAGE_MESSAGES)]
    offsets: Annotated[list[Number], msgspec.Meta(max_length=PAGE_MESSAGES)] | None = None
    """How far each is from the first, where others between them left."""
    items: list[str | None] | None = None
    """What each is about, if any is about something."""
    notes: list[tuple[Number, WireAnnotation]] | None = None
    """Other annotations, and of which of these messages."""


class End(Frame, frozen=True, array_like=True, tag=141, gc=False):
    """The page has so many parts; where to go on, and how many positions were trimmed."""

    serial: Number
    parts: Number
    next: Position
    trimmed: Position


class Put(Frame, frozen=True, array_like=True, tag=142, gc=False):
    """A part of a batch to be logged, once for its key: messages, and the item each is about, if any."""

    serial: Number
    log: Number
    key: Annotated[bytes, msgspec.Meta(min_length=1, max_length=MAX_KEY)]
    part: Annotated[int, msgspec.Meta(ge=0, lt=MAX_PARTS)]
    parts: Annotated[int, msgspec.Meta(ge=1, le=MAX_PARTS)]
    messages: Annotated[list[tuple[bytes, WireAnnotation | None]], msgspec.Meta(max_length=4096)]
    stage: StageName = ""
    """Not to be logged yet: a piece of this stage, whichever the key is."""
    number: Annotated[int, msgspec.Meta(ge=0, lt=MAX_PIECES)] = 0
    """Of the piece."""


class Release(Frame, frozen=True, array_like=True, tag=145, gc=False):
    """Log the pieces of these stages as one batch, once for its key; without a key: give them up."""

    serial: Number
    log: Number
    key: Annotated[bytes, msgspec.Meta(max_length=MAX_KEY)]
    stages: Annotated[
        list[tuple[StageName, Annotated[int, msgspec.Meta(ge=0, le=MAX_PIECES)]]],
        msgspec.Meta(max_length=MAX_STAGES),
    ]


class Taken(Frame, frozen=True, array_like=True, tag=143, gc=False):
    """The batch is on disk, from this position on; or was before."""

    serial: Number
    position: Position
    known: bool


class Denied(Frame, frozen=True, array_like=True, tag=144, gc=False):
    """It cannot be answered, and why."""

    serial: Number
    trouble: Trouble
    why: Why


QUERIES: tuple[type[Frame], ...] = (Find, Found, Ask, Told, Read, Lines, End, Put, Release, Taken, Denied)
"""All of these."""
