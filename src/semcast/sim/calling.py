"""Simulated members that call each other, above the ring or virtual synchrony.

The machine of calls sits in the turn of the stack below, and so does a program: it calls when a scenario says
so, and answers what it is asked, at once or after a while, or never. Some programs multicast a message of
their own before they answer: the caller must have it before the reply, where the group has causal order.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from random import Random

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.events import Delivery, Left, Note, Unblocked, ViewChange
from semcast.core.heldback import HeldBack
from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.views import View
from semcast.patterns.calls import ALL, MARK, ONE, CallRequest, Calls, Done, Notes, Run, marked
from semcast.sim.faults import Deed

Below = Callable[[MemberId, Random, Outbox], Stack]

_PLENTY = 1 << 16


class CallsSettings(msgspec.Struct, frozen=True, tag="calls"):
    """What the programs of a scenario are like, by the numbers of their members."""

    synchrony: bool = False
    """Whether the group has virtual synchrony; else it is a ring."""
    silent: tuple[int, ...] = ()
    """Programs that never answer."""
    idle: tuple[int, ...] = ()
    """Programs that answer no calls at all, and whose members say so."""
    slow: Nanos = 0
    """How long an answer takes, at most."""
    talks: float = 0.0
    """How often a program multicasts something before it answers."""


class CallingTimer(Timer):
    """When a program has worked out an answer, or somebody has waited long enough."""

    CALLS = "calls"


class Calling(Stack):
    """One member, its calls and its program.

    Args:
        me: who this is.
        settings: what programs are like.
        below: makes the group communication.
        rng: chance.
        out: for everything that it wants.
        machine: its kind, or a mutant.
    """

    def __init__(
        self,
        me: MemberId,
        settings: CallsSettings,
        below: Below,
        rng: Random,
        out: Outbox,
        *,
        machine: type[Calls] = Calls,
    ) -> None:
        self._inner_out = Outbox()
        self._begin(me, settings, below(me, rng, self._inner_out), rng, out, machine)

    def _begin(
        self,
        me: MemberId,
        settings: CallsSettings,
        inner: Stack,
        rng: Random,
        out: Outbox,
        machine: type[Calls],
    ) -> None:
        self.me = me
        self.settings = settings
        self.out = out
        self.inner = inner
        self.stats = inner.stats
        self.machine_kind = machine
        self.machine = machine(me, notes=Notes(out))
        number = int(me.name.strip("-")[1:])
        self.machine.serves = number not in settings.idle
        self._silent = number in settings.silent
        self._rng = Random(rng.getrandbits(64))
        self.queue: deque[tuple[bytes, Annotation | None]] = deque()
        """What waits to be multicast."""
        self.returned = 0
        """Calls that returned."""
        self._working: list[tuple[Nanos, int, CallRequest]] = []
        self._works = 0
        self._sent = 0
        self._refused = self._leaving = False
        self._news: ViewChange | None = None
        self._timer: Nanos | None = None

    # Life

    def start(self, now: Nanos) -> None:
        """Begin."""
        self.inner.start(now)
        self.settle(now)

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        """Nothing more is sent."""
        self._leaving = True
        self.inner.leave(now, cause)
        self.settle(now)

    def phase(self) -> str:
        """That of the stack below."""
        return self.inner.phase()

    def settled(self) -> bool:
        """Whether the group works."""
        return self.inner.settled()

    def view(self) -> View:
        """The view of the stack below."""
        return self.inner.view()

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> Stack | None:
        """Another incarnation, which knows nothing of the calls of this one."""
        inner_out = Outbox()
        inner = self.inner.successor(member, rng, inner_out)
        if inner is None:
            return None
        again = type(self).__new__(type(self))
        again._inner_out = inner_out
        again._begin(member, self.settings, inner, rng, out, self.machine_kind)
        return again

    # The program

    def call(self, now: Nanos, replies: str | int, to: int | MemberId, timeout: Nanos | None) -> None:
        """The program calls."""
        self.machine.call(now, b"?", replies, to, timeout)  # type: ignore[arg-type]
        self.settle(now)

    def _work(self, now: Nanos, request: CallRequest) -> None:
        if not self._silent:
            self._works += 1
            ready = now + (self._rng.randrange(self.settings.slow) if self.settings.slow else 0)
            heapq.heappush(self._working, (ready, self._works, request))

    def _answer_ready(self, now: Nanos) -> bool:
        answered = False
        while self._working and self._working[0][0] <= now:
            request = heapq.heappop(self._working)[2]
            self._talk()
            self.machine.answer(request.key, b"!", error=self._rng.random() < 0.1)
            self._collect()
            answered = True
        return answered

    def _talk(self) -> None:
        if self._rng.random() < self.settings.talks:
            self._sent += 1
            self.queue.append((str(self._sent).encode(), None))
            self.out.deliver(Note("call-sent", self.me, self._sent, 1))

    def _collect(self) -> None:
        """What the machine wants to send comes behind what waits already."""
        while self.machine.outgoing:
            self.queue.append((self.machine.outgoing.popleft(), MARK))

    # From the application

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,  # noqa: ARG002 (nothing is purged here)
        *,
        safe: bool = False,  # noqa: ARG002
    ) -> int:
        """The workload of the host: each message is a call that a majority answers."""
        for payload in payloads:
            self.machine.call(now, payload, "majority", ALL, SECOND)
        self.settle(now)
        return len(payloads)

    # From the world

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """For the stack below."""
        self.inner.on_frame(now, source, frame)
        self.settle(now)

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """The same for several."""
        self.inner.on_frames(now, source, frames)
        self.settle(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Its own, or one of the stack below."""
        if timer is CallingTimer.CALLS:
            self._timer = None
        else:
            self.inner.on_timer(now, timer)
        self.settle(now)

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """For the stack below."""
        self.inner.member_failed(now, member)
        self.settle(now)

    # Between the machine and the stack below

    def settle(self, now: Nanos) -> None:
        """Take what is delivered, answer what is ready, and send, until all is done."""
        inner = self.inner
        while True:
            self._drain()
            self._collect()
            if inner.deliverable():
                for each in inner.deliver(now, _PLENTY):
                    self._hear(now, each)
                continue
            self.machine.expire(now)
            self._obey(now)
            if self._answer_ready(now):
                continue
            if self._leaving or self._refused or not self._send(now):
                break
        self._set_timer()

    def _set_timer(self) -> None:
        moments = [self.machine.next_at(), self._working[0][0] if self._working else None]
        due = min((at for at in moments if at is not None), default=None)
        if due is not None and due != self._timer:
            self._timer = due
            self.out.set_timer(CallingTimer.CALLS, due)

    def _obey(self, now: Nanos) -> None:
        for effect in self.machine.take_effects():
            if isinstance(effect, Run):
                self._work(now, effect.request)
            elif isinstance(effect, Done):
                self.returned += 1

    def _hear(self, now: Nanos, each: Delivery) -> None:
        if isinstance(each, Batch) and not marked(each):
            for payload in each.payloads:
                self.out.deliver(Note("call-told", each.sender, int(payload), 1))
            return
        self.machine.on_delivery(now, each)
        self._obey(now)
        if isinstance(each, ViewChange):
            self._news = ViewChange(each.view)

    def _send(self, now: Nanos) -> bool:
        if not self.queue:
            return False
        payload, note = self.queue[0]
        if not self.inner.multicast(now, [payload], note):
            self._refused = True
            return False
        self.queue.popleft()
        return True

    def _drain(self) -> None:
        """What the stack below wants from the world."""
        inner, out = self._inner_out, self.out
        out.sends += inner.sends
        out.timers += inner.timers
        events = inner.events
        inner.sends, inner.timers, inner.events = [], [], []
        for event in events:
            if isinstance(event, Unblocked):
                self._refused = False
            elif isinstance(event, Left):
                self._leaving = True
                self.machine.end(event.cause)
                self.queue.clear()
                out.deliver(event)

    # To the application

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:  # noqa: ARG002
        """The view, if the application was not told."""
        news, self._news = self._news, None
        return [] if news is None else [news]

    def deliverable(self) -> bool:
        """Whether there is another view."""
        return self._news is not None

    def pending(self) -> int:
        """What waits to be sent."""
        return 0 if self._leaving else len(self.queue) + self.inner.pending()

    def held_back(self) -> HeldBack | None:
        """Why it waits."""
        return self.inner.held_back()

    def buffered(self) -> int:
        """What waits below."""
        return self.inner.buffered()


class PlaceCall(Deed, frozen=True, tag="call", kw_only=True):
    """A program calls."""

    replies: str | int = "all"
    to: int | None = None
    """The number of a member; None for all, -1 for one of them."""
    timeout: Nanos | None = 500 * MILLISECOND

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:
        """If its member is there."""
        stack = stacks[self.member]
        assert isinstance(stack, Calling)
        if stack.phase() != "left":
            stack.call(now, self.replies, self._whom(stacks), self.timeout)

    def _whom(self, stacks: Sequence[Stack]) -> int | MemberId:
        if self.to is None:
            return ALL
        if self.to < 0:
            return ONE
        addressee = stacks[self.to]
        assert isinstance(addressee, Calling)
        return addressee.me
