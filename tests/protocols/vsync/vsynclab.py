"""A bench with real stacks: frames go through the real codec, and a test may lose them one by one."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from semcast.core import Annotation, Batch, Event, Frame, MemberId, Nanos, Outbox
from semcast.core.events import Delivery, ViewChange
from semcast.core.handover import Handover
from semcast.core.ids import MILLISECOND, SECOND
from semcast.core.outgoing import Outgoing
from semcast.lab import Disk, Keeper, Seat
from semcast.lab import Lab as Bench
from semcast.protocols.vsync import DetectorSettings, VirtualSynchrony, VsyncSettings
from semcast.protocols.vsync.frames import FRAMES as VSYNC_FRAMES
from semcast.protocols.vsync.frames import Hello
from semcast.wire import Codec

MS = MILLISECOND
Lost = Callable[[str, str, Frame], bool]


def settings(**given: Any) -> VsyncSettings:
    detector = DetectorSettings(
        heartbeat=20 * MS, timeout_initial=200 * MS, timeout_min=60 * MS, timeout_max=SECOND, margin=40 * MS
    )
    usual = {"minimum": 2, "detector": detector, "resend": 10 * MS, "hello": 40 * MS, "buffer_messages": 64}
    return VsyncSettings(**{**usual, **given})


TERMS = settings().terms()
"""Of who has set nothing else."""


def hello(*, founding: bool = False) -> Hello:
    return Hello(founding, None, TERMS)


class Node(Keeper):
    """One process, whose application takes everything at once."""

    def __init__(self, lab: "Lab", member: MemberId, given: VsyncSettings) -> None:
        super().__init__()
        self.lab = lab
        self.member = member
        self.stack = lab.kind(member, given, Random(str(member)), Outbox())
        self.messages: list[tuple[str, int, bytes]] = []
        self.views: list[list[str]] = []
        disk = lab.disks.get(member.name)
        self.seat = lab.bench.add(
            member, self.stack, self, self.handover(given), kind=self.seats(), disk=disk
        )

    def seats(self) -> type[Seat]:
        return Seat

    def handover(self, given: VsyncSettings) -> Handover | None:
        """None for one with nothing in it, so that all is purged that can be."""
        return None

    @property
    def alive(self) -> bool:
        return self.seat.alive

    @alive.setter
    def alive(self, value: bool) -> None:
        self.seat.alive = value

    @property
    def events(self) -> list[Event]:
        return self.seat.events

    def multicast(self, *payloads: bytes, annotation: Annotation | None = None) -> int:
        return self.seat.multicast(*payloads, annotation=annotation)

    def multicast_each(self, payloads: Sequence[bytes], annotations: Sequence[Annotation]) -> int:
        return self.seat.offer(Outgoing(payloads, annotations=annotations))

    def leave(self, cause: str = "asked to") -> None:
        self.seat.call(lambda stack, now: stack.leave(now, cause))

    def hear(self, source: MemberId, frame: Frame) -> None:
        self.seat.hear(source, frame)

    def on_delivery(self, each: Delivery) -> None:
        if isinstance(each, Batch):
            self.messages += [
                (str(each.sender), each.first + place, payload) for place, payload in enumerate(each.payloads)
            ]
        elif isinstance(each, ViewChange):
            self.views.append([str(member) for member in each.view.members])


class Lab:
    """A network on which everything takes the same time, and `lost` says what does not arrive."""

    def __init__(
        self, latency: Nanos = MS, kind: type[VirtualSynchrony] = VirtualSynchrony, *, bursts: bool = False
    ) -> None:
        self.kind = kind
        self.bench = Bench(latency=latency, codec=Codec("lab", [], 60_000, VSYNC_FRAMES), bursts=bursts)
        self.bench.carries = lambda source, dest, frame: not self.lost(source, dest, frame)
        self.nodes: dict[str, Node] = {}
        self.disks: dict[str, Disk] = {}
        """Of those who have one."""
        self.lost: Lost = lambda _source, _dest, _frame: False

    @property
    def now(self) -> Nanos:
        return self.bench.now

    def add(self, name: str, incarnation: int = 0, kind: type[Node] = Node, **given: Any) -> Node:
        node = self.nodes[name] = kind(self, MemberId(name, incarnation), settings(**given))
        node.seat.start()
        return node

    def run(self, duration: Nanos) -> None:
        self.bench.run(duration)

    def sent(self) -> list[Frame]:
        """What is under way."""
        return [frame for letter in self.bench.wire for frame in letter.frames]

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
