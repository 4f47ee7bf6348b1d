"""From the order of the ring to the application (Amir 1995, 5.2.1: agreed and safe delivery).

What is in order, and safe where that was asked for, goes to the delivery queue as long as there is room:
in the queue, or, while the program waits in `send`, in the reserve (`Backlog`). A member without room admits
to less than it has (`Rotation`), so that the ring waits for it.
"""

from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from semcast.core.events import Delivery, ViewChange
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.obsolescence import Purging
from semcast.protocols.lateness import Lateness
from semcast.protocols.ring.backlog import Backlog
from semcast.protocols.ring.delivery import Change, DeliveryQueue
from semcast.protocols.ring.frames import Packet
from semcast.protocols.ring.leaving import Leaving
from semcast.protocols.ring.member import Member, note_places
from semcast.protocols.ring.ordering import RingOrder
from semcast.protocols.ring.packing import Assembly
from semcast.protocols.ring.settings import SlowPolicy


class Outlet:
    """What the ring has ordered, until the application takes it."""

    queue_kind: ClassVar[type[DeliveryQueue]] = DeliveryQueue
    backlog_kind: ClassVar[type[Backlog]] = Backlog

    def __init__(self, member: Member, leaving: Leaving) -> None:
        settings = member.settings
        purging = Purging.OFF if settings.policy is SlowPolicy.BLOCK else Purging.LAZY
        self.queue = self.queue_kind(settings.queue_messages, purging, settings.queue_bytes)
        self.backlog = self.backlog_kind(member, self.queue)
        self.rest: deque[Batch] = deque()
        """Delivered by the ring, and no room in the queue yet."""
        self.due = False
        """There may be something to pump."""
        self.seen = False
        """The application was given this configuration."""
        self._member = member
        self._max_message = settings.max_message
        self._standing = member.standing
        self._out = member.out
        self._stats = member.stats
        self._leaving = leaving
        self._assembly = Assembly(settings.max_message)
        self._lateness = Lateness(settings.lag)

    def __len__(self) -> int:
        return len(self.queue) + sum([len(batch.payloads) for batch in self.rest])

    def deliverable(self) -> bool:
        """Whether `deliver` would hand over anything."""
        return self.due or bool(self.queue)

    def deliver(self, now: Nanos, most: int, order: RingOrder) -> Sequence[Delivery]:
        """Hand over messages and configuration changes, in order."""
        if self.due:
            self.pump(now, order)
        queue = self.queue
        taken = queue.pop(most, behind=self._lateness.behind(now))
        delivered = 0
        for each in taken:
            if type(each) is Batch:
                delivered += len(each.payloads)
            elif isinstance(each, ViewChange) and each.view.representative == order.conf.representative:
                self.seen = self.seen or each.view.id == order.conf.number
        self._stats.delivered += delivered
        self._lateness.took(now, delivered, queue.messages)
        if self.rest:
            self.pump(now, order)
        else:
            self._conclude(now)
        return taken

    def on_reader(self, now: Nanos, order: RingOrder) -> None:
        """The program waits, or waits no more: there may be room for what rests."""
        if self.rest:
            self.pump(now, order)
        else:
            self._set_limits()
            self._note_full(now)

    def stops(self, now: Nanos) -> bool:
        """Whether nobody should send anything new before the program has taken something."""
        if not self.backlog.stops:
            return False
        if self._hurried(now):
            self.reclaim()
        return self.backlog.stops

    def reclaim(self) -> None:
        """What is obsolete goes."""
        self.queue.purge()
        self._give_receipts()

    def _hurried(self, now: Nanos) -> bool:
        """Whether what is obsolete goes as soon as there is no room: before the reserve is touched."""
        return self._lateness.behind(now) or self._member.reader.waits

    def pump(self, now: Nanos, order: RingOrder) -> None:
        """Hand the queue whatever is in order, and safe where that was asked for."""
        self.due = False
        if self._withheld():
            return
        rest, queue = self.rest, self.queue
        self._set_limits()
        if not queue.messages:
            self._lateness.took(now, 0, 0)
        while True:
            while rest:
                batch = rest[0]
                taken = self._take(now, batch)
                if taken < len(batch.payloads):
                    if taken:
                        rest[0] = batch.cut(batch.first + taken, batch.last)
                    self._conclude(now)
                    return
                rest.popleft()
            before = order.delivered
            if before == order.my_aru:
                break
            room = queue.room
            sender, parts = order.ripe(room)
            if not parts:
                break
            if self._member.certificates is not None:
                packets = [order.store[seq] for seq in range(before + 1, order.delivered + 1)]
                self._note_places(order.members, packets)
            batches = self._assembly.batches(order.members[sender], parts)
            if sum([len(batch.payloads) for batch in batches]) <= room:
                queue.extend(batches)
            else:
                rest += batches
        self._conclude(now)

    def _set_limits(self) -> None:
        """What lies in the mailbox beyond its bound takes room here."""
        self.queue.limit, self.queue.limit_bytes = self.backlog.limit, self.backlog.limit_bytes

    def _take(self, now: Nanos, batch: Batch) -> int:
        """Find room for a batch: what is obsolete goes, then there is the reserve; returns for how many."""
        queue, count = self.queue, len(batch.payloads)
        taken = queue.add(batch, behind=self._hurried(now))
        while taken < count and self._member.reader.waits:
            rest = batch.cut(batch.first + taken, batch.last)
            more = queue.add(rest, reserve=self.backlog.room_for(rest))
            if not more:
                break
            taken += more
        return taken

    def _conclude(self, now: Nanos) -> None:
        """Something came into the queue, or went."""
        self._note_full(now)
        if self.queue.purged or self._assembly.refused:
            self._give_receipts()

    def _note_full(self, now: Nanos) -> None:
        full = self.queue.room <= 0
        if full or self._leaving.full:
            self._leaving.note(now, full=full)

    def _withheld(self) -> bool:
        """Whether what is left of this configuration is handed over by `force` only."""
        return self._standing.frozen

    def _give_receipts(self) -> None:
        receipts = self.queue.take_receipts()
        if receipts:
            self._stats.purged_delivery += sum([receipt.count for receipt in receipts])
            self._out.events += receipts
        self._stats.malformed += self._assembly.refused
        self._assembly.refused = 0

    # A change of configuration

    def force(self, members: tuple[MemberId, ...], packets: Sequence[Packet]) -> None:
        """Hand over what was recovered, full or not."""
        for batch in self.rest:
            self.queue.force(batch)
        self.rest.clear()
        self._note_places(members, packets)
        for packet in packets:
            for batch in self._assembly.batches(members[packet.sender], packet.parts):
                self.queue.force(batch)

    def _note_places(self, members: tuple[MemberId, ...], packets: Sequence[Packet]) -> None:
        """For who records."""
        certificates = self._member.certificates
        if certificates is not None:
            for packet in packets:
                note_places(certificates, members[packet.sender], packet)

    def begin(self, change: Change) -> None:
        """A new configuration; messages of which only some fragments came are no more."""
        self.queue.change(change)
        self._give_receipts()
        self._assembly = Assembly(self._max_message)
        self.seen = False
