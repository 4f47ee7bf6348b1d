"""A daemon of lightweight groups as a stack, above any stack with extended virtual synchrony.

It sits in the turn of the one below and takes every delivery at once, so no client ever holds the ring back.
Clients are not the application of the stack: each has a session of its own in `machine.requests`. The
application is told of the daemons that are here, and sends nothing.
"""

from collections.abc import Callable, Sequence
from random import Random

from semcast.core.annotations import Annotation
from semcast.core.events import (
    Confirmed,
    Delivery,
    Left,
    TransitionalView,
    Unblocked,
    Unconfirmed,
    ViewChange,
)
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.views import View
from semcast.protocols.lightweight.machine import Machine
from semcast.protocols.lightweight.settings import LightweightSettings

Below = Callable[[MemberId, Random, Outbox], Stack]
"""Makes the group communication of the daemons."""

_PLENTY = 1 << 16


class LightweightTimer(Timer):
    """What a daemon waits for besides what the stack below does."""

    FLUSH = "flush"


class Lightweight(Stack):
    """One daemon.

    Args:
        me: who this is in the group communication.
        settings: of the daemon.
        below: makes the stack that delivers to it.
        rng: chance, for the stack below.
        out: for everything that it wants.
        machine: its kind, or a mutant.
    """

    def __init__(
        self,
        me: MemberId,
        settings: LightweightSettings,
        below: Below,
        rng: Random,
        out: Outbox,
        *,
        machine: type[Machine] = Machine,
    ) -> None:
        self.me = me
        self.settings = settings
        self.out = out
        self.machine_kind = machine
        self.machine = machine(me, settings, out)
        self.stats = self.machine.stats
        self._below = below
        self._inner_out = Outbox()
        self.inner = below(me, rng, self._inner_out)
        self._handed = 0  # messages that the stack below took
        self._refused = False  # it has no room
        self._leaving = False  # nothing is sent any more
        self._awaited = 0  # confirmations
        self._news: ViewChange | None = None  # the view that the application was not told of
        self._timer: Nanos | None = None
        self.heed: Callable[[], None] = _nobody
        """Called after every input: clients may have something to take, or room. The successor keeps it."""

    # Life

    def start(self, now: Nanos) -> None:
        """Begin alone, and look for the other daemons."""
        self.inner.start(now)
        self.settle(now)

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        """The daemon ends; its clients are gone from all groups with it. Nothing more of theirs is sent."""
        self._leaving = True
        self.inner.leave(now, cause)
        self.settle(now)

    def phase(self) -> str:
        """That of the stack below; "census" while the map of groups is not agreed on."""
        below = self.inner.phase()
        return "census" if below == "operational" and self.machine.census is not None else below

    def phases(self) -> tuple[str, ...]:
        """The same, and the phase below."""
        return self.phase(), self.inner.phase()

    def settled(self) -> bool:
        """Whether the daemons have begun to work."""
        return self.inner.settled()

    def view(self) -> View:
        """The configuration of the daemons."""
        return self.inner.view()

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> Stack | None:
        """Another daemon, which knows none of the clients."""
        successor = type(self)(member, self.settings, self._below, rng, out, machine=self.machine_kind)
        successor.heed = self.heed
        return successor

    # From the application

    def multicast(
        self,
        now: Nanos,  # noqa: ARG002
        payloads: Sequence[bytes],  # noqa: ARG002
        annotation: Annotation | None = None,  # noqa: ARG002
        *,
        safe: bool = False,  # noqa: ARG002
    ) -> int:
        """Only clients send."""
        raise ValueError("a daemon sends nothing itself: connect a client")

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
        if timer is LightweightTimer.FLUSH:
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
        """Take what is delivered, and send what there is to say, until both are done.

        Called after every input; by whoever lets clients do something, too.
        """
        machine, inner = self.machine, self.inner
        machine.now = now
        while True:
            self._drain()
            if inner.deliverable() and not machine.requests.held:
                for each in inner.deliver(now, _PLENTY):
                    self._hear(each)
                continue
            due = machine.tend()
            if self._leaving or self._refused or not self._send(now):
                break
        if due is not None and due != self._timer:
            self._timer = due
            self.out.set_timer(LightweightTimer.FLUSH, due)
        self.heed()

    def _hear(self, each: Delivery) -> None:
        machine = self.machine
        if type(each) is Batch:
            sender = each.sender
            for payload in each.payloads:
                machine.on_message(sender, payload)
        elif isinstance(each, TransitionalView):
            machine.on_transitional(each.view.members)
        elif isinstance(each, ViewChange):
            view = each.view
            machine.on_configuration(view.id, view.representative or view.members[0], view.members)
            self._news = ViewChange(view)

    def _send(self, now: Nanos) -> bool:
        """A run of messages that are all safe or all not; returns whether there was anything to send."""
        machine, sends = self.machine, self.machine.requests.sends
        if machine.parts:
            return self._hand_parts(now)
        if machine.census is not None or not machine.tag:
            return False
        room = self.settings.window - (self._handed - machine.placing.own)
        machine.requests.fill(room)
        if room <= 0 or not sends:
            return False
        safe = sends[0][1]
        bodies: list[bytes] = []
        for body, wanted in sends:
            if wanted != safe or len(bodies) == room:
                break
            bodies.append(body)
        tag = machine.tag
        taken = self._hand(now, [tag + body for body in bodies], safe=safe)
        for _ in range(taken):
            sends.popleft()
        return taken > 0

    def _hand_parts(self, now: Nanos) -> bool:
        parts = self.machine.parts
        taken = self._hand(now, parts, safe=False)
        del parts[:taken]
        return taken > 0

    def _hand(self, now: Nanos, payloads: list[bytes], *, safe: bool) -> int:
        taken = self.inner.multicast(now, payloads, safe=safe)
        self._refused = taken < len(payloads)
        if taken:
            self._handed += taken
            self.stats.sent += taken
            self._awaited += 1
            self.inner.confirm(now, self._handed, safe=True)
        return taken

    def _drain(self) -> None:
        """What the stack below wants from the world; what it says is for the machine."""
        inner, out = self._inner_out, self.out
        if self._awaited:
            self.inner.settle_confirmations()
        if inner.sends:
            out.sends += inner.sends
            inner.sends = []
        if inner.timers:
            out.timers += inner.timers
            inner.timers = []
        if inner.events:
            events, inner.events = inner.events, []
            for event in events:
                if isinstance(event, Confirmed):
                    self._awaited -= 1
                    self.machine.on_safe(event.ticket)
                elif isinstance(event, Unconfirmed):
                    self._awaited -= 1  # the configuration is over, which settles it as well
                elif isinstance(event, Unblocked):
                    self._refused = False
                elif isinstance(event, Left):
                    self._leaving = True
                    self.machine.requests.close(event.cause)
                    self.out.deliver(event)

    # To the application

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:  # noqa: ARG002
        """The configuration that the daemon is in, if the application was not told."""
        news, self._news = self._news, None
        return [] if news is None else [news]

    def deliverable(self) -> bool:
        """Whether there is another configuration."""
        return self._news is not None

    def pending(self) -> int:
        """What clients asked for that has no place yet."""
        machine = self.machine
        return len(machine.requests) + len(machine.parts) + self._handed - machine.placing.own

    def held_back(self) -> HeldBack | None:
        """Why it waits."""
        if self.machine.census is not None:
            return HeldBack(None, "the daemons agree on who is in which group")
        return self.inner.held_back()

    def buffered(self) -> int:
        """What waits here and below."""
        sessions = self.machine.requests.sessions.values()
        return self.inner.buffered() + len(self.machine.requests) + sum(map(len, sessions))


def _nobody() -> None:
    """Clients look for themselves."""
