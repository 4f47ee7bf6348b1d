"""The contract between a protocol stack and whatever drives it."""

from collections.abc import Sequence
from typing import Protocol

from semcast.core.annotations import Annotation
from semcast.core.events import Delivery
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.statistics import Statistics
from semcast.core.views import View


class Stack(Protocol):
    """Inputs are methods, outputs go to `out`; messages are pulled, so that back-pressure is natural."""

    out: Outbox
    stats: Statistics

    def start(self, now: Nanos) -> None:
        """Begin: called once, before any other input."""

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        """Multicast as many of `payloads` as flow control allows, in order; returns how many.

        With `safe` they are delivered only once every member has them, where the stack can tell.
        """

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """A frame arrived from `source`."""

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """A timer set earlier is due."""

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        """A failure detector that does not err says that `member` crashed."""

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        """Hand over up to `most` messages, and the changes of view that come before and between them."""

    def deliverable(self) -> bool:
        """Whether `deliver` would hand over anything."""

    def buffered(self) -> int:
        """Messages in all buffers now, counted in the buffers themselves."""

    def phase(self) -> str:
        """What the stack is doing, in a word of its own."""

    def view(self) -> View:
        """The view the stack is in. The application may not have taken all that comes before it."""
