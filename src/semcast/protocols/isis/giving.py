"""What the program is given next: views, and messages from the line."""

from typing import TYPE_CHECKING

from semcast.core.annotations import Item
from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MemberId, Nanos
from semcast.core.marks import is_mark
from semcast.protocols.clients.permissions import CALLS
from semcast.protocols.isis.arrivals import DirectTicket
from semcast.protocols.isis.order import Ticket
from semcast.protocols.isis.policies import AnyTicket
from semcast.protocols.isis.seat import Seat
from semcast.protocols.lightweight.events import Cause, ClientEvent, Delivered, GroupView, PrivateDelivered
from semcast.protocols.lightweight.ids import Epoch, ViewId
from semcast.protocols.vsync.stream import ViewStream

if TYPE_CHECKING:
    from semcast.protocols.isis.stack import Isis


class Giving:
    """Of one process.

    A view is entered as soon as all that belongs to the one before was given to the program. Its messages may
    wait for causes in other groups: these are safe, so they come, and none of them depends on the next view.

    Args:
        domain: the process.
    """

    def __init__(self, domain: "Isis") -> None:
        self._domain = domain

    def give(self, now: Nanos) -> bool:
        """All that may be given now; returns whether there was anything."""
        moved = self._enter_views(now)
        domain = self._domain
        while not domain.sending.pauses():
            ticket = self.choose()
            if ticket is None:
                break
            if isinstance(ticket, DirectTicket):
                self._hand_over_direct(ticket)
            else:
                self._hand_over(now, ticket)
            self._enter_views(now)
            moved = True
        return moved

    def choose(self) -> AnyTicket | None:
        """The next messages for the program, if any are ready: in the order of reception."""
        return self._domain.line.next()

    def _hand_over(self, now: Nanos, ticket: Ticket) -> None:
        domain, order = self._domain, ticket.order
        seat, stream = order.seat, order.lines
        assert isinstance(stream, ViewStream)
        domain.line.remove(ticket)
        domain.policy.delivered(ticket)
        domain.totals.learn(ticket.lamport)
        if ticket.ordered:
            domain.totals.given()
        sender = stream.members[ticket.rank]
        for batch in seat.member.hand_over(now, stream, ticket.rank, ticket.last):
            first = ticket.number + batch.first - ticket.first
            count = len(batch.payloads)
            domain.stats.delivered += count
            domain.notes.given(seat.name, sender, first, count, ordered=ticket.ordered)
            note, items = batch.annotation, batch.items
            if isinstance(note, Item):
                items = [note.item] * count
            groups = (seat.name, CALLS) if is_mark(note) else (seat.name,)
            domain.program.put(
                Delivered(sender, first, groups, None, batch.payloads, batch.size, items),
                seat,
                batch.last,
            )
        domain.drain(now, seat)

    def _hand_over_direct(self, ticket: DirectTicket) -> None:
        domain, source = self._domain, ticket.source
        domain.line.remove(ticket)
        domain.policy.told(ticket.others, ticket.epoch, ticket.group)
        domain.totals.learn(ticket.lamport)
        number, payload = ticket.head.number, ticket.payload
        domain.stats.delivered += 1
        domain.notes.given(ticket.group, source.member, number, 1, direct=True)
        event: ClientEvent = PrivateDelivered(source.member, number, None, payload)
        if ticket.marked:
            groups = ticket.group, CALLS
            event = Delivered(source.member, number, groups, None, [payload], len(payload))
        domain.program.put(event, source, ticket.nth)

    def _enter_views(self, now: Nanos) -> bool:
        """Views of which the program is told; a pause does not hold them up, it ends with them."""
        domain, moved = self._domain, False
        for seat in list(domain.seats.values()):
            if not seat.member.view_waits:
                continue  # to take nothing would still count as room for more, which is asked for at once
            for event in seat.member.deliver(now, 0):
                if isinstance(event, Installed):
                    moved = True
                    self._enter(seat, event)
            domain.drain(now, seat)
        return moved

    def _enter(self, seat: Seat, event: Installed) -> None:
        domain, view = self._domain, event.view
        if seat.me in event.joined:
            domain.policy.entered(seat)
        domain.directs.failed(event.failed)
        domain.notes.view(seat.name, view)
        name = ViewId(Epoch(0, rest=False, representative=view.members[0]), view.id)
        told = GroupView(
            seat.name, name, view.members, event.joined, event.left, event.failed, _cause(event), vs=False
        )
        domain.program.put(told, seat, view.id)


def _cause(event: Installed) -> Cause:
    if event.failed:
        return Cause.GONE
    return Cause.LEAVE if event.left else Cause.JOIN


def members_of(seat: Seat) -> tuple[MemberId, ...]:
    """Of the current view."""
    stream = seat.member.stream
    return () if stream is None else stream.members
