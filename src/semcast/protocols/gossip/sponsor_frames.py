"""The frames of membership by sponsors (5.3): JOIN and LEAVE, their answers, and what loggers are told."""

from typing import Annotated

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame
from semcast.protocols.gossip.data import Number
from semcast.protocols.gossip.frames import Entries, Part, Parts
from semcast.protocols.gossip.settings import MAX_FILTER

_Filter = Annotated[str, msgspec.Meta(max_length=MAX_FILTER)]


class Apply(Frame, frozen=True, array_like=True, tag=119, gc=False):
    """JOIN or LEAVE, to anybody: who sends it wants to be taken in, or to go."""

    fresh: Number
    """Of this attempt: what answers a former one does not count."""
    leaves: bool = False
    filter: _Filter = ""
    """What the items of messages that it wants begin with."""


class Vouch(Frame, frozen=True, array_like=True, tag=120, gc=False):
    """A member has taken that in (R-5: to who asked, and at once). With a join: what it knows by then."""

    fresh: Number
    incarnation: Number
    """Of whom it is meant for."""
    leaves: bool
    members: Number
    """How many members the sponsor knows that could be sponsors, itself among them."""
    word: Number
    """Of several answers to one attempt, which: parts of two are not mixed."""
    part: Part
    parts: Parts
    known: Entries
    """TS: of each stream, the highest number that the sponsor has heard of."""


class Enroll(Frame, frozen=True, array_like=True, tag=121, gc=False):
    """Of a sponsor to its logger: this member was taken in, and is owed what comes after these numbers."""

    member: MemberId
    attempt: Number
    part: Part
    after: Entries
    filter: _Filter = ""


class Enrolled(Frame, frozen=True, array_like=True, tag=122, gc=False):
    """The answer: as many loggers as must have that part of it on disk."""

    member: MemberId
    attempt: Number
    part: Part
    incarnation: Number
    """Of the sponsor."""


SPONSOR_FRAMES: tuple[type[Frame], ...] = (Apply, Vouch, Enroll, Enrolled)
