"""All that can be said of one group while it runs."""

from collections.abc import Iterable, Iterator
from itertools import chain

from semcast.core.ids import MemberId
from semcast.history.events import Event, GroupInfo
from semcast.history.schema import GONE, Kind
from semcast.specs import properties_for
from semcast.specs.prefix.alarm import Alarm
from semcast.specs.prefix.calls import CallWatch
from semcast.specs.prefix.contents import Contents
from semcast.specs.prefix.deliveries import Deliveries
from semcast.specs.prefix.domains import DomainWatch
from semcast.specs.prefix.lightweight import LightweightWatch
from semcast.specs.prefix.order import Orders
from semcast.specs.prefix.replication import ReplicationWatch
from semcast.specs.prefix.views import ViewLists

_JUDGED = (
    "integrity",
    "fifo_delivery",
    "nothing_after_crash",
    "total_order",
    "ring_certificate",
    "evs_6_3_agreed",
    "vs_view_agreement",
    "pair_same_members",
    "evs_2_2_inside_configuration",
    "lw_view_agreement",
    "lw_order",
    "domain_groups",
    "repl_total_order",
    "call_replies",
)
_ACTS = (Kind.MULTICAST, Kind.DELIVER, Kind.VIEW)


class GroupWatch:
    """One group of one run.

    Args:
        info: what its recordings say of it.
    """

    def __init__(self, info: GroupInfo) -> None:
        promised = properties_for(info)
        self.info = info
        self.judged = [name for name in _JUDGED if name in promised]
        """The properties of which something is judged here."""
        self.events = 0
        self._deliveries = Deliveries(self.judged)
        self._contents = Contents() if "integrity" in self.judged else None
        self._views = ViewLists(self.judged)
        self._orders = Orders(promised)
        self._replication = ReplicationWatch(promised)
        self._families = (CallWatch(promised), DomainWatch(promised), LightweightWatch(promised))
        self._crashes: dict[MemberId, Event] = {}

    def feed(self, events: Iterable[Event]) -> Iterator[Alarm]:
        """More events of any processes, those of each in its own order."""
        for event in events:
            self.events += 1
            yield from self._deliveries.feed(event)
            if self._contents is not None:
                self._contents.feed(event)
            yield from self._views.feed(event)
            yield from self._orders.feed(event)
            yield from self._after_crash(event)
            self._replication.feed(event)
            for family in self._families:
                yield from family.feed(event)

    def _after_crash(self, event: Event) -> Iterator[Alarm]:
        crash = self._crashes.get(event.process)
        if event.kind in GONE:
            self._crashes.setdefault(event.process, event)
        elif crash is not None and event.kind in _ACTS and "nothing_after_crash" in self.judged:
            yield Alarm("nothing_after_crash", f"{event.process} acted after its crash", (crash, event))

    def ended(self, process: MemberId) -> None:
        """The recording of a process is whole."""
        self._deliveries.ended(process)

    def settle(self) -> Iterator[Alarm]:
        """What follows from all that was fed so far; to be asked for now and then."""
        contents = () if self._contents is None else self._contents.settle()
        return chain(self._deliveries.settle(), contents, self._orders.settle(), self._replication.settle())

    @property
    def suspected(self) -> int:
        """Differences that are none if one of two processes crashes before it goes on."""
        return self._orders.suspected

    def size(self) -> int:
        """How many rows are remembered: bounded, however long the run is."""
        known = 0 if self._contents is None else self._contents.size()
        parts = (self._deliveries, self._views, self._orders, self._replication, *self._families)
        return known + sum(part.size() for part in parts)
