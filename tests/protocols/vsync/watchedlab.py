"""A bench whose runs are recorded and judged: of the real protocol, and of protocols broken on purpose."""

from collections.abc import Sequence
from typing import Any

import msgspec
from tests.protocols.vsync.vsynclab import Lab, Node, settings

from semcast.core import Batch, Event, Item, MemberId, Nanos
from semcast.core.events import Delivery, Left, Purged, Sent, Thinned, ViewChange
from semcast.core.ids import SECOND
from semcast.history import Recorder, RunInfo
from semcast.lab import Disk, Seat
from semcast.protocols.vsync import VirtualSynchrony, VsyncSettings
from semcast.sim.replica import Record, RecordKind, Replicas
from semcast.sim.swarm import violated
from semcast.specs import check


class WatchedSeat(Seat):
    """Writes down what the stack says."""

    recorder: Recorder

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        super().on_events(now, events)
        for event in events:
            if isinstance(event, Sent):
                self.recorder.sent(now, self.member, event)
            elif isinstance(event, Purged | Thinned):
                for purged in event.receipts():
                    self.recorder.purge(now, self.member, purged)
            elif isinstance(event, Left):
                self.alive = False
                self.recorder.crash(now, self.member)


class WatchedNode(Node):
    """One process that keeps a state; what happens there is written down."""

    def __init__(self, lab: "WatchedLab", member: MemberId, given: VsyncSettings) -> None:
        super().__init__(lab, member, given)
        assert isinstance(self.seat, WatchedSeat)
        self.seat.recorder = self._recorder = lab.recorder
        self._transfers = given.state
        self._replicas = Replicas()
        self._values = 0

    def seats(self) -> type[Seat]:
        return WatchedSeat

    def update(self, *items: str) -> int:
        """Multicast updates: several as a run."""
        payloads = []
        for item in items:
            self._values += 1
            payloads.append(msgspec.msgpack.encode(Record(RecordKind.UPDATE, item, self._values)))
        if len(items) == 1:
            return self.multicast(*payloads, annotation=Item(items[0]))
        return self.multicast_each(payloads, list(map(Item, items)))

    def crash(self) -> None:
        self.seat.crash()
        self._recorder.crash(self.lab.now, self.member)

    def on_delivery(self, each: Delivery) -> None:
        now = self.lab.now
        if isinstance(each, Batch):
            self._recorder.deliver(now, self.member, each, each.order)
            self._replicas.apply(each)
        elif isinstance(each, ViewChange):
            self._recorder.view(now, self.member, each.view)
            if self._transfers:
                self.record_state(each.view.id)
        super().on_delivery(each)

    def export(self) -> bytes:
        return self._replicas.export()

    def restore(self, state: bytes) -> None:
        self._replicas.restore(state)

    def record_state(self, view: int | None = None) -> None:
        for sender, digest in self._replicas.digests():
            self._recorder.apply(self.lab.now, self.member, sender, digest, view)


class WatchedLab(Lab):
    """A group in which one kind of stack runs with the same settings everywhere."""

    def __init__(
        self, kind: type[VirtualSynchrony], names: str, *, disks: bool = False, **given: Any
    ) -> None:
        super().__init__(kind=kind)
        if disks:
            self.disks = {name: Disk() for name in "abcde"}
        self._given = given
        chosen = settings(**given)
        members = tuple(map(MemberId, names))
        self.recorder = Recorder(
            RunInfo.one(
                "lab",
                "lab",
                "vsync",
                None,
                members,
                None,
                uniform=chosen.uniform,
                quiesced=False,
                order=chosen.order.value,
            )
        )
        for name in names:
            self.join(name, len(names) // 2 + 1)
        if names:
            self.run(SECOND)
            assert set(self.phases().values()) == {"operational"}

    def join(self, name: str, minimum: int = 0, incarnation: int = 0) -> WatchedNode:
        node = self.add(name, incarnation, kind=WatchedNode, **{**self._given, "minimum": minimum})
        assert isinstance(node, WatchedNode)
        return node

    def __getitem__(self, name: str) -> WatchedNode:
        node = self.nodes[name]
        assert isinstance(node, WatchedNode)
        return node

    def broken(self) -> list[str]:
        """Which properties do not hold, once all that was owed has arrived."""
        for name in self.nodes:
            if self[name].alive:
                self[name].record_state()
        return [verdict.property for verdict in violated(check(self.recorder.close(quiesced=True)))]
