"""Between an application and the turns of its member: what waits to be sent, and what waits to be taken.

The application may live in another thread. Nothing here needs a lock: each count has one writer, and each
queue has one side that puts and one that takes.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.events import Confirmed, Delivery, StateReceived, StateRequested, Unconfirmed
from semcast.core.ids import MILLISECOND, Nanos
from semcast.core.mailbox import Mailbox
from semcast.core.reader import Reader
from semcast.core.stack import Stack

RESERVE = 1 << 16
"""Messages that are delivered to an application that can take none, because it waits to send."""

LONG = 200 * MILLISECOND
"""Who has not come back for more for so long may be waiting for what it sends."""

Command = Callable[[Stack, Nanos], None]
"""Something to be done to a stack, in its next turn."""


class StateHooks(Protocol):
    """The state of an application, for who joins; used between two events that the program takes."""

    def export(self) -> bytes:
        """Everything that the events up to here made of the state."""

    def restore(self, state: bytes) -> None:
        """Forget the state, and go on from this one."""


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """Messages the application wants multicast."""

    payloads: Sequence[bytes]
    annotation: Annotation | None = None
    safe: bool = False
    annotations: Sequence[Annotation] | None = None
    """Or one for each of them."""
    confirm: tuple[int, bool] | None = None
    """A ticket, and whether it has to be safe: somebody waits to know what became of the last of them."""

    def after(self, taken: int) -> "Outgoing":
        """What is left of them."""
        notes = None if self.annotations is None else self.annotations[taken:]
        return Outgoing(self.payloads[taken:], self.annotation, self.safe, notes, self.confirm)


class Handover:
    """The application's side of its member. `Turn` works on the other side.

    Args:
        send_messages: how many messages may wait to be sent before the application has to wait, too.
        mailbox: for what is delivered.
        hooks: to the state of the application; None to hand over what is about it like anything else.
    """

    def __init__(
        self, send_messages: int, mailbox: Mailbox | None = None, hooks: StateHooks | None = None
    ) -> None:
        self.mailbox = Mailbox() if mailbox is None else mailbox
        self.hooks = hooks
        self.reader = Reader()
        """What the stack sees of the program."""
        self.outgoing: deque[Outgoing] = deque()
        """What the application handed over and no turn has given to the stack yet."""
        self.commands: deque[Command] = deque()
        self.answers: deque[Confirmed | Unconfirmed] = deque()
        """To those who wait to know what became of a message. They are no part of what is delivered."""
        self.members_wanted = 0
        """The application waits until its member is in a view of so many; 0 if it does not."""
        self.leaving = False
        """The application wants out once everything it handed over was taken."""
        self.unread = False
        """The application takes nothing any more: what is delivered is taken for it."""
        self.renewed = False
        """Another incarnation waits for `go_on` before it sends what was handed over."""
        self._waiters = 0  # calls that wait for room; written by the application
        self._stalled = 0  # of those, calls by who reads: nothing is taken until they have found room
        self._limit = send_messages
        self._handed = 0  # messages; written by the application
        self._taken = 0  # of those; written by turns
        self._rest: Sequence[Delivery] = ()

    # Sending

    @property
    def unsent(self) -> int:
        """Messages that were handed over and wait for the stack to take them."""
        return self._handed - self._taken

    def room_for(self, count: int) -> bool:
        """Whether so many messages may be handed over now; one call is always welcome where none waits."""
        unsent = self.unsent
        return not unsent or unsent + count <= self._limit

    def send(self, outgoing: Outgoing) -> None:
        """Hand messages over."""
        self._handed += len(outgoing.payloads)
        self.outgoing.append(outgoing)

    def taken(self, count: int) -> bool:
        """A turn took so many messages; returns whether somebody waits for that."""
        self._taken += count
        return self._waiters > 0

    def wait(self, *, reading: bool) -> None:
        """A call waits for room; `reading` if nobody takes what is delivered until it has found some."""
        self._waiters += 1
        self._stalled += reading

    def waited(self, *, reading: bool) -> None:
        """That call waits no more."""
        self._waiters -= 1
        self._stalled -= reading

    def has_room(self, now: Nanos, stack: Stack) -> bool:
        """Whether a list may be put into the mailbox.

        An application that answers what it reads, and has to wait for that, reads nothing meanwhile. Where
        only what it is given next can end that, it is given more than the mailbox holds, up to a bound. It
        may wait through another task than the one that reads: so one that has not come back for long counts.
        """
        mailbox = self.mailbox
        if mailbox.has_room() or self.unread:
            return True
        if not self._waiters or mailbox.held >= RESERVE:
            return False
        return (self._stalled > 0 or mailbox.busy_for(now) > LONG) and stack.behind()

    def call(self, command: Command) -> None:
        """Have something done to the stack."""
        self.commands.append(command)

    def leave(self) -> None:
        """Leave the group once the stack has taken what was handed over; nothing may be handed over after."""
        self.leaving = self.unread = True

    def go_on(self) -> None:
        """The application knows who it is now."""
        self.renewed = False

    # Receiving

    def __bool__(self) -> bool:
        """Whether there is something to take."""
        return bool(self._rest) or bool(self.mailbox)

    def take(self, now: Nanos) -> Sequence[Delivery]:
        """The next list, up to where the application must have dealt with it; empty if there was only that.

        Its state is asked for, or restored, between two lists: by the time an application comes back for
        more, it has dealt with all it was given, so its state is the one at that point of the order. A hook
        that raises is called again the next time.
        """
        if not self._rest:
            self._rest = self.mailbox.take(now)
        if self.hooks is None:
            everything, self._rest = self._rest, ()
            return everything
        first = self._rest[0]
        if isinstance(first, StateRequested | StateReceived):
            self._exchange(self.hooks, first)
            self._rest = self._rest[1:]
            return ()
        upto = next((place for place, each in enumerate(self._rest) if _is_state(each)), len(self._rest))
        found, self._rest = self._rest[:upto], self._rest[upto:]
        return found

    def dealt_with(self, now: Nanos) -> None:
        """The application comes back for more."""
        self.mailbox.dealt_with(now)

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
