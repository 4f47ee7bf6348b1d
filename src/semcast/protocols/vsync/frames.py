"""The frames of virtual synchrony: messages inside a view, and what changes views."""

from typing import Annotated, get_args

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame
from semcast.protocols.pieces import Piece
from semcast.protocols.semantic.frames import Data, Notice, Rank, Request, Seq, Seqs
from semcast.protocols.terms import Agreed
from semcast.protocols.vsync.consensus_frames import ConsensusFrame, Decision
from semcast.wire.limits import MAX_MEMBERS, MAX_PAYLOAD, MAX_REPORT

Members = Annotated[list[MemberId], msgspec.Meta(max_length=MAX_MEMBERS)]
Ranks = Annotated[list[Rank], msgspec.Meta(max_length=MAX_MEMBERS)]
Report = Annotated[bytes, msgspec.Meta(max_length=MAX_REPORT)]
Cause = Annotated[str, msgspec.Meta(max_length=100)]
Causes = Annotated[list[tuple[MemberId, Cause]], msgspec.Meta(max_length=MAX_MEMBERS)]


Word = Annotated[str, msgspec.Meta(max_length=20)]


class Terms(Agreed, frozen=True, array_like=True, gc=False):
    """What all members of a group must have set alike."""

    version: Seq
    """Of the protocol."""
    order: Word
    engine: Word
    """Only where the order is total."""
    flush: Word
    agreement: Word
    uniform: bool
    frame_bytes: Seq
    buffer_messages: Seq
    window: Seq


class Known(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A view that somebody is or was in."""

    view: Seq
    members: Members


class InView(Frame, frozen=True, array_like=True, tag=30, gc=False):
    """A frame about the messages of one view."""

    view: Seq
    frame: Data | Request | Notice


class Received(Frame, frozen=True, array_like=True, tag=31, gc=False):
    """A sign of life: what its sender has queued of each member, and how far the order is settled there."""

    view: Seq
    upto: Seqs
    settled: Seq = 0
    stop: bool = False
    """Whether the others shall send nothing new: more waits for its program than should."""
    asks: bool = False
    """Whether somebody waits there to know that all have what its sender has sent: they shall say so soon."""


class Init(Frame, frozen=True, array_like=True, tag=32, gc=False):
    """INIT of figure 4.4: let us change the view, without these and with those."""

    view: Seq
    leave: Causes
    join: Members
    gone: Members = []  # noqa: RUF012 (msgspec copies it)
    """Who is dead for certain: its sender ignores whatever they have sent."""


class Pred(Frame, frozen=True, array_like=True, tag=33, gc=False):
    """PRED of figure 4.4: what its sender accepted in this view, as prefixes; messages come on request."""

    view: Seq
    upto: Seqs
    leave: Causes
    join: Members
    stateful: bool
    """Whether its application has the state of the group, and would hand it over."""
    report: Report = b""
    """What the order needs to know."""
    reads: bool = True
    """Whether its application needs the state: it has hooks, and takes what is delivered."""
    gone: Members = []  # noqa: RUF012 (msgspec copies it)
    """Who is dead for certain: its sender ignores whatever they have sent."""
    stopped: bool = False
    """Whether its program does not read: others are better asked for the state."""
    overfull: bool = False
    """Whether it cannot be in the next view: more waits for a program that has stopped than may."""
    avoid: MemberId | None = None
    """Who did not hand over the state that its sender waits for: somebody else is better asked."""


class Hello(Frame, frozen=True, array_like=True, tag=34, gc=False):
    """I am in no view and look for one. `founding` if I may take part in the first."""

    founding: bool
    last: Known | None
    """The latest view that I have heard of."""
    terms: Terms


class Goodbye(Frame, frozen=True, array_like=True, tag=46, gc=False):
    """I am in no view, and look for one no more."""

    view: Seq = 0
    """Of which I was the last member, if there was one: nobody is in it, nor in one before it."""


class Standing(Frame, frozen=True, array_like=True, tag=37, gc=False):
    """There is a view, and you are not in it: do not found another group."""

    last: Known


class Refused(Frame, frozen=True, array_like=True, tag=44, gc=False):
    """You cannot join."""

    cause: Cause
    ever: bool = False
    """Whether it is worth waiting."""


class Farewell(Frame, frozen=True, array_like=True, tag=45, gc=False):
    """I know how this view ended, and am not in the next one."""

    view: Seq


class Welcome(Frame, frozen=True, array_like=True, tag=35, gc=False):
    """You are in this view, and here is where everybody starts."""

    view: Seq
    members: Members
    base: Seqs
    joined: Ranks
    """Who was not in the view before: ranks in this one, so that each id stands here once."""
    providers: Ranks
    """Whose applications hand the state over, in the order in which they are asked."""
    position: Seq = 0
    """How many messages the total order has counted before this view."""
    reformed: Seq | None = None
    """As in `View`."""
    lost: bool = False
    """Whether nobody had the state when this view began."""
    ended: Decision | None = None
    """How the view before it ended: those who joined tell it to who goes on and has not heard it."""

    def newcomers(self) -> list[MemberId]:
        """Who was not in the view before."""
        return [self.members[rank] for rank in self.joined]

    def holders(self) -> list[MemberId]:
        """Whose applications hand the state over, in the order in which they are asked."""
        return [self.members[rank] for rank in self.providers]


class Superseded(Frame, frozen=True, array_like=True, tag=36, gc=False):
    """The view that `member` speaks of is over, and it is not in the one that counts."""

    view: Seq
    member: MemberId
    cause: Cause = ""
    """Why it was put out, if that is still known."""


class Ballot(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Names an attempt to found the group."""

    number: Seq
    founder: MemberId


class Prepare(Frame, frozen=True, array_like=True, tag=38, gc=False):
    """May I found the group? Or, after a view of whose members nobody is in it any more, the next one?"""

    ballot: Ballot
    after: Seq
    terms: Terms


class Promise(Frame, frozen=True, array_like=True, tag=39, gc=False):
    """You may, unless somebody with a higher ballot asks; and this is what I accepted before."""

    ballot: Ballot
    accepted: Ballot | None
    members: Members
    after: Seq = 0
    first: Seq = 1
    """The number of what was accepted, where that is the first view."""


class Accept(Frame, frozen=True, array_like=True, tag=40, gc=False):
    """Let these be the first view, or the next."""

    ballot: Ballot
    members: Members
    after: Seq
    terms: Terms
    first: Seq = 1
    """The number of the first view; of the next one it is known."""


class Accepted(Frame, frozen=True, array_like=True, tag=41, gc=False):
    """So be it."""

    ballot: Ballot
    after: Seq = 0


class StateWanted(Frame, frozen=True, array_like=True, tag=42, gc=False):
    """Send me the state at the beginning of this view, from this chunk on, so many chunks of it."""

    view: Seq
    chunk: Seq
    count: Seq = 16


class StateChunk(Frame, frozen=True, array_like=True, tag=43, gc=False):
    """A part of the state at the beginning of a view."""

    view: Seq
    chunk: Seq
    count: Seq
    data: Annotated[bytes, msgspec.Meta(max_length=MAX_PAYLOAD)]


WholeFrame = (
    InView
    | Received
    | Init
    | Pred
    | Hello
    | Goodbye
    | Welcome
    | Standing
    | Refused
    | Farewell
    | Superseded
    | Prepare
    | Promise
    | Accept
    | Accepted
    | StateWanted
    | StateChunk
    | ConsensusFrame
)
"""What may travel in pieces."""

FRAMES: tuple[type[Frame], ...] = (*get_args(WholeFrame), Piece)
"""What the codec of a group of this family reads and writes."""
