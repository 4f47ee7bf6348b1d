"""What a simulated host does, written down: the history of the run, and the figures of the host."""

from collections.abc import Callable, Sequence

from semcast.core.certificates import Certificates
from semcast.core.events import (
    Blocked,
    Confirmed,
    Delivery,
    Event,
    Left,
    Merged,
    Note,
    Purged,
    Sent,
    StateLost,
    StateReceived,
    Thinned,
    TransitionalView,
    Unblocked,
    Unconfirmed,
    ViewChange,
)
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch
from semcast.core.outgoing import Outgoing
from semcast.history import Recorder
from semcast.history.tickets import Tickets
from semcast.sim.programs import Application
from semcast.sim.replica import Replicas
from semcast.sim.statistics import HostStatistics


class Chronicle:
    """Watches the turns of one host.

    Args:
        member: who this is.
        recorder: of the run; None where nothing is recorded.
        stats: of the host.
        application: told of what is delivered to it and taken from it.
        stop: called when the member has left its group.
        announces: whether the stack says itself when messages leave; else they leave where it takes them.
        transfers: whether states are handed over: then they are the same at the beginning of a view.
    """

    __slots__ = (
        "_announces",
        "_application",
        "_asked",
        "_certificates",
        "_ledger",
        "_member",
        "_recorder",
        "_stats",
        "_stop",
        "certificates",
        "watches_buffers",
    )

    def __init__(
        self,
        member: MemberId,
        recorder: Recorder | None,
        stats: HostStatistics,
        application: Application,
        stop: Callable[[], None],
        *,
        announces: bool,
        transfers: bool,
    ) -> None:
        self._certificates = Certificates()
        self.certificates = None if recorder is None else self._certificates
        """Where the stack notes them, if the run is recorded."""
        self.watches_buffers = recorder is not None and recorder.info.only.buffer_limit is not None
        """Whether the history says how much buffers held."""
        self._application = application
        self._stop = stop
        self._member = member
        self._recorder = recorder
        self._stats = stats
        self._announces = announces
        self._asked = Tickets()
        # What the application comes to once it has taken all that was delivered.
        self._ledger = Replicas() if transfers and recorder is not None else None

    # What a turn tells

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        """What the stack says."""
        for event in events:
            if isinstance(event, Blocked):
                self._stats.blocked_since = now
            elif isinstance(event, Unblocked):
                self._unblocked(now)
            elif isinstance(event, Left):
                self._left(now)
            elif self._recorder is None:
                continue
            elif isinstance(event, Purged | Thinned):
                for purged in event.receipts():
                    self._recorder.purge(now, self._member, purged)
            elif isinstance(event, Sent):
                batch = event.batch
                certified = self._certificates.sent(batch.first, batch.last)
                self._recorder.sent(now, self._member, event, certified)
                self._asked.sent(event.batch.first, len(event.batch.payloads))
            elif isinstance(event, Confirmed):
                message, safe = self._asked.answered(event.ticket)
                everybody = safe and not event.logged
                self._recorder.confirmed(
                    now, self._member, MessageId(self._member, message), event.view, safe=everybody
                )
            elif isinstance(event, Unconfirmed):
                self._asked.refused(event.ticket)
            elif isinstance(event, ViewChange):
                self._recorder.view(now, self._member, event.view)
            elif isinstance(event, Note):
                self._recorder.note(now, self._member, event)

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        """What the application is about to get."""
        self._application.delivered(now)
        if self._recorder is None:
            return
        if self._ledger is not None and self._application.handover.unread:
            self._ledger = None  # a program that is given nothing has no state
        for each in deliveries:
            if isinstance(each, Batch):
                certified = self._certificates.delivered(each.sender, each.first, each.last)
                self._recorder.deliver(now, self._member, each, each.order, certified)
                if self._ledger is not None:
                    self._ledger.apply(each)
            elif isinstance(each, ViewChange):
                self._recorder.view(now, self._member, each.view)
                if self._ledger is not None:
                    self.state(now, self._ledger, each.view.id)
            elif isinstance(each, StateReceived) and self._ledger is not None:
                self._ledger.restore(each.state)
            elif isinstance(each, StateLost) and self._ledger is not None:
                self._ledger = Replicas()
            elif isinstance(each, TransitionalView):
                self._recorder.transitional(now, self._member, each.view)
            elif isinstance(each, Merged):
                self._recorder.merged(now, self._member, each.count)

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:
        """What the stack took from the application."""
        for outgoing, count in taken:
            self._asked.taken(outgoing, count)
            first = len(self._stats.sent_at) + 1
            self._stats.sent_at += [now] * count
            if self._recorder is not None and not self._announces:
                for batch in outgoing.batches(self._member, first, count):
                    self._recorder.multicast(now, self._member, batch)
                self._asked.sent(first, count)
        self._application.taken()

    def on_renewal(self, now: Nanos, member: MemberId) -> None:
        """Another incarnation goes on; the former one has left."""
        self._member = member
        self._asked = Tickets()
        self._ledger = None if self._ledger is None else Replicas()
        if self._recorder is not None:
            self._recorder.recover(now, member)

    # What a host tells

    def crashed(self, now: Nanos) -> None:
        """The process is gone."""
        if self._recorder is not None:
            self._recorder.crash(now, self._member)

    def held(self, now: Nanos, messages: int) -> None:
        """So many messages are in the buffers of the stack."""
        if self._recorder is not None:
            self._recorder.buffer(now, self._member, messages)

    def state(self, now: Nanos, state: Replicas, view: int | None = None) -> None:
        """At the beginning of a view, or at the end of the run."""
        if self._recorder is not None:
            for sender, digest in state.digests():
                self._recorder.apply(now, self._member, sender, digest, view)

    def _left(self, now: Nanos) -> None:
        """The member is out of its group; the turn may put another in its place."""
        self._stop()
        if self._recorder is not None:
            self._recorder.left(now, self._member)

    def _unblocked(self, now: Nanos) -> None:
        if self._stats.blocked_since is not None:
            self._stats.blocked_time += now - self._stats.blocked_since
            self._stats.blocked_since = None
