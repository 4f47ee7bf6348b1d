"""Who records a member of a simulated world: what its turns do becomes the history of its group."""

from collections.abc import Callable, Sequence

from semcast.core.certificates import Certificates
from semcast.core.events import (
    Confirmed,
    Delivery,
    Event,
    Left,
    Merged,
    Note,
    Purged,
    Sent,
    Thinned,
    TransitionalView,
    Unconfirmed,
    ViewChange,
)
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch
from semcast.core.outgoing import Outgoing
from semcast.core.watchers import Watcher
from semcast.history import Recorder
from semcast.history.tickets import Tickets


class Scribe(Watcher):
    """Of one member in one group.

    Args:
        member: who this is.
        recorder: of the group.
        clock: virtual time.
        announced: whether the stack says itself when messages leave; else they leave where it takes them.
    """

    def __init__(
        self, member: MemberId, recorder: Recorder, clock: Callable[[], Nanos], *, announced: bool
    ) -> None:
        self.certificates = Certificates()
        self.member = member
        """Who this is now."""
        self._recorder = recorder
        self._clock = clock
        self._announced = announced
        self._over = False
        self._next = 1
        self._tickets = Tickets()

    # What a turn tells

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        """What the stack says."""
        for event in events:
            if isinstance(event, Sent):
                batch = event.batch
                certified = self.certificates.sent(batch.first, batch.last)
                self._recorder.sent(now, self.member, event, certified)
                self._tickets.sent(batch.first, len(batch.payloads))
            elif isinstance(event, Purged | Thinned):
                for purged in event.receipts():
                    self._recorder.purge(now, self.member, purged)
            elif isinstance(event, Confirmed):
                message, safe = self._tickets.answered(event.ticket)
                name = MessageId(self.member, message)
                safe = safe and not event.logged
                self._recorder.confirmed(now, self.member, name, event.view, safe=safe)
            elif isinstance(event, Unconfirmed):
                self._tickets.refused(event.ticket)
            elif isinstance(event, ViewChange):
                self._recorder.view(now, self.member, event.view)
            elif isinstance(event, Note):
                self._recorder.note(now, self.member, event)
            elif isinstance(event, Left):
                self._left(now)

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        """What the program is about to get."""
        for each in deliveries:
            if isinstance(each, Batch):
                certified = self.certificates.delivered(each.sender, each.first, each.last)
                self._recorder.deliver(now, self.member, each, each.order, certified)
            elif isinstance(each, ViewChange):
                self._recorder.view(now, self.member, each.view)
            elif isinstance(each, TransitionalView):
                self._recorder.transitional(now, self.member, each.view)
            elif isinstance(each, Merged):
                self._recorder.merged(now, self.member, each.count)

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:
        """What the stack took from the program."""
        for outgoing, count in taken:
            self._tickets.taken(outgoing, count)
            if count and not self._announced:
                for batch in outgoing.batches(self.member, self._next, count):
                    for single in batch.singles() if batch.items is not None else [batch]:
                        self._recorder.multicast(now, self.member, single)
                self._tickets.sent(self._next, count)
                self._next += count

    def on_renewal(self, now: Nanos, member: MemberId) -> None:
        """Another incarnation goes on; the former one has left."""
        self.member, self._next, self._tickets = member, 1, Tickets()
        self._over = False
        self._recorder.recover(now, member)

    # The end

    def close(self) -> None:
        """Its program has ended well, though perhaps nobody was told."""
        if not self._recorder.info.only.members:  # who is on a list owes what it owed
            self._left(self._clock())

    def crash(self) -> None:
        """Its process is gone."""
        if not self._over:
            self._over = True
            self._recorder.crash(self._clock(), self.member)

    def _left(self, now: Nanos) -> None:
        if not self._over:
            self._over = True
            self._recorder.left(now, self.member)
