"""What a protocol tells the application besides messages."""

import msgspec

from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Batch, PrivateMessage
from semcast.core.views import View


class ViewChange(msgspec.Struct, frozen=True):
    """A new view, and the difference to the one before."""

    view: View
    joined: tuple[MemberId, ...] = ()
    left: tuple[MemberId, ...] = ()
    failed: tuple[MemberId, ...] = ()


class TransitionalView(msgspec.Struct, frozen=True):
    """The messages after it were sent in the view before; only these members are certain to get them, too.

    `view` has the id and the representative of that view, and the members who go on together.
    """

    view: View


class Merged(msgspec.Struct, frozen=True):
    """Several views without messages were combined, because too many view changes waited for the program.

    The next `ViewChange` is relative to the last view that the program has read.
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
    """This member is cut off from the majority. Nothing is sent or changes until it is reachable again."""

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
    """No member is left that has the state of the group: the next view starts without a state.

    The state of this program is not the state of the group. This event comes right before that view.
    """

    view: int
    cause: str


class Rejoining(msgspec.Struct, frozen=True):
    """This member was expelled and now rejoins as a new incarnation.

    The next view is the first of `member`. With state hooks the state is restored before it; without, the
    messages that the others delivered in between are missed.
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
    """Messages were dropped because the program did not start to read before its queue was full.

    Next come the current view and the messages from here on.
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
    """A receipt: message `id` (and with `count` those after it) was purged here, replaced by `by`.

    `by` is None if another member had purged the messages: replacements exist and are safe, but are not
    named.
    """

    id: MessageId
    by: MessageId | None = None
    count: int = 1

    @property
    def sender(self) -> MemberId:
        """Whose message it was."""
        return self.id.sender

    def receipts(self) -> "list[Purged]":
        """This one, as `Thinned.receipts` gives several."""
        return [self]


class Thinned(msgspec.Struct, frozen=True, gc=False):
    """Receipts for runs of updates of one sender, made one by one only for who wants them.

    An update was purged here if a later one of these has the same item.

    >>> p = MemberId("p")
    >>> thinned = Thinned(p, ((1, ["bid", "ask", "bid"]), (7, ["bid"])), 2)
    >>> [(purged.id.seq, purged.by.seq) for purged in thinned.receipts()]
    [(1, 3), (3, 7)]
    """

    sender: MemberId
    runs: tuple[tuple[int, list[str]], ...]
    """The number of the first update of each run, and the item of each update."""
    count: int
    """How many of the updates were purged."""

    def receipts(self) -> list[Purged]:
        """One for each, oldest first, for the next update of its item."""
        sender = self.sender
        after: dict[str, MessageId] = {}
        found: list[Purged] = []
        for first, items in reversed(self.runs):
            for place in range(len(items) - 1, -1, -1):
                item, name = items[place], MessageId(sender, first + place)
                if item in after:
                    found.append(Purged(name, after[item]))
                after[item] = name
        found.reverse()
        return found


class Lost(msgspec.Struct, frozen=True, gc=False):
    """Messages `first` to `last` of a sender are lost here: neither they nor replacements will be delivered.

    It comes before all later messages of that sender.
    """

    sender: MemberId
    first: int
    last: int
    cause: str
    """`expired`: too old to be had; `abandoned`: nobody has them any more."""


class Away(msgspec.Struct, frozen=True):
    """No logger is reachable. Messages sent meanwhile are delivered once one is reachable again."""


class Back(msgspec.Struct, frozen=True):
    """A logger is reachable again."""


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
    | Thinned
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
