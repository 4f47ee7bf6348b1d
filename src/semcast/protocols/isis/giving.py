"""What the program is given next: views, and messages from the line."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from semcast.core.annotations import Item
from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MemberId, Nanos
from semcast.core.marks import is_mark, is_relayed
from semcast.core.messages import Batch
from semcast.protocols.clients.permissions import CALLS
from semcast.protocols.isis.arrivals import DirectTicket
from semcast.protocols.isis.clients import ItemTicket
from semcast.protocols.isis.order import Ticket
from semcast.protocols.isis.policies import AnyTicket
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.serving import RelayTicket
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
        domain = self._domain
        moved = self._enter_views(now, domain.seats.values())
        stirred: dict[str, Seat] = {}
        while len(domain.line) and not domain.sending.pauses():
            ticket = self.choose()
            if ticket is None:
                break
            moved = True
            if isinstance(ticket, DirectTicket):
                self._hand_over_direct(ticket)
                continue
            seat = ticket.order.seat
            self._hand_over(ticket)
            stirred[seat.name] = seat
            self._enter_views(now, (seat,))
        for seat in stirred.values():
            seat.member.room_freed(now)
            domain.drain(now, seat)
        return moved

    def choose(self) -> AnyTicket | None:
        """The next messages for the program, if any are ready: in the order of reception."""
        return self._domain.line.next()

    def _hand_over(self, ticket: Ticket) -> None:
        domain, order = self._domain, ticket.order
        seat, stream = order.seat, order.lines
        assert isinstance(stream, ViewStream)
        domain.line.remove(ticket)
        domain.policy.delivered(ticket)
        domain.totals.learn(ticket.lamport)
        if ticket.ordered:
            domain.totals.given()
        sender, program, notes = stream.members[ticket.rank], domain.program, domain.notes
        plain: tuple[str, ...] = (seat.name,)
        calls = (seat.name, CALLS)
        for batch in _together(stream.deliver_run(ticket.rank, ticket.last)):
            first = ticket.number + batch.first - ticket.first
            if is_relayed(batch.annotation):
                self._hand_over_among(seat, batch, first)
                continue
            count = len(batch.payloads)
            domain.stats.delivered += count
            if notes.wanted:
                notes.given(seat.name, sender, first, count, ordered=ticket.ordered)
            note, items, groups = batch.annotation, batch.items, plain
            if note is not None:
                items = [note.item] * count if isinstance(note, Item) else items
                groups = calls if is_mark(note) else plain
            event = Delivered(sender, first, groups, None, batch.payloads, batch.size, items)
            program.put(event, seat, batch.last)

    def _hand_over_among(self, seat: Seat, batch: Batch, first: int) -> None:
        """What clients send or are sent, and what is about them: that is not for the program."""
        domain = self._domain
        for place in range(len(batch.payloads)):
            each = batch.cut(batch.first + place, batch.first + place)
            found = None if seat.serving is None else seat.serving.hearing.given(each, first + place)
            event: ClientEvent | None = None
            if found is not None:
                sender, number, payload, marked = found
                domain.stats.delivered += 1
                domain.notes.given(seat.name, sender, number, 1)
                groups = (seat.name, CALLS) if marked else (seat.name,)
                event = Delivered(sender, number, groups, None, [payload], len(payload))
            domain.program.put(event, seat, each.last, of=batch.sender)

    def _hand_over_direct(self, ticket: DirectTicket) -> None:
        domain, source = self._domain, ticket.source
        domain.line.remove(ticket)
        if isinstance(ticket, ItemTicket):
            ticket.seat.hand_over(ticket)
            return
        if isinstance(ticket, RelayTicket):
            ticket.serving.relay(ticket)
            return
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

    def _enter_views(self, now: Nanos, seats: Iterable[Seat]) -> bool:
        """Views of which the program is told; a pause does not hold them up, it ends with them."""
        domain, moved = self._domain, False
        for seat in [each for each in seats if each.member.untold and each.member.view_waits]:
            # To take nothing elsewhere would still count as room for more, which is asked for at once.
            for event in seat.member.deliver(now, 0):
                if isinstance(event, Installed):
                    moved = True
                    self._enter(seat, event)
            seat.member.untold = not seat.member.up_to_date
            domain.drain(now, seat)
        return moved

    def _enter(self, seat: Seat, event: Installed) -> None:
        domain, view = self._domain, event.view
        if seat.me in event.joined:
            domain.policy.entered(seat)
        domain.directs.failed(event.failed)
        domain.notes.view(seat.name, view, None if seat.serving is None else seat.serving.style)
        name = ViewId(Epoch(0, rest=False, representative=view.members[0]), view.id)
        told = GroupView(
            seat.name, name, view.members, event.joined, event.left, event.failed, _cause(event), vs=False
        )
        domain.program.put(told, seat, view.id)


def _together(batches: list[Batch]) -> list[Batch]:
    """Plain messages that follow each other as one run: the program is told of all of them at once."""
    if len(batches) < 2:
        return batches
    first, size = batches[0], 0
    payloads: list[bytes] = []
    for batch in batches:
        if batch.annotation is not None or batch.items is not None:
            return batches
        if batch.first != first.first + len(payloads):
            return batches
        payloads += batch.payloads
        size += batch.size
    return [Batch(first.sender, first.first, payloads, size=size)]


def _cause(event: Installed) -> Cause:
    if event.failed:
        return Cause.GONE
    return Cause.LEAVE if event.left else Cause.JOIN


def members_of(seat: Seat) -> tuple[MemberId, ...]:
    """Of the current view."""
    stream = seat.member.stream
    return () if stream is None else stream.members
