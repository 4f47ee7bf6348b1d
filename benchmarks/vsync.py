"""Virtual synchrony in memory: three stacks in one process, beside the same messages through a deque.

All of them send; nothing is lost, and only timers make time pass. Rates are of processor time. The kinds take
turns, and the best round of each counts: other programs use the machine, too.
"""

import time
from collections import deque
from random import Random

import msgspec

from benchmarks.ring import AT_ONCE, MEMBERS, PAYLOAD, deque_floor
from benchmarks.rows import Row, against
from semcast.core import Batch, Frame, MemberId, Nanos, Outbox, Timer
from semcast.protocols.vsync import Engine, Order, VirtualSynchrony, VsyncSettings

MESSAGES = 200_000
ROUNDS = 5
FRAME = 8000
LARGE_FRAME = 60_000

BASE = VsyncSettings(minimum=MEMBERS, buffer_messages=1 << 16, window=1 << 16, frame_bytes=FRAME)
KINDS = {
    "fifo": BASE,
    "causal": msgspec.structs.replace(BASE, order=Order.CAUSAL),
    "token": msgspec.structs.replace(BASE, order=Order.TOTAL, engine=Engine.TOKEN),
    "consensus": msgspec.structs.replace(BASE, order=Order.TOTAL, engine=Engine.CONSENSUS),
    "large": msgspec.structs.replace(BASE, frame_bytes=LARGE_FRAME),
    "small": msgspec.structs.replace(BASE, frame_bytes=1300),
}


def run() -> list[Row]:
    floor = deque_floor()
    best = dict.fromkeys(KINDS, 0.0)
    for _ in range(ROUNDS):
        for kind, settings in KINDS.items():
            best[kind] = max(best[kind], rate(settings))
    fifo, unit = best["fifo"], "messages/s"
    return [
        against("FIFO of 3, frames of 8 KB / deque", fifo, unit, floor, ">= 400,000 messages/s"),
        against("FIFO of 3, frames of 60 KB / deque", best["large"], unit, floor, ""),
        against("FIFO of 3, frames of 1300 B / deque", best["small"], unit, floor, ""),
        against("causal / FIFO", best["causal"], unit, fifo, ">= 0.80"),
        against("total, token / FIFO", best["token"], unit, fifo, ">= 0.50"),
        against("total, consensus / FIFO", best["consensus"], unit, fifo, ""),
    ]


class Bench:
    """Carries frames between the members, in order and at once."""

    def __init__(self, settings: VsyncSettings) -> None:
        self.now: Nanos = 0
        self.members = [MemberId(f"p{number}") for number in range(MEMBERS)]
        self.stacks = {
            member: VirtualSynchrony(member, settings, Random(number), Outbox())
            for number, member in enumerate(self.members)
        }
        self.delivered = dict.fromkeys(self.members, 0)
        self._inbox: dict[MemberId, deque[tuple[MemberId, Frame]]] = {m: deque() for m in self.members}
        self._timers: dict[tuple[MemberId, Timer], Nanos] = {}

    def form(self) -> None:
        for member, stack in self.stacks.items():
            stack.start(self.now)
            self.drain(member)
        while any(len(stack.view().members) < MEMBERS for stack in self.stacks.values()):
            self.turn()

    def turn(self) -> None:
        """Let every member handle what has come; if nothing has, let the next timer fire."""
        busy = False
        for member in self.members:
            inbox, stack = self._inbox[member], self.stacks[member]
            if inbox:
                busy = True
                self._inbox[member] = deque()
                for source, frame in inbox:
                    stack.on_frame(self.now, source, frame)
                self.drain(member)
            busy = self._due(member) or busy
        if not busy:
            (member, timer), at = min(self._timers.items(), key=lambda due: (due[1], due[0][0]))
            self.now = max(self.now, at)
            self._fire(member, timer)

    def drain(self, member: MemberId) -> None:
        stack = self.stacks[member]
        out = stack.out
        if stack.deliverable():
            batches = stack.deliver(self.now, 1 << 30)
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

    def _due(self, member: MemberId) -> bool:
        """What a member asked for at the end of this burst."""
        due = [timer for (whose, timer), at in self._timers.items() if whose is member and at <= self.now]
        for timer in due:
            self._fire(member, timer)
        return bool(due)

    def _fire(self, member: MemberId, timer: Timer) -> None:
        del self._timers[member, timer]
        self.stacks[member].on_timer(self.now, timer)
        self.drain(member)


def rate(settings: VsyncSettings) -> float:
    """Messages a second of processor time, delivered at all members."""
    bench = Bench(settings)
    bench.form()
    payloads = [PAYLOAD] * AT_ONCE
    sent = dict.fromkeys(bench.members, 0)
    started = time.process_time()
    while min(bench.delivered.values()) < MESSAGES:
        for member, stack in bench.stacks.items():
            if sum(sent.values()) < MESSAGES:
                sent[member] += stack.multicast(bench.now, payloads)
                bench.drain(member)
        bench.turn()
    return MESSAGES / (time.process_time() - started)
