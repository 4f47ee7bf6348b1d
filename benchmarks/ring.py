"""The ring in memory: three stacks in one process, no network, beside the same messages through a deque."""

import time
from collections import deque
from random import Random

from benchmarks.rows import Row, against
from semcast.core import Batch, Frame, MemberId, Nanos, Outbox, Timer
from semcast.protocols.ring import Ring, RingSettings

MEMBERS = 3
MESSAGES = 300_000
AT_ONCE = 1000
PAYLOAD = b"x" * 64


def run() -> list[Row]:
    floor = deque_floor()
    target = ">= 600,000 messages/s"
    return [
        against("ring of 3, packets of 1300 B / deque", _ring(1300), "messages/s", floor, target),
        against("ring of 3, packets of 8 KB / deque", _ring(8000), "messages/s", floor, target),
        against("ring of 3, not accelerated / deque", _ring(1300, accelerated=0), "messages/s", floor, ""),
    ]


class Bench:
    """Carries frames between the members, in order and at once."""

    def __init__(self, packet_bytes: int, accelerated: int) -> None:
        settings = RingSettings(
            packet_bytes=packet_bytes,
            queue_messages=1 << 20,
            send_messages=4 * AT_ONCE,
            adaptive=False,
            accelerated=accelerated,
        )
        self.now: Nanos = 0
        self.members = [MemberId(f"p{number}") for number in range(MEMBERS)]
        self.rings = {
            member: Ring(member, settings, Random(number), Outbox())
            for number, member in enumerate(self.members)
        }
        self.delivered = dict.fromkeys(self.members, 0)
        self._inbox: dict[MemberId, deque[tuple[MemberId, Frame]]] = {m: deque() for m in self.members}
        self._timers: dict[tuple[MemberId, Timer], Nanos] = {}

    def form(self) -> None:
        for member, ring in self.rings.items():
            ring.start(self.now)
            self.drain(member)
        while any(len(ring.order.members) < MEMBERS for ring in self.rings.values()):
            self.turn()

    def turn(self) -> None:
        """Let every member handle what has come; if nothing has, let the next timer fire."""
        busy = False
        for member in self.members:
            inbox, ring = self._inbox[member], self.rings[member]
            if inbox:
                busy = True
                self._inbox[member] = deque()
                for source, frame in inbox:
                    ring.on_frame(self.now, source, frame)
                self.drain(member)
        if not busy:
            (member, timer), at = min(self._timers.items(), key=lambda due: (due[1], due[0][0]))
            del self._timers[member, timer]
            self.now = max(self.now, at)
            self.rings[member].on_timer(self.now, timer)
            self.drain(member)

    def drain(self, member: MemberId) -> None:
        ring = self.rings[member]
        out = ring.out
        if ring.deliverable():
            batches = ring.deliver(self.now, 1 << 30)
            self.delivered[member] += sum([len(b.payloads) for b in batches if type(b) is Batch])
        for timer, at in out.timers:
            if at is None:
                self._timers.pop((member, timer), None)
            else:
                self._timers[member, timer] = at
        out.timers.clear()
        out.events.clear()
        for dest, frame in out.sends:
            for other in self.members if dest is None else (dest,):
                if other is not member:
                    self._inbox[other].append((member, frame))
        out.sends.clear()


def _ring(packet_bytes: int, accelerated: int = 16) -> float:
    """Messages a second of processor time, ordered and delivered at all members."""
    bench = Bench(packet_bytes, accelerated)
    bench.form()
    payloads = [PAYLOAD] * AT_ONCE
    started = time.process_time()
    sent = 0
    while min(bench.delivered.values()) < MESSAGES:
        for member, ring in bench.rings.items():
            if sent < MESSAGES:
                sent += ring.multicast(bench.now, payloads)
                bench.drain(member)
        bench.turn()
    return MESSAGES / (time.process_time() - started)


def deque_floor() -> float:
    """The floor: the same messages through a queue for each member, one by one."""
    queues: list[deque[bytes]] = [deque() for _ in range(MEMBERS)]
    started = time.process_time()
    for _ in range(MESSAGES // AT_ONCE):
        for _ in range(AT_ONCE):
            for queue in queues:
                queue.append(PAYLOAD)
        for queue in queues:
            while queue:
                queue.popleft()
    return MESSAGES / (time.process_time() - started)
