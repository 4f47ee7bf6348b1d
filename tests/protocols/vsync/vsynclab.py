"""A bench with real stacks: frames go through the real codec, and a test may lose them one by one."""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from semcast.core import Batch, Event, Frame, MemberId, Nanos, Outbox, Timer
from semcast.core.events import Delivery, StateRequested, ViewChange
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.vsync import DetectorSettings, VirtualSynchrony, VsyncSettings
from semcast.protocols.vsync.frames import FRAMES as VSYNC_FRAMES
from semcast.wire import Codec, Datagram

MS = MILLISECOND
Lost = Callable[[str, str, Frame], bool]


def settings(**given: Any) -> VsyncSettings:
    detector = DetectorSettings(
        heartbeat=20 * MS, timeout_initial=200 * MS, timeout_min=60 * MS, timeout_max=SECOND, margin=40 * MS
    )
    usual = {"minimum": 2, "detector": detector, "resend": 10 * MS, "hello": 40 * MS, "buffer_messages": 64}
    return VsyncSettings(**{**usual, **given})


class Node:
    """One process, whose application takes everything at once."""

    def __init__(self, lab: "Lab", member: MemberId, given: VsyncSettings) -> None:
        self.lab = lab
        self.member = member
        self.stack = lab.kind(member, given, Random(str(member)), Outbox())
        self.alive = True
        self.messages: list[tuple[str, int, bytes]] = []
        self.views: list[list[str]] = []
        self.events: list[Event] = []
        self._timers: dict[Timer, Nanos] = {}

    def input(self, call: Callable[..., Any], *args: Any) -> Any:
        result = call(self.lab.now, *args)
        self._drain()
        return result

    def multicast(self, *payloads: bytes) -> int:
        taken: int = self.input(self.stack.multicast, payloads)
        return taken

    def hear(self, source: MemberId, frame: Frame) -> None:
        if self.alive:
            self.input(self.stack.on_frame, source, frame)

    def _drain(self) -> None:
        out = self.stack.out
        while out.sends or out.timers or out.events or (self.stack.deliverable() and not self.stack.left):
            for timer, at in out.timers:
                self._timers.pop(timer, None)
                if at is not None:
                    self._timers[timer] = at
                    self.lab.at(at, self._fire, timer, at)
            self.note(out.events)
            sends = out.sends
            out.timers, out.events, out.sends = [], [], []
            for dest, frame in sends:
                self.lab.transmit(self, dest if isinstance(dest, MemberId) else None, frame)
            if not self.stack.left:
                self._take()

    def note(self, events: list[Event]) -> None:
        self.events += events

    def _take(self) -> None:
        for each in self.stack.deliver(self.lab.now, 1 << 30):
            self.got(each)

    def got(self, each: Delivery) -> None:
        if isinstance(each, Batch):
            self.messages += [
                (str(each.sender), each.first + place, payload) for place, payload in enumerate(each.payloads)
            ]
        elif isinstance(each, ViewChange):
            self.views.append([str(member) for member in each.view.members])
        elif isinstance(each, StateRequested):
            self.stack.provide(each.view, b"state")

    def _fire(self, timer: Timer, at: Nanos) -> None:
        if self.alive and self._timers.get(timer) == at:
            del self._timers[timer]
            self.input(self.stack.on_timer, timer)


class Lab:
    """A network on which everything takes the same time, and `lost` says what does not arrive."""

    def __init__(self, latency: Nanos = MS, kind: type[VirtualSynchrony] = VirtualSynchrony) -> None:
        self.kind = kind
        self.now: Nanos = 0
        self.nodes: dict[str, Node] = {}
        self.lost: Lost = lambda _source, _dest, _frame: False
        self._latency = latency
        self._queue: list[tuple[Nanos, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()
        self._codec = Codec("lab", [], 60_000, VSYNC_FRAMES)

    def add(self, name: str, incarnation: int = 0, kind: type[Node] = Node, **given: Any) -> Node:
        node = self.nodes[name] = kind(self, MemberId(name, incarnation), settings(**given))
        node.input(node.stack.start)
        return node

    def at(self, at: Nanos, call: Callable[..., None], *args: Any) -> None:
        heapq.heappush(self._queue, (at, next(self._numbers), call, args))

    def transmit(self, source: Node, dest: MemberId | None, frame: Frame) -> None:
        for data in self._codec.encode(source.member, [frame]):
            decoded = self._codec.decode(data)
            assert isinstance(decoded, Datagram), f"{frame} does not decode"
            for name, node in self.nodes.items():
                wanted = node is not source and (dest is None or dest.name == name)
                if wanted and not self.lost(source.member.name, name, decoded.frames[0]):
                    self.at(self.now + self._latency, node.hear, source.member, decoded.frames[0])

    def run(self, duration: Nanos) -> None:
        end = self.now + duration
        while self._queue and self._queue[0][0] <= end:
            self.now, _, call, args = heapq.heappop(self._queue)
            call(*args)
        self.now = end

    def phases(self) -> dict[str, str]:
        return {name: node.stack.phase() for name, node in self.nodes.items() if node.alive}


def group(names: str = "abc", latency: Nanos = MS, **given: Any) -> Lab:
    """A group that has founded itself."""
    lab = Lab(latency)
    for name in names:
        lab.add(name, **{"minimum": len(names) // 2 + 1, **given})
    lab.run(SECOND)
    assert set(lab.phases().values()) == {"operational"}
    return lab
