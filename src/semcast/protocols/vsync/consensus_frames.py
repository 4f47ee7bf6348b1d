"""The frames of consensus (Chandra and Toueg 1996, section 6.2). Members are named by rank."""

from typing import Annotated

import msgspec

from semcast.core.outbox import Frame
from semcast.wire.limits import MAX_SEQ, MAX_VALUE

Seq = Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)]
RoundNumber = Annotated[int, msgspec.Meta(ge=1, le=MAX_SEQ)]
Value = Annotated[bytes, msgspec.Meta(max_length=MAX_VALUE)]


class Instance(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Names one consensus: number 0 ends the view, 1 and on are the batches of total order inside it."""

    view: Seq
    number: Seq

    def __str__(self) -> str:
        return f"{self.view}.{self.number}"


class Estimate(Frame, frozen=True, array_like=True, tag=20, gc=False):
    """Phase 1, to the coordinator: what I would decide, and the round in which I took it over.

    `ts` is 0 for what the member proposed itself; without a value it has nothing yet.
    """

    instance: Instance
    round: RoundNumber
    ts: Seq
    value: Value | None


class Proposal(Frame, frozen=True, array_like=True, tag=21, gc=False):
    """Phase 2, from the coordinator: the only value that can be decided in this round."""

    instance: Instance
    round: RoundNumber
    value: Value


class Ack(Frame, frozen=True, array_like=True, tag=22, gc=False):
    """Phase 3, to the coordinator: I took the proposal over; or I did not, and never will."""

    instance: Instance
    round: RoundNumber
    ok: bool


class Decision(Frame, frozen=True, array_like=True, tag=23, gc=False):
    """Phase 4: a majority took this over in one round."""

    instance: Instance
    value: Value


class Summons(Frame, frozen=True, array_like=True, tag=24, gc=False):
    """From the coordinator of a round: come here, and send me your estimate."""

    instance: Instance
    round: RoundNumber


ConsensusFrame = Estimate | Proposal | Ack | Decision | Summons
