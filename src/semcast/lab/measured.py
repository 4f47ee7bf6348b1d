"""For measurements: members that keep nothing of what they saw."""

from collections.abc import Sequence

from semcast.core.events import Delivery, Event
from semcast.core.handover import Handover
from semcast.core.ids import Nanos
from semcast.core.mailbox import Mailbox
from semcast.core.messages import Batch
from semcast.lab.application import Keeper
from semcast.lab.seat import EVERYTHING, Seat


class Counter(Keeper):
    """An application that counts messages."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def on_delivery(self, each: Delivery) -> None:
        """Count it."""
        if type(each) is Batch:
            self.count += len(each.payloads)


class Forgetful(Seat):
    """A member of which nobody wants to know what its stack said."""

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        """Forget them."""


def stateless() -> Handover:
    """To an application that takes everything at once, and has no state to hand over."""
    handover = Handover(1, Mailbox(0))
    handover.mailbox.want = EVERYTHING
    return handover
