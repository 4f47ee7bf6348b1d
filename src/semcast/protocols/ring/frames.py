"""The frames of the ring (Amir 1995, section 5.2): packets, tokens, and what forms a new ring."""

from typing import Annotated, get_args

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame
from semcast.protocols.pieces import Piece
from semcast.protocols.terms import Agreed
from semcast.wire.annotations import WireAnnotation
from semcast.wire.limits import (
    MAX_HOLES,
    MAX_ITEM,
    MAX_MEMBERS,
    MAX_MESSAGE,
    MAX_SEQ,
    MAX_SPANS,
)

Rank = Annotated[int, msgspec.Meta(ge=0, lt=MAX_MEMBERS)]
Seq = Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)]
Spans = Annotated[list[tuple[Seq, Seq]], msgspec.Meta(max_length=MAX_SPANS)]
ItemName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ITEM)]
Members = Annotated[list[MemberId], msgspec.Meta(max_length=MAX_MEMBERS)]

NAME_BYTES = 64
"""Of the name of a member, at most."""
RTR_SPANS = 48
"""Requests for retransmission on one token: whatever the numbers, it fits in a datagram of any network."""


class ConfId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Names a configuration for ever: who formed it, and which of theirs it is.

    A representative never uses a number twice, and a restart makes it another member.
    """

    number: Seq
    representative: MemberId

    def __str__(self) -> str:
        return f"{self.number}@{self.representative}"


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Consecutive messages of one sender inside a packet, or a fragment of one message.

    `left` more fragments follow in later packets; only the last has a 0 there. An annotation speaks for one
    message; a run of updates has an item for each instead.
    """

    first: Annotated[int, msgspec.Meta(ge=1, le=MAX_SEQ)]
    payloads: Annotated[list[bytes], msgspec.Meta(min_length=1)]
    annotation: WireAnnotation | None = None
    left: Annotated[int, msgspec.Meta(ge=0, lt=MAX_MESSAGE)] = 0
    items: list[ItemName] | None = None


class Packet(Frame, frozen=True, array_like=True, tag=7, gc=False):
    """A regular message of the paper: number `seq` in the order of `conf`."""

    conf: ConfId
    seq: Annotated[int, msgspec.Meta(ge=1, le=MAX_SEQ)]
    sender: Rank
    safe: bool
    parts: Annotated[list[Part], msgspec.Meta(min_length=1)]


class Token(Frame, frozen=True, array_like=True, tag=8, gc=False):
    """The regular token. `number` counts its hops, which tells a token from a copy of it."""

    conf: ConfId
    number: Seq
    seq: Seq
    aru: Seq
    lowered_by: Annotated[int, msgspec.Meta(ge=-1, lt=MAX_MEMBERS)]
    """Who lowered `aru` last and may raise it again; -1 if it was equal to `seq`."""
    rtr: Spans
    fcc: Seq
    pressing: Annotated[int, msgspec.Meta(ge=-1, lt=MAX_MEMBERS)] = -1
    """Who waits for the token to come round, though there is nothing new; -1 for nobody."""
    stop: Annotated[int, msgspec.Meta(ge=-1, lt=MAX_MEMBERS)] = -1
    """Whose program has more to take than its queue holds, so that nobody sends anything new; or -1."""


class RecoveryToken(Frame, frozen=True, array_like=True, tag=9, gc=False):
    """The token of a ring whose members still recover what they lack of their old configurations."""

    conf: ConfId
    number: Seq
    finished: Annotated[bytes, msgspec.Meta(max_length=MAX_MEMBERS // 8)]
    """Bit r: the member of rank r has everything, and keeps its promises from now on."""
    rtr: Annotated[list[tuple[ConfId, Spans]], msgspec.Meta(max_length=MAX_MEMBERS)]


class ConfRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is left to do in one old configuration: an entry of the paper's `confs_list`."""

    conf: ConfId
    obligation_set: Members
    highest_seq: Seq
    aru: Seq
    holes: Annotated[bytes, msgspec.Meta(max_length=MAX_HOLES // 8)]
    """Little-endian bitmap: bit i says that nobody who takes part has packet `aru` + 1 + i."""


class FormToken(Frame, frozen=True, array_like=True, tag=10, gc=False):
    """Circulates twice through the members of the ring to be."""

    form_id: ConfId
    number: Seq
    rotation: Annotated[int, msgspec.Meta(ge=1, le=2)]
    join_list: Members
    memb_list: Annotated[list[tuple[MemberId, ConfId]], msgspec.Meta(max_length=MAX_MEMBERS)]
    confs_list: Annotated[list[ConfRecord], msgspec.Meta(max_length=MAX_MEMBERS)]
    stop: Annotated[int, msgspec.Meta(ge=-1, lt=MAX_MEMBERS)] = -1
    """The same as on the regular token, by the place in `memb_list`: a stop outlives the configuration."""


class Terms(Agreed, frozen=True, array_like=True, gc=False):
    """What all members of a ring must have set alike."""

    version: Seq
    """Of the protocol."""
    window: Seq
    packet_bytes: Seq
    max_message: Seq


class AttemptJoin(Frame, frozen=True, array_like=True, tag=11, gc=False):
    """A representative wants to form a larger ring. `alone` if it speaks for nobody but itself."""

    conf: ConfId
    highest: Seq
    alone: bool
    terms: Terms


class Join(Frame, frozen=True, array_like=True, tag=12, gc=False):
    """A representative proposes those in `reps` that are not in `failed`."""

    conf: ConfId
    highest: Seq
    alone: bool
    reps: Members
    failed: Members
    terms: Terms


class Presence(Frame, frozen=True, array_like=True, tag=13, gc=False):
    """A ring is here, idle or not."""

    conf: ConfId
    terms: Terms


class TokenAck(Frame, frozen=True, array_like=True, tag=14, gc=False):
    """The token arrived."""

    conf: ConfId
    number: Seq


class TokenWanted(Frame, frozen=True, array_like=True, tag=15, gc=False):
    """Whoever holds the token of an idle ring, let it go: I have something to send."""

    conf: ConfId


class Leave(Frame, frozen=True, array_like=True, tag=16, gc=False):
    """I leave; form a ring without me."""

    conf: ConfId


class NameTaken(Frame, frozen=True, array_like=True, tag=27, gc=False):
    """A newcomer has the name of a member of the ring: it waits until that is found to be dead, or leaves."""

    member: MemberId
    lives: bool
    """Whether the ring has worked for long enough with that member since the newcomer came."""


class FormRefused(Frame, frozen=True, array_like=True, tag=25, gc=False):
    """I cannot pass this Form token on, to nobody: go on without me."""

    form_id: ConfId
    number: Seq


RingFrame = (
    Packet
    | Token
    | RecoveryToken
    | FormToken
    | AttemptJoin
    | Join
    | Presence
    | TokenAck
    | TokenWanted
    | Leave
    | FormRefused
    | NameTaken
    | Piece
)

FRAMES: tuple[type[Frame], ...] = get_args(RingFrame)
"""What the codec of a group of this family reads and writes."""
