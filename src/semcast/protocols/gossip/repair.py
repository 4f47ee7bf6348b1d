"""What the three protocols differ in: how a member comes by what it missed."""

from abc import ABC, abstractmethod

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.spans import Span
from semcast.protocols.gossip.streams import Stream


class Repair(ABC):
    """One way of repairing, for one member."""

    repeats_heartbeat = False
    """Whether an idle sender says its number again and again, or only once."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @abstractmethod
    def on_round(self, now: Nanos) -> None:
        """A gossip period is over."""

    def on_gaps(  # noqa: B027 (not all ask at once)
        self, now: Nanos, stream: Stream, gaps: list[Span]
    ) -> None:
        """These were just found missing."""

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> bool:  # noqa: ARG002
        """A frame of this protocol arrived; False if it is none."""
        return False
