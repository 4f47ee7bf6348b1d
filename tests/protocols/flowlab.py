"""Programs that wait in `send`, never read, or stop reading, on a ring with the smallest queues."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from tests.protocols.ringlab import RingLab

from semcast.core import Annotation, Batch, Item, Nanos, ViewChange
from semcast.core.events import Delivery
from semcast.core.handover import Handover
from semcast.core.ids import MICROSECOND
from semcast.core.mailbox import Mailbox
from semcast.core.outgoing import Outgoing
from semcast.lab import Keeper, Seat
from semcast.protocols.ring import Ring, RingSettings, SlowPolicy
from semcast.protocols.ring.settings import OVERHEAD

LISTS = 2
"""Lists of one message that a mailbox has room for."""
EVER = 1 << 30


class Plan(NamedTuple):
    """What a program does: as in the model of `docs/flow-control.md`."""

    publishes: int = 0
    """Messages of a task of its own, which never reads."""
    answers: int = 0
    """Messages that its handler sends for each one that others publish."""
    to_answers: bool = False
    """Whether answers are answered, too."""
    reads: int = EVER
    """So many messages, then it stops."""
    policy: SlowPolicy = SlowPolicy.BLOCK
    items: int = 0
    """What it publishes is about so many items in turn; 0: nothing ever becomes obsolete."""
    padding: int = 0
    """Bytes that its messages have besides."""


class Program(Keeper):
    """One member's application."""

    def __init__(self, lab: "FlowLab", name: str, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.to_publish = deque(b"?%d" % number + bytes(plan.padding) for number in range(plan.publishes))
        self.heard: list[tuple[str, bytes]] = []
        self._lab, self._name = lab, name
        self._together = False

    def on_delivery(self, each: Delivery) -> None:
        if isinstance(each, ViewChange):
            self._together = len(each.view.members) > 1
        elif isinstance(each, Batch):
            for payload in each.payloads:
                self._hear(each.sender.name, payload)

    def _hear(self, sender: str, payload: bytes) -> None:
        seat, plan = self._lab.seats[self._name], self.plan
        self.heard.append((sender, payload))
        if sender != self._name and (plan.to_answers or payload.startswith(b"?")):
            for _ in range(plan.answers):
                seat.send_or_wait(Outgoing([b"!" + payload[1:]]))
        if len(self.heard) >= plan.reads:
            seat.reads = False

    def waiting(self) -> tuple[bytes, Annotation | None] | None:
        if not self.to_publish or not (self._together or not self.plan.reads):
            return None
        note = Item(str(len(self.to_publish) % self.plan.items)) if self.plan.items else None
        return self.to_publish[0], note

    def sent(self) -> None:
        self.to_publish.popleft()


class FlowSeat(Seat):
    """Counts the errors that sends end with: the program goes on without what it wanted to send."""

    errors = 0
    peak = 0
    """The most messages that waited for the program."""
    _overflows = 0

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        super().on_deliveries(now, deliveries)
        self._measure()

    def flush(self, now: Nanos) -> None:
        super().flush(now)
        self._measure()

    def wake(self) -> None:
        if self._overflows != self.handover.overflows:
            self._overflows = self.handover.overflows
            if self._held:
                self.errors += 1
                self._held.popleft()
        super().wake()

    def _measure(self) -> None:
        self.peak = max(self.peak, self.stack.queued())


class FlowLab(RingLab):
    """A ring of programs by plan."""

    seat = FlowSeat
    latency = 500 * MICROSECOND

    def __init__(
        self,
        plans: Mapping[str, Plan],
        settings: RingSettings,
        kind: type[Ring] = Ring,
        handover: type[Handover] = Handover,
    ) -> None:
        self._handover = handover
        self.programs = {name: Program(self, name, plan) for name, plan in plans.items()}
        super().__init__("".join(plans), settings, kind)
        for name, plan in plans.items():
            seat = self.flow_seat(name)
            seat.reads = seat.handover.reading.began = plan.reads > 0

    def settings_of(self, name: str) -> RingSettings:
        return msgspec.structs.replace(self._settings, policy=self.programs[name].plan.policy)

    def application(self, name: str) -> Program:
        return self.programs[name]

    def handover(self) -> Handover:
        mailbox = Mailbox(LISTS)
        mailbox.want = 1
        settings = self._settings
        return self._handover(
            1, mailbox, queue_messages=settings.queue_messages, queue_bytes=settings.queue_bytes
        )

    def flow_seat(self, name: str) -> FlowSeat:
        seat = self.seats[name]
        assert isinstance(seat, FlowSeat)
        return seat

    def crash(self, name: str) -> None:
        self.seats[name].alive = False

    def cut_off(self, *names: str) -> None:
        """They hear nobody, and nobody hears them."""
        self.carries = lambda source, dest, _frame: source not in names and dest not in names

    def heal(self) -> None:
        self.carries = lambda *_: True

    @property
    def errors(self) -> int:
        return sum(self.flow_seat(name).errors for name in self.seats)

    def stuck(self) -> set[str]:
        """Who has something to send, or something to read and would read it."""
        found = set()
        for name, seat in self.seats.items():
            ring = self.rings[name]
            sends = seat.waits or self.programs[name].to_publish or ring.pending() or seat.handover.unsent
            if seat.alive and ring.phase() != "left" and (sends or (seat.reads and ring.queued())):
                found.add(name)
        return found


def tight(names: str, *, reserve: int, queue: int = 1, send: int = 1, window: int = 1) -> RingSettings:
    """The smallest queues, a window of one packet a member, and a reserve of so many messages."""
    return RingSettings(
        queue_messages=queue,
        send_messages=send,
        reserve_bytes=reserve * (OVERHEAD + 4),
        window=max(window, len(names)),
        visit=max(1, window // 2),
        visit_least=1,
        packet_bytes=10,
    )


def under_way(settings: RingSettings, size: int) -> int:
    """V: messages under way when a stop is said, at worst."""
    return settings.window_of(size) * (settings.packet_bytes // 3 + 1)


def formula(names: str, *, queue: int = 1, send: int = 1, window: int = 1, answers: int = 1) -> int:
    """The reserve with which no send ever raises, if every member answers each message so often."""
    size = len(names)
    way = under_way(tight(names, reserve=0, queue=queue, send=send, window=window), size)
    return way + size * (answers * (queue + way + LISTS + 2) + 2 * send)
