"""Views as the application goes through them: it may still be in one that the group has left."""

from collections import deque
from collections.abc import Iterator

from semcast.core.events import Delivery, StateLost, StateReceived, StateRequested
from semcast.core.events import ViewChange as Installed
from semcast.protocols.semantic.backlog import Backlog
from semcast.protocols.vsync.stream import ViewStream


class Epoch:
    """A view as the application goes through it."""

    __slots__ = ("announced", "awaits", "event", "gives", "lost", "state", "stream")

    def __init__(
        self, event: Installed, stream: ViewStream, *, awaits: bool, gives: bool, lost: bool
    ) -> None:
        self.event = event
        self.stream = stream
        self.awaits = awaits
        """The state of the application is not here yet."""
        self.gives = gives
        """Others wait for this member's state at the beginning."""
        self.lost = lost
        """Nobody had the state any more."""
        self.state: bytes | None = None
        self.announced = False

    def announce(self) -> list[Delivery]:
        """What the application is told when it enters this view."""
        self.announced = True
        number = self.event.view.id
        told: list[Delivery] = []
        if self.lost:
            told.append(StateLost(number, "nobody is left who had the state"))
        if self.state is not None:
            told.append(StateReceived(number, self.state))
            self.state = None
        told.append(self.event)
        if self.gives:
            told.append(StateRequested(number))
        return told


class Epochs:
    """Those that the application has not gone through, the oldest first; the newest is the current view.

    Args:
        backlog: what waits for the application is whatever waits in these.
    """

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._epochs: deque[Epoch] = deque()

    def __len__(self) -> int:
        return len(self._epochs)

    def __iter__(self) -> Iterator[Epoch]:
        return iter(self._epochs)

    @property
    def oldest(self) -> Epoch | None:
        """The view that the application is in, or is about to enter; None before the first."""
        return self._epochs[0] if self._epochs else None

    @property
    def newest(self) -> Epoch:
        """The current view."""
        return self._epochs[-1]

    def drop_stateless(self) -> bool:
        """Another view begins: the state there covers all of one for which no state has come.

        Returns whether there was one.
        """
        found = bool(self._epochs) and self._epochs[-1].awaits
        if found:
            self._epochs.pop()
        return found

    def begin(self, epoch: Epoch) -> None:
        """The current view."""
        self._epochs.append(epoch)
        self._count()

    def got_state(self, state: bytes) -> None:
        """What the current view begins with."""
        self.newest.state, self.newest.awaits = state, False
        self._backlog.lacks_state = False

    def do_without_state(self) -> None:
        """The application takes nothing, and so needs none."""
        for epoch in self._epochs:
            epoch.awaits = False

    def up_to_date(self) -> bool:
        """Whether the application knows the current view."""
        return len(self._epochs) == 1 and self._epochs[0].announced

    def deliverable(self, current: ViewStream | None) -> bool:
        """Whether `deliver` would hand over anything."""
        if not self._epochs or self._epochs[0].awaits:
            return False
        first = self._epochs[0]
        return not first.announced or first.stream is not current or first.stream.deliverable()

    def deliver(self, most: int, current: ViewStream | None) -> list[Delivery]:
        """Messages, view by view, and between views what an application must know."""
        taken: list[Delivery] = []
        while self._epochs:
            epoch = self._epochs[0]
            if epoch.awaits:
                break
            if not epoch.announced:
                taken += epoch.announce()
            if most > 0:
                batches = epoch.stream.deliver(most)
                most -= sum([len(batch.payloads) for batch in batches])
                taken += batches
            if epoch.stream is current or len(epoch.stream.buffers.to_deliver):
                break
            self._epochs.popleft()
            self._count()
        return taken

    def buffered(self) -> int:
        """Messages in all buffers."""
        return sum(epoch.stream.buffered() for epoch in self._epochs)

    def _count(self) -> None:
        self._backlog.queues = [epoch.stream.buffers for epoch in self._epochs]
        self._backlog.lacks_state = bool(self._epochs) and self._epochs[0].awaits
