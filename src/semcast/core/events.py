"""What a protocol tells the application besides messages."""

import msgspec

from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Batch, PrivateMessage
from semcast.core.views import View


class ViewChange(msgspec.Struct, frozen=True):
    """A new view, and how it differs from the one before."""

    view: View
    joined: tuple[MemberId, ...] = ()
    left: tuple[MemberId, ...] = ()
    failed: tuple[MemberId, ...] = ()


class TransitionalView(msgspec.Struct, frozen=True):
    """What still comes was sent in the view before, and only these members are sure to get it, too.

    `view` has the id and the representative of that view, and the members who go on together.
    """

    view: View


class Merged(msgspec.Struct, frozen=True):
    """So many views came and went of which the program is told nothing more: it had nothing to take there.

    Only where too many changes wait for a program that does not read. The next view says how it differs from
    the last one that the program was told of.
    """

    count: int


class Sent(msgspec.Struct, frozen=True):
    """Messages that waited here have left, in the view with this id."""

    batch: Batch
    view: int
    safe: bool = False


class Left(msgspec.Struct, frozen=True):
    """This member is out of the group for good, and why.

    With `again` it was put out against its will: the process may come back as another incarnation.
    """

    cause: str
    again: bool = False


class NotAdmitted(msgspec.Struct, frozen=True):
    """Somebody wants to be in the group, or to form it with this member, and cannot; and why."""

    member: MemberId
    cause: str


class Minority(msgspec.Struct, frozen=True):
    """This member is cut off from the majority: nothing is sent or changed here until they meet again."""

    reachable: int
    needed: int


class StateRequested(msgspec.Struct, frozen=True):
    """Somebody who joins needs the state of the application, as it is at this point."""

    view: int


class StateReceived(msgspec.Struct, frozen=True):
    """The state of the group at the beginning of the view that follows."""

    view: int
    state: bytes


class StateLost(msgspec.Struct, frozen=True):
    """Nobody is left who has the state of the group: the view that follows begins with none.

    Whatever this program has is not what the group had. It comes right before that view.
    """

    view: int
    cause: str


class Rejoining(msgspec.Struct, frozen=True):
    """The group went on without this member, which now comes back as another incarnation.

    The next view is the first of `member`. With state hooks the state is restored before it; without, what
    the others delivered in between is not heard of.
    """

    former: MemberId
    member: MemberId
    """Who this is from now on."""
    cause: str
    unsettled: tuple[MessageId, ...] = ()
    """Messages of `former`, by the ids that `send` returned, of which it is not known whether the others have
    them or ever will. Nobody sends them again. What was handed over after them had not left, and is sent by
    `member`."""


class Skipped(msgspec.Struct, frozen=True):
    """So many messages were dropped here, because they filled the queue before this program ever iterated.

    What comes next is the view that the program is in now, and what is delivered from here on.
    """

    count: int


class Blocked(msgspec.Struct, frozen=True):
    """Flow control refuses multicasts from now on."""


class Unblocked(msgspec.Struct, frozen=True):
    """A refused multicast is worth another try."""


class Confirmed(msgspec.Struct, frozen=True):
    """What `Stack.confirm` asked about has come about."""

    ticket: int
    view: View
    """The view in which the message is delivered."""
    position: int
    """Its place there: in the order of all messages, where there is one, else among those of its sender."""
    logged: bool = False
    """Whether loggers have it on disk: what a stack with loggers answers to who asks for safe messages."""


class Unconfirmed(msgspec.Struct, frozen=True):
    """What `Stack.confirm` asked about will not come about, or nobody can tell."""

    ticket: int
    cause: str


class Purged(msgspec.Struct, frozen=True, gc=False):
    """A receipt: `id`, and with `count` those that follow it, will not be delivered here, because of `by`.

    `by` is None where messages were skipped on a peer's word: replacements exist and are safe,
    but which ones they are was not said.
    """

    id: MessageId
    by: MessageId | None = None
    count: int = 1


class Lost(msgspec.Struct, frozen=True, gc=False):
    """Messages of a sender, from `first` to `last`, that will not be delivered here, and nothing instead.

    It comes before anything that follows them in their stream.
    """

    sender: MemberId
    first: int
    last: int
    cause: str
    """`expired`: too old to be had; `abandoned`: nobody has them any more."""


class Away(msgspec.Struct, frozen=True):
    """No logger has heard this member for a while. What is sent meanwhile comes when one does again."""


class Back(msgspec.Struct, frozen=True):
    """A logger hears this member again."""


class Note(msgspec.Struct, frozen=True, gc=False):
    """A row for the history, of a kind that only the checkers of the stack's family read.

    The fields are the columns of `semcast.history.schema`; `digest` is a text of the kind's own.
    """

    kind: str
    sender: MemberId | None = None
    seq: int = 0
    count: int = 0
    view: int | None = None
    level: str | None = None
    order: int | None = None
    members: tuple[MemberId, ...] | None = None
    digest: str | None = None


class Answered(msgspec.Struct, frozen=True, gc=False):
    """What became of a request that a stack was given with a ticket: done at a position of its order.

    Without a position it will be done, once; with a `refusal` it will not, and that says why.
    """

    ticket: int
    level: str
    position: int = 0
    refusal: str = ""


Event = (
    ViewChange
    | TransitionalView
    | Sent
    | Left
    | NotAdmitted
    | Minority
    | Blocked
    | Unblocked
    | Purged
    | Away
    | Back
    | Confirmed
    | Unconfirmed
    | Note
    | Answered
)

Delivery = (
    Batch
    | ViewChange
    | TransitionalView
    | StateRequested
    | StateReceived
    | StateLost
    | Minority
    | Rejoining
    | Skipped
    | Merged
    | Lost
    | Away
    | Back
    | PrivateMessage
)
"""What an application takes from a stack, in this order: messages, and changes of view between them."""
