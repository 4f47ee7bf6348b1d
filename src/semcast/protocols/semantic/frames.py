"""The frames of S-RM and its channels. Members are named by rank: their place in the agreed list."""

from typing import Annotated, get_args

import msgspec

from semcast.core.outbox import Frame
from semcast.protocols.pieces import Piece
from semcast.protocols.terms import Agreed
from semcast.wire.annotations import WireAnnotation
from semcast.wire.limits import (
    MAX_BITMAP,
    MAX_HEAD,
    MAX_HEADS,
    MAX_ITEM,
    MAX_MEMBERS,
    MAX_PIECES,
    MAX_SEQ,
    MAX_SPANS,
)

Rank = Annotated[int, msgspec.Meta(ge=0, lt=MAX_MEMBERS)]
Seq = Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)]
Seqs = Annotated[list[Seq], msgspec.Meta(max_length=MAX_MEMBERS)]
Payloads = Annotated[list[bytes], msgspec.Meta(min_length=1)]
ItemName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ITEM)]
Head = Annotated[bytes, msgspec.Meta(max_length=MAX_HEAD)]


class Data(Frame, frozen=True, array_like=True, tag=1, gc=False):
    """Consecutive messages of one sender, from the sender or from anybody who holds them."""

    sender: Rank
    first: Seq
    payloads: Payloads
    annotation: WireAnnotation | None = None
    head: Head = b""
    left: Annotated[int, msgspec.Meta(ge=0, le=MAX_PIECES)] = 0
    """Of a message that was cut: how many pieces are left, this one included."""
    items: list[ItemName] | None = None
    """Of a run of updates: the item of each, instead of an annotation."""


class Request(Frame, frozen=True, array_like=True, tag=2, gc=False):
    """Negative acknowledgement: please send these messages (first, last) of `sender` again."""

    sender: Rank
    spans: Annotated[list[tuple[Seq, Seq]], msgspec.Meta(min_length=1, max_length=MAX_SPANS)]


class Notice(Frame, frozen=True, array_like=True, tag=3, gc=False):
    """Purge knowledge: bit i of the bitmap set says that message `base` + i of `sender` was purged."""

    sender: Rank
    base: Seq
    bitmap: Annotated[bytes, msgspec.Meta(min_length=1, max_length=MAX_BITMAP)]
    heads: Annotated[list[tuple[Seq, Head]], msgspec.Meta(max_length=MAX_HEADS)] = msgspec.field(
        default_factory=list
    )
    """Those of them that had a head, and which."""
    known: Seq = 0
    """What replaces them is among the messages up to here."""


class Round(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One round of gossip: who voted, the least of their votes, and the result of earlier rounds."""

    number: Seq
    voters: Annotated[bytes, msgspec.Meta(max_length=MAX_MEMBERS // 8)]
    minimum: Seqs
    result: Seqs


class Terms(Agreed, frozen=True, array_like=True, gc=False):
    """What all members of a group must have set alike."""

    version: Seq
    """Of the protocol."""
    uniform: bool
    max_message: Seq
    window: Seq


class Gossip(Frame, frozen=True, array_like=True, tag=4, gc=False):
    """Stability and safety tracking, and what the gossiper has queued of each sender."""

    received: Seqs
    stability: Round
    terms: Terms
    safety: Round | None = None
    stop: bool = False
    """Whether the others shall send nothing new: more waits for its program than should."""


class ChannelData(Frame, frozen=True, array_like=True, tag=5, gc=False):
    """A message on a point-to-point channel; everything before `low` is acknowledged or purged.

    Without payloads it says that the window is empty.
    """

    first: Seq
    low: Seq
    payloads: list[bytes]
    annotation: WireAnnotation | None = None


class ChannelAck(Frame, frozen=True, array_like=True, tag=6, gc=False):
    """Everything up to `upto` arrived or was purged; `room` more messages are welcome."""

    upto: Seq
    room: Seq


SemanticFrame = Data | Request | Notice | Gossip | ChannelData | ChannelAck | Piece

FRAMES: tuple[type[Frame], ...] = get_args(SemanticFrame)
"""What the codec of a group of this family reads and writes."""
