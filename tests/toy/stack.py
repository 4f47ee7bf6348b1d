"""The toy: a fixed list of members, FIFO, and everything is said again until all have heard it."""

from collections import deque
from collections.abc import Sequence

import msgspec
from tests.toy.frames import Heard, Said

from semcast.core import Annotation, Batch, Frame, MemberId, Nanos, Outbox, Stack, Statistics, Timer, View
from semcast.core.confirming import Asked, Confirming
from semcast.core.events import Blocked, Unblocked, ViewChange
from semcast.core.ids import MILLISECOND
from semcast.core.messages import batch_of
from semcast.wire.annotations import from_wire, to_wire


class ToySettings(msgspec.Struct, frozen=True):
    """What all members have set alike, or not: nothing depends on it."""

    most: int = 64
    """Own messages that not all have heard; and messages that wait for the application."""
    again: Nanos = 20 * MILLISECOND
    """After how long they are said again."""

    def __post_init__(self) -> None:
        if self.most < 1 or self.again < 1:
            raise ValueError("both must be at least 1")


class ToyTimer(Timer):
    """What the toy waits for."""

    AGAIN = "again"


class Toy(Stack):
    """One member."""

    def __init__(self, me: MemberId, members: Sequence[MemberId], settings: ToySettings, out: Outbox) -> None:
        self.out = out
        self.stats = Statistics()
        self._me = me
        self._members = tuple(members)
        self._settings = settings
        self._sent = 0
        self._confirming = Confirming(out)
        self._unheard: deque[Said] = deque()
        self._heard = {member: 0 for member in members if member != me}  # of mine, by each of the others
        self._next = dict.fromkeys(self._heard, 1)  # of each of the others
        self._waiting: deque[Batch] = deque()
        self._blocked = False
        self._timed = False

    def start(self, now: Nanos) -> None:
        self.out.deliver(ViewChange(self.view(), joined=self._members))

    def phase(self) -> str:
        return "operational"

    def view(self) -> View:
        return View(1, self._members)

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        assert not safe, "its family says that there is no safe order"
        for taken, payload in enumerate(payloads):
            if max(len(self._unheard), len(self._waiting)) >= self._settings.most:
                if not self._blocked:
                    self._blocked = True
                    self.out.deliver(Blocked())
                return taken
            self._say(now, payload, annotation)
        return len(payloads)

    def _say(self, now: Nanos, payload: bytes, annotation: Annotation | None) -> None:
        self._sent += 1
        self.stats.sent += 1
        said = Said(self._sent, payload, to_wire(annotation))
        self._waiting.append(batch_of(self._me, self._sent, [payload], annotation))
        if self._heard:
            self._unheard.append(said)
            self.out.multicast(said)
            self._wait(now)

    def confirm(self, now: Nanos, ticket: int, *, safe: bool) -> None:
        self._confirming.ask(Asked(ticket, self._sent, safe))

    def settle_confirmations(self) -> None:
        """What is said is delivered here at once; everybody has what all have heard."""
        least = min(self._heard.values(), default=self._sent)
        self._confirming.settle(self.view(), delivered=self._sent, safe=least)

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        if source not in self._next:
            self.stats.malformed += 1
        elif isinstance(frame, Said):
            self._on_said(source, frame)
        elif isinstance(frame, Heard) and frame.upto <= self._sent:
            self._on_heard(source, frame.upto)
        else:
            self.stats.malformed += 1

    def _on_said(self, source: MemberId, said: Said) -> None:
        """Only the next one, and only where there is room: it will be said again."""
        if said.seq < self._next[source]:
            self.stats.duplicates += 1
        if said.seq == self._next[source] and len(self._waiting) < self._settings.most:
            self._next[source] += 1
            self._waiting.append(batch_of(source, said.seq, [said.payload], from_wire(said.annotation)))
        self.out.send(source, Heard(self._next[source] - 1))

    def _on_heard(self, source: MemberId, upto: int) -> None:
        if source in self._heard:
            self._heard[source] = max(self._heard[source], upto)
            self._forget()

    def _forget(self) -> None:
        """What all have heard need not be said again."""
        least = min(self._heard.values(), default=self._sent)
        while self._unheard and self._unheard[0].seq <= least:
            self._unheard.popleft()
        self._unblock()

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        self._timed = False
        for said in self._unheard:
            self.stats.retransmitted += 1
            self.out.multicast(said)
        self._wait(now)

    def _wait(self, now: Nanos) -> None:
        if self._unheard and not self._timed:
            self._timed = True
            self.out.set_timer(ToyTimer.AGAIN, now + self._settings.again)

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        self._heard.pop(member, None)
        self._forget()

    def deliver(self, now: Nanos, most: int) -> Sequence[Batch]:
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self.stats.delivered += len(taken)
        if taken:
            self._unblock()
        return taken

    def deliverable(self) -> bool:
        return bool(self._waiting)

    def behind(self) -> bool:
        return len(self._waiting) >= self._settings.most

    def buffered(self) -> int:
        return max(len(self._unheard), len(self._waiting))

    def _unblock(self) -> None:
        if self._blocked:
            self._blocked = False
            self.out.deliver(Unblocked())


class SaidOnce(Toy):
    """A mutant: what was lost is not said again."""

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        self._unheard.clear()
        self._unblock()
