"""A bench for flow control: programs that answer, stop, publish or never read, with the smallest queues."""

from typing import Any

from tests.protocols.vsync.vsynclab import MS, Lab, Node

from semcast.core import Annotation, Batch
from semcast.core.events import Delivery
from semcast.core.handover import Handover
from semcast.core.ids import SECOND
from semcast.core.mailbox import Mailbox
from semcast.core.outgoing import Outgoing
from semcast.lab import EVERYTHING, Seat
from semcast.protocols.vsync import VirtualSynchrony, VsyncSettings

ANSWER = b"answer"
SIZE = 10
"""Bytes of a message, at most."""


class ProgramSeat(Seat):
    """A call that waits raises when the hand-over says so."""

    raised = 0

    def wake(self) -> None:
        super().wake()
        if self.waits and self.handover.overflowing:
            self.raised += 1
            self._held.clear()
            self._send_held()


class Program(Node):
    """Reads and answers each message of others so many times, until it stops."""

    answers = 0
    stops_after = 1 << 30
    to_publish = 0
    published = 0
    most_queued = 0
    annotation: Annotation | None = None
    padding = b""
    """What makes its messages large."""

    def seats(self) -> type[Seat]:
        return ProgramSeat

    handover_kind: type[Handover] = Handover

    def handover(self, given: VsyncSettings) -> Handover:
        handover = self.handover_kind(
            1, Mailbox(0), self, queue_messages=given.queue_messages, queue_bytes=given.stream().queue_size()
        )
        handover.mailbox.want = EVERYTHING
        return handover

    def on_delivery(self, each: Delivery) -> None:
        super().on_delivery(each)
        if not isinstance(each, Batch):
            return
        for payload in each.payloads:
            if len(self.messages) >= self.stops_after:
                self.seat.reads = False
            if each.sender != self.member and not payload.startswith(ANSWER):
                for _ in range(self.answers):
                    self.seat.send_or_wait(Outgoing([ANSWER]))

    def publish(self) -> int:
        """From a task that never reads."""
        return self.multicast(b"%d" % self.published + self.padding, annotation=self.annotation)

    def never_reads(self) -> None:
        """It has not iterated, and will not."""
        self.seat.reads = False
        self.seat.handover.reading.began = False

    @property
    def raised(self) -> int:
        assert isinstance(self.seat, ProgramSeat)
        return self.seat.raised

    @property
    def stuck(self) -> bool:
        """Whether it has something to send and cannot."""
        return self.alive and (self.seat.waits or self.published < self.to_publish)


class ProgramLab(Lab):
    """A group of programs, all with the same settings."""

    def __init__(
        self, kind: type[VirtualSynchrony] = VirtualSynchrony, names: str = "abc", **given: Any
    ) -> None:
        super().__init__(kind=kind)
        self.given: dict[str, Any] = {"queue_messages": 1, "buffer_messages": len(names) + 1, **given}
        for name in names:
            self.join(name, len(names) // 2 + 1)
        self.run(SECOND)
        assert set(self.phases().values()) == {"operational"}

    def join(self, name: str, minimum: int = 0, kind: type[Program] = Program) -> Program:
        node = self.add(name, kind=kind, **{**self.given, "minimum": minimum})
        assert isinstance(node, Program)
        return node

    def __getitem__(self, name: str) -> Program:
        node = self.nodes[name]
        assert isinstance(node, Program)
        return node

    def work(self, duration: int) -> None:
        """Let programs publish what they have to, one message at a time, and time pass."""
        for _ in range(duration):
            for name in self.nodes:
                node = self[name]
                if node.alive and node.published < node.to_publish:
                    node.published += node.publish()
            self.run(MS)
            for name in self.nodes:
                self[name].most_queued = max(self[name].most_queued, self[name].stack.queued())

    def stuck(self) -> list[str]:
        """Whose program has something to send, and cannot."""
        return [name for name in self.nodes if self[name].stuck]
