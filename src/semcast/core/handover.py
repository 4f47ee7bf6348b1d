"""Between an application and the turns of its member: what waits to be sent, and what waits to be taken.

The application may live in another thread. Nothing here needs a lock: each count has one writer, and each
queue has one side that puts and one that takes.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, cast

from semcast.core.annotations import Item
from semcast.core.events import (
    Confirmed,
    Delivery,
    Skipped,
    StateReceived,
    StateRequested,
    Unconfirmed,
    ViewChange,
)
from semcast.core.ids import Nanos
from semcast.core.mailbox import Mailbox
from semcast.core.messages import Batch
from semcast.core.outgoing import Outgoing
from semcast.core.reader import Reader
from semcast.core.reading import Reading
from semcast.core.stack import Stack
from semcast.core.views import View

_PLENTY = 64 << 20
_EVER = 1 << 62
"""No view has so high a number."""
_LISTS_IN_QUEUE = 8
"""A list in the mailbox has about this part of the bytes of a full queue, at most."""
_RUN = 1024
"""Messages that were handed over one by one and are given to the stack together, at most."""

Update = tuple[bytes, Item]
"""A message that was handed over alone, and the item that it updates."""
Command = Callable[[Stack, Nanos], None]
"""Something to be done to a stack, in its next turn."""


class StateHooks(Protocol):
    """State transfer of an application; called between two events that the program reads."""

    def export(self) -> bytes:
        """The state after all events so far."""

    def restore(self, state: bytes) -> None:
        """Replace the state by this one."""


class Handover:
    """The application's side of its member. `Turn` works on the other side.

    Args:
        send_messages: how many messages may wait to be sent before the application has to wait, too.
        send_bytes: of these; the last may exceed it, whatever its size.
        mailbox: for what is delivered.
        hooks: to the state of the application; None to hand over what is about it like anything else.
        queue_messages: how many messages may wait for the application.
        queue_bytes: of these.
        receives: whether the application is given anything at all.
    """

    __slots__ = (
        "_handed",
        "_handed_bytes",
        "_limit",
        "_limit_bytes",
        "_missed",
        "_rest",
        "_stateless_upto",
        "_taken",
        "_taken_bytes",
        "answers",
        "awaited",
        "backlog",
        "backlogs",
        "commands",
        "discarded",
        "hooks",
        "leaving",
        "mailbox",
        "members_wanted",
        "more",
        "outgoing",
        "overflowing",
        "overflows",
        "reading",
        "renewed",
        "skipped",
    )

    reading_kind: ClassVar[type[Reading]] = Reading

    def __init__(
        self,
        send_messages: int,
        mailbox: Mailbox | None = None,
        hooks: StateHooks | None = None,
        *,
        queue_messages: int = 1024,
        send_bytes: int = _PLENTY,
        queue_bytes: int = _PLENTY,
        receives: bool = True,
    ) -> None:
        if mailbox is None:
            mailbox = Mailbox(most=queue_messages, most_bytes=max(1, queue_bytes // _LISTS_IN_QUEUE))
        self.mailbox = mailbox
        self.hooks = hooks
        self.reading = self.reading_kind(mailbox, queue_messages, queue_bytes, receives=receives)
        """How the application reads, and whether it waits."""
        self.outgoing: deque[Outgoing | bytes | Update] = deque()
        """What the application handed over and no turn has given to the stack yet. A message that was handed
        over alone is its payload if it says nothing about others, and an `Update` if it is one of an item."""
        self.commands: deque[Command] = deque()
        self.answers: deque[Confirmed | Unconfirmed] = deque()
        """To those who wait to know what became of a message. They are no part of what is delivered."""
        self.members_wanted = 0
        """The application waits until its member is in a view of so many; 0 if it does not."""
        self.leaving = False
        """The application wants out once everything it handed over was taken."""
        self.renewed = False
        """Another incarnation waits for `go_on` before it sends what was handed over."""
        self.overflows = 0
        """How often a turn found that an application which waits has no room for what is delivered either.
        A call that waits, and sees this grow, raises."""
        self.overflowing = False
        """Whether it was so in the last turn: a call that would not wait raises, too."""
        self.backlog = 0
        """Messages that waited for the application when that happened last."""
        self.backlogs = 0
        """Calls that raised because of that."""
        self.skipped = 0
        """Messages that turns dropped because the application never iterated."""
        self.awaited = 1
        """Tasks that wait for something to take; while there are none, nobody is woken for what is put in the
        mailbox. Written by the application; who is not told when to look waits always."""
        self.more = True
        """Whether a turn has something to do once the application has taken a list. Written by turns."""
        self._limit = send_messages
        self._limit_bytes = send_bytes
        self._handed = self._handed_bytes = 0  # messages; written by the application
        self._taken = self._taken_bytes = 0  # of those; written by turns
        self._rest: Sequence[Delivery] = ()
        self._stateless_upto = -1  # the state at the beginning of views up to this one is not its own
        self._missed: View | None = None  # the last view that was dropped; written by turns
        self.discarded: tuple[int, View | None] | None = None
        """What lay in the mailbox when an application that was skipped began to iterate. Written by it."""

    @property
    def reader(self) -> Reader:
        """What the stack sees of the application."""
        return self.reading.reader

    @property
    def unread(self) -> bool:
        """Whether nothing is kept for the application: what is delivered is taken for it."""
        return self.reading.closing or not self.reading.receives

    # Sending

    @property
    def unsent(self) -> int:
        """Messages that were handed over and wait for the stack to take them."""
        return self._handed - self._taken

    @property
    def unsent_bytes(self) -> int:
        """Bytes of these."""
        return self._handed_bytes - self._taken_bytes

    def room_for(self, count: int, *, reading: bool = True) -> bool:
        """Whether so many messages may be handed over now; one call is always welcome where none waits.

        Bytes may exceed their bound by what is handed over last, so that everything can be sent.

        While others are stopped, and whoever reads here has answers to send, only those are welcome.
        """
        if not reading and self.reading.answers_first:
            return False
        unsent = self.unsent
        return not unsent or (unsent + count <= self._limit and self.unsent_bytes < self._limit_bytes)

    @property
    def room(self) -> int:
        """How many messages may be handed over now."""
        return self._limit - self.unsent if self.unsent_bytes < self._limit_bytes else 0

    def send(self, outgoing: Outgoing) -> None:
        """Hand messages over."""
        self._handed += len(outgoing.payloads)
        self._handed_bytes += outgoing.bytes(len(outgoing.payloads))
        self.outgoing.append(outgoing)
        self.reading.welcome()

    def send_plain(self, payload: bytes) -> None:
        """Hand over one message that says nothing about others: the shortest way there is."""
        self._handed += 1
        self._handed_bytes += len(payload)
        self.outgoing.append(payload)
        if self.reading.turned_away:
            self.reading.welcome()

    def send_update(self, payload: bytes, item: Item) -> None:
        """The same for one that updates an item."""
        self._handed += 1
        self._handed_bytes += len(payload)
        self.outgoing.append((payload, item))
        if self.reading.turned_away:
            self.reading.welcome()

    def head(self) -> Outgoing:
        """What a turn gives to the stack next.

        Plain messages that were handed over alone, one behind the other, are a run; so are updates.
        """
        first = self.outgoing[0]
        if type(first) is bytes:
            payloads = cast("list[bytes]", self._alike(bytes))
            whole = Outgoing(payloads, size=sum(map(len, payloads)))
        elif type(first) is tuple:
            updates = cast("list[Update]", self._alike(tuple))
            payloads, items = [payload for payload, _ in updates], [item for _, item in updates]
            whole = Outgoing(payloads, annotations=items, size=sum(map(len, payloads)))
        else:
            return cast("Outgoing", first)
        self.outgoing.appendleft(whole)
        return whole

    def _alike(self, kind: type) -> list[object]:
        """Take what comes first and is of this kind, one behind the other."""
        outgoing = self.outgoing
        popleft, count = outgoing.popleft, min(len(outgoing), _RUN)
        taken = [popleft() for _ in range(count)]  # for each message: so as cheap as can be
        if {*map(type, taken)} != {kind}:
            upto = next(place for place, each in enumerate(taken) if type(each) is not kind)
            outgoing.extendleft(reversed(taken[upto:]))
            del taken[upto:]
        return cast("list[object]", taken)

    def taken(self, count: int, size: int) -> bool:
        """A turn took so many messages, with so many bytes; returns whether somebody waits for that."""
        self._taken_bytes += size
        self._taken += count
        return self.reading.waiting

    def wait(self, *, reading: bool) -> None:
        """A call waits for room; `reading` if nobody takes what is delivered until it has found some."""
        self.reading.wait(reading=reading)

    def waited(self, *, reading: bool) -> None:
        """That call waits no more."""
        self.reading.waited(reading=reading)

    def has_room(self, stack: Stack) -> bool:
        """Whether a list may be put into the mailbox.

        Nothing is sent in a view that the application was not told of. So where something is to be sent, all
        that comes before the newest view is put there, too; the stack counts it as if it still waited there.
        """
        mailbox = self.mailbox
        if mailbox.has_room() or self.unread:
            return True
        return stack.behind() and (self.unsent > 0 or self.reading.waiting or stack.pending() > 0)

    def overflow(self, stack: Stack) -> None:
        """The application waits, and there is no room for anything that could end that."""
        self.overflowing = True
        self.backlog = stack.queued() + self.mailbox.held - self.reader.excess
        self.overflows += 1

    def call(self, command: Command) -> None:
        """Have something done to the stack."""
        self.commands.append(command)

    def leave(self) -> None:
        """Leave the group once the stack has taken what was handed over; nothing may be handed over after."""
        self.leaving = self.reading.closing = True

    def go_on(self) -> None:
        """The application knows who it is now."""
        self.renewed = False

    # Receiving

    def begin(self) -> bool:
        """The application iterates; returns whether a turn has to see to that first.

        One that was skipped is told so before anything else: what lies here is older.
        """
        reading = self.reading
        reading.began = True
        if not reading.skipping or self.discarded is not None:
            return False
        count, view = 0, None
        while self.mailbox:
            for each in self.mailbox.take(0):
                if isinstance(each, Batch):
                    count += len(each.payloads)
                elif isinstance(each, ViewChange):
                    view = each.view
        self.discarded = count, view
        return True

    def __bool__(self) -> bool:
        """Whether there is something to take."""
        return bool(self._rest or self.mailbox.lists)

    def take(self, now: Nanos) -> Sequence[Delivery]:
        """The next list, up to where the application must have dealt with it; empty if there was only that.

        Its state is asked for, or restored, between two lists: by the time an application comes back for
        more, it has dealt with all it was given, so its state is the one at that point of the order. A hook
        that raises is called again the next time.
        """
        if not self._rest:
            self._rest = self.mailbox.take(now)
            self.reading.took()
        if self.hooks is None:
            everything, self._rest = self._rest, ()
            return everything
        first = self._rest[0]
        if isinstance(first, StateRequested | StateReceived):
            if first.view > self._stateless_upto:
                self._exchange(self.hooks, first)
            self._rest = self._rest[1:]
            return ()
        upto = next((place for place, each in enumerate(self._rest) if _is_state(each)), len(self._rest))
        found, self._rest = self._rest[:upto], self._rest[upto:]
        return found

    def at_state(self, now: Nanos) -> bool:
        """Whether the next thing to take asks for the state of the application, or brings it one."""
        if self.hooks is None:
            return False
        if not self._rest and self.mailbox:
            self._rest = self.mailbox.take(now)
            self.reading.took()
        first = self._rest[0] if self._rest else None
        return isinstance(first, StateRequested | StateReceived) and first.view > self._stateless_upto

    def do_without_state(self) -> None:
        """The application does not see what is taken for it: it has no state, and is asked for none."""
        self._stateless_upto = _EVER
        self.call(self._miss)

    def follow(self) -> None:
        """It sees everything again from here on, and needs the state of the group."""
        self.call(self._see_all)

    def _miss(self, stack: Stack, now: Nanos) -> None:
        self.reader.misses = True
        stack.on_reader(now)

    def _see_all(self, stack: Stack, now: Nanos) -> None:
        self._stateless_upto = stack.view().id  # what is on its way from before was not meant for it any more
        self.reader.misses = False
        stack.on_reader(now)

    @property
    def heeded(self) -> bool:
        """Whether a turn has to follow when the application has taken a list."""
        return self.more or not self.reading.calm

    def dealt_with(self, now: Nanos) -> None:
        """The application comes back for more."""
        self.mailbox.dealt_with(now)

    def put(self, deliveries: Sequence[Delivery]) -> None:
        """Leave a list for the application."""
        reader = self.reading.reader
        if self.mailbox.put(deliveries):
            reader.excess, reader.excess_bytes = self.reading.excess()
        else:
            reader.excess = reader.excess_bytes = 0

    def drop(self, deliveries: Sequence[Delivery]) -> None:
        """Nothing is kept for the application; one that may iterate later is told how much that was."""
        if self.reading.skipping:
            self.skipped += sum([len(each.payloads) for each in deliveries if isinstance(each, Batch)])
            views = [each.view for each in deliveries if isinstance(each, ViewChange)]
            self._missed = views[-1] if views else self._missed

    def asks_again(self) -> bool:
        """Whether an application that was skipped iterates at last."""
        return self.discarded is not None and self.reading.skipping

    def resume(self) -> Sequence[Delivery]:
        """What an application that was skipped is told first. From now on everything is kept for it."""
        assert self.discarded is not None
        count, seen = self.discarded
        view = self._missed or seen
        self.skipped += count
        self.reading.resume()
        if view is None:
            return (Skipped(self.skipped),)
        return Skipped(self.skipped), ViewChange(view, joined=view.members)

    def provide(self, asked: StateRequested, state: bytes) -> None:
        """The state at the point where a `StateRequested` came."""
        self.call(lambda stack, _now: stack.provide(asked.view, state))

    def _exchange(self, hooks: StateHooks, each: StateRequested | StateReceived) -> None:
        if isinstance(each, StateReceived):
            hooks.restore(each.state)
        else:
            self.provide(each, hooks.export())


def _is_state(each: Delivery) -> bool:
    return isinstance(each, StateRequested | StateReceived)
