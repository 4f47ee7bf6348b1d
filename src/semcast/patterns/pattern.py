"""What all patterns have in common: they sit between the application and a stack.

A pattern is told what the stack delivers, in order, and says what it wants to multicast, one message after
the other: an annotation names earlier messages, so the next can be made only once the last has left. Nothing
here waits, or knows of time. A pattern is an application of a lab (`semcast.lab`) as it is; `take` and
`multicast_waiting` are for whoever puts one directly on a stack.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

from semcast.core.annotations import Annotation
from semcast.core.events import Delivery, StateReceived, StateRequested, ViewChange
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch, Message
from semcast.core.stack import Stack
from semcast.core.views import View


class PatternMessage(NamedTuple):
    """A message to multicast."""

    payload: bytes
    annotation: Annotation | None


class Numbered(Protocol):
    """An answer to a call of the application that returned a number."""

    @property
    def number(self) -> int:
        """That number."""


class Pattern(ABC):
    """One member's part in a group that does nothing else."""

    order: ClassVar[str] = "fifo"
    """The order of messages that it needs at least."""

    def __init__(self, me: MemberId) -> None:
        self.me = me
        self.view: View | None = None
        """The view the application is in; None before the first."""
        self.refused = 0
        """Messages of the group that were none of ours."""

    # From the stack

    def on_delivery(self, each: Delivery) -> None:
        """The stack delivered this. Who joins is asked for its state with `export`."""
        if isinstance(each, Batch):
            for message in each.messages():
                self._on_message(message)
        elif isinstance(each, ViewChange):
            self.view = each.view
            self._on_view(each)
        elif isinstance(each, StateReceived):
            self.restore(each.state)

    @abstractmethod
    def export(self) -> bytes:
        """The state at the beginning of a view, for those who join."""

    @abstractmethod
    def restore(self, state: bytes) -> None:
        """Somebody exported this at the beginning of the view that follows."""

    # To the application

    def take_answers(self) -> Sequence[Numbered]:
        """The answers that came since the last call, where it answers anything."""
        return ()

    # To the stack

    @abstractmethod
    def waiting(self) -> PatternMessage | None:
        """The next message to multicast; the same until `sent` or a change of view."""

    @abstractmethod
    def sent(self) -> None:
        """It was accepted."""

    # Inside

    @abstractmethod
    def _on_message(self, message: Message) -> None:
        """A message was delivered."""

    @abstractmethod
    def _on_view(self, change: ViewChange) -> None:
        """A view was installed: everything of the one before has been delivered."""


class Receiver(Protocol):
    """A pattern, or an application that passes on to one what it is told."""

    def on_delivery(self, each: Delivery) -> None:
        """The stack delivered this."""

    def export(self) -> bytes:
        """The state at the beginning of a view."""


def multicast_waiting(now: Nanos, pattern: Pattern, stack: Stack) -> int:
    """Multicast what a pattern wants to, as far as flow control allows; returns how many messages.

    To be called after everything that can make room, or a wish: the application, `take`, a frame, a timer.
    """
    done = 0
    while (message := pattern.waiting()) is not None:
        if not stack.multicast(now, [message.payload], message.annotation):
            break
        done += 1
        pattern.sent()
    return done


def take(now: Nanos, receiver: Receiver, stack: Stack, most: int) -> Sequence[Delivery]:
    """Hand over what a stack delivers, `most` messages at most, and the state if somebody joins."""
    deliveries = stack.deliver(now, most)
    for each in deliveries:
        if isinstance(each, StateRequested):
            stack.provide(each.view, receiver.export())
        else:
            receiver.on_delivery(each)
    return deliveries
