"""What the program sends, in its order: each message as soon as other groups and its own allow it."""

from typing import TYPE_CHECKING

from semcast.core.annotations import Item
from semcast.core.events import Event, Purged, Sent, Thinned, Unblocked
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, Nanos
from semcast.core.marks import MARK, ORDERED, RELAYED
from semcast.core.messages import Batch
from semcast.protocols.isis.client_frames import ForClient, encode
from semcast.protocols.isis.clients import ClientSeat
from semcast.protocols.isis.program import Cast, LeaveWish, Letter
from semcast.protocols.isis.seat import Seat
from semcast.protocols.lightweight.events import Undeliverable

if TYPE_CHECKING:
    from semcast.protocols.isis.stack import Isis


class Sending:
    """Of one process.

    While the next message waits for other groups, nothing is given to the program: else what it is given
    would have to be waited for, too, and that might never end. Nothing is paused while a view that this
    process has all of waits to be entered, nor while the message waits for its own group, nor while it waits
    for what this process sent as a client: to multicast that may take credit, and so other programs, and they
    may wait for this one.

    Args:
        domain: the process.
    """

    def __init__(self, domain: "Isis") -> None:
        self._domain = domain
        self._breath = False  # something left, and what came meanwhile may be given before the next pause
        self._number = 0  # of the next message that leaves
        self._silent = False  # whether what leaves is none of the program's
        self._to: MemberId | None = None  # the client that it is for

    # When

    def pauses(self) -> bool:
        """Whether the program is given nothing for the moment."""
        if self._breath or not (self._domain.program.wishes or self._domain.clientele.served):
            return False
        waits = (self._held() or self._parting()) and not self._waits_for_programs()
        return (waits or self._waits_for_clients()) and not self.lifted()

    def _waits_for_programs(self) -> bool:
        """Whether the next wish waits for what this process sent as a client."""
        wishes, visits = self._domain.program.wishes, self._domain.clientele.visits
        if not wishes or not visits:
            return False
        if isinstance(wishes[0], LeaveWish):
            visit = visits.get(wishes[0].group)
            return visit is not None and visit.relayed()
        wish = self._next()
        seat = None if wish is None else self._seat_for(wish)
        if wish is None or seat is None or not self._open_for(seat, wish):
            return False
        return self._domain.waits.by_programs(seat)

    def _waits_for_clients(self) -> bool:
        """Whether what is multicast for clients, or about them, waits for other groups."""
        return not self._domain.directs.under_way and any(map(self._waits_to_relay, self._relaying()))

    def _held(self) -> bool:
        """Whether the next message waits for other groups."""
        wish = self._next()
        seat = None if wish is None else self._seat_for(wish)
        if wish is None or seat is None or not self._open_for(seat, wish):
            return False
        return self._blocked(seat)

    def _parting(self) -> bool:
        """Whether the program leaves a group with clients, and others may lack what it had there."""
        wishes = self._domain.program.wishes
        wish = wishes[0] if wishes else None
        if not isinstance(wish, LeaveWish):
            return False
        seat, visit = self._domain.seats.get(wish.group), self._domain.clientele.visits.get(wish.group)
        if visit is not None:
            return visit.active()
        # What it has not multicast for its clients is not waited for: they send it again to the next contact.
        return seat is not None and seat.serving is not None and self._domain.waits.holds(seat)

    # What is sent for clients

    def _relaying(self) -> list[Seat]:
        """Groups in which something is to be multicast for clients, or about them."""
        served = self._domain.clientele.served
        return [seat for seat in served.values() if seat.serving is not None and seat.serving.outgoing]

    def _waits_to_relay(self, seat: Seat) -> bool:
        return self.open(seat) and self._keeps_from_relaying(seat)

    def _keeps_from_relaying(self, seat: Seat) -> bool:
        """Whether other groups do, but for those that this process is a client of.

        What a client of its own sends does not come after what it has there, and its contact there may wait
        for that in turn.
        """
        return self._domain.waits.by_views(seat) or self._domain.policy.crowded()

    def _relay(self, now: Nanos) -> bool:
        """All that may leave; nothing while a message of the program waits for views of other groups."""
        moved = False
        if not self._domain.clientele.served or self._domain.directs.under_way:
            return False
        if (self._held() or self._parting()) and not self._waits_for_programs():
            return False
        for seat in self._relaying():
            serving = seat.serving
            assert serving is not None
            while serving.outgoing and self.open(seat) and not self._keeps_from_relaying(seat):
                if self.awaits_own(seat, ordered=False):
                    break
                payload = encode(serving.outgoing[0][0])
                self._domain.policy.sends(seat)
                seat.number_run(1, cut=len(payload) > seat.frame_bytes)
                self._silent = True
                taken = seat.member.multicast_each(now, [payload], [RELAYED])
                self._domain.drain(now, seat)
                self._silent = False
                seat.refused = seat.refused or not taken
                if not taken:
                    break
                stream = seat.member.stream
                assert stream is not None
                serving.left(stream.queued[stream.rank])
                moved = True
        return moved

    def lifted(self) -> bool:
        """Whether a view that is all here waits to be entered."""
        return any(
            not seat.member.up_to_date and seat.member.next_view and not seat.member.is_out
            for seat in self._domain.seats.values()
        )

    def open(self, seat: Seat) -> bool:
        """Whether the group itself would take a message."""
        return self._ready(seat) and not seat.refused and self.room(seat) > 0

    def _ready(self, seat: Seat) -> bool:
        """Whether its view does not end, and the program knows it."""
        stream = seat.member.stream
        return stream is not None and not stream.frozen and seat.member.up_to_date

    def room(self, seat: Seat) -> int:
        """How many messages may be sent: what is not taken by all programs is within credit."""
        return self._domain.settings.credit - seat.untaken()

    def awaits_own(self, seat: Seat, *, ordered: bool) -> bool:
        """Whether an ordered message of this process was not given to its own program (6.2).

        What is sent next has to come behind it in the order, and nobody knows its number; only ordered
        messages of the same group may follow at once. Nothing is paused for that: the program has to be given
        it.
        """
        if not self._domain.line.holds_ordered:
            return False
        others = self._domain.seats.values()
        return any(other.awaits_own() for other in others if other is not seat or not ordered)

    def _may_send(self, seat: Seat, cast: Cast) -> bool:
        if not self.open(seat) or self._blocked(seat):
            return False
        return not self.awaits_own(seat, ordered=cast.ordered)

    def _blocked(self, seat: Seat | ClientSeat) -> bool:
        domain = self._domain
        return domain.waits.blocked(seat) or domain.policy.crowded()

    def _next(self) -> Cast | Letter | None:
        """What waits to leave; nothing while a direct message is on its way, for that pauses nothing."""
        wishes = self._domain.program.wishes
        wish = wishes[0] if wishes and not self._domain.directs.under_way else None
        return None if wish is None or isinstance(wish, LeaveWish) else wish

    def _seat_for(self, wish: Cast | Letter) -> Seat | ClientSeat | None:
        """The group that it goes to; a direct message without one to the first that both are in."""
        seats = self._domain.seats
        if isinstance(wish, Cast):
            return seats.get(wish.group) or self._domain.clientele.visits.get(wish.group)
        for seat in seats.values():
            if not seat.leaving and wish.group in ("", seat.name) and _is_in(wish.to, seat):
                return seat
        return None

    def _open_for(self, seat: Seat | ClientSeat, wish: Cast | Letter) -> bool:
        if isinstance(seat, ClientSeat):
            return seat.open
        if isinstance(wish, Cast):
            return self.open(seat)
        return self._ready(seat) and self._domain.directs.has_room(wish.to)

    # Doing it

    def send(self, now: Nanos) -> bool:
        """What may be sent now; returns whether there was anything."""
        domain, moved = self._domain, False
        wishes = domain.program.wishes
        while wishes:
            wish = wishes[0]
            seat, visit = domain.seats.get(wish.group), domain.clientele.visits.get(wish.group)
            if type(wish) is Letter:
                if not self._send_letter(now, wish):
                    break
            elif visit is not None:
                if not self._send_by_contact(visit, wish):  # type: ignore[arg-type]
                    break
            elif seat is None:
                domain.program.drop()
            elif type(wish) is not Cast:
                if seat.awaits_own() or self._parting():
                    break
                domain.program.drop()
                domain.leave_group(now, seat)
            elif not self._may_send(seat, wish) or not self._multicast(now, seat, wish):
                break
            moved = True
            if wishes and wishes[0].group != wish.group:
                self._breath = True  # the next may pause: what has come is given to the program before
                break
        moved = self._relay(now) or moved
        if self._breath and not moved:
            self._breath = False
            moved = True  # so that the pause is looked at again
        return moved

    def _send_by_contact(self, visit: ClientSeat, wish: Cast | LeaveWish) -> bool:
        """Whether something came of a wish that is about a group of which this process is a client."""
        program = self._domain.program
        if isinstance(wish, LeaveWish):
            if visit.active():
                return False
            program.drop()
            visit.leave()
            return True
        if not visit.open or self._blocked(visit) or self._domain.directs.under_way:
            return False
        if any(seat.awaits_own() for seat in self._domain.seats.values()):
            return False
        number = visit.send(wish)
        self._domain.stats.sent += 1
        program.left(wish, 1, visit, number)
        return True

    def _send_letter(self, now: Nanos, letter: Letter) -> bool:
        """Whether it is done with: it stands in the line of its addressee, or there is none."""
        domain = self._domain
        if not domain.directs.under_way:
            seat = self._seat_for(letter)
            if seat is None or isinstance(seat, ClientSeat):
                self._undeliverable(letter)
                return True
            own = letter.to == domain.me
            if (
                not self._open_for(seat, letter)
                or self.awaits_own(seat, ordered=False)
                or (not own and self._blocked(seat))
            ):
                return False
            domain.directs.send(now, seat, letter)
            return own
        found = domain.directs.look()
        if found is False:
            self._undeliverable(letter)
        return found is not None

    def _undeliverable(self, letter: Letter) -> None:
        self._domain.program.drop()
        if not letter.marked:
            self._domain.program.put(Undeliverable(letter.number, letter.to))

    def _multicast(self, now: Nanos, seat: Seat, cast: Cast) -> int:
        """As many as the group takes; one that is larger than a frame goes alone."""
        member, room, most = seat.member, self.room(seat), seat.frame_bytes
        large = None
        if cast.largest > most:
            large = next((at for at, size in enumerate(cast.sizes) if size > most), None)
        count = min(room, len(cast.payloads) if large is None else max(large, 1))
        payloads, sizes = cast.payloads, cast.sizes
        if count < len(payloads):
            payloads, sizes = payloads[:count], sizes[:count]
        self._number = cast.number
        self._domain.policy.sends(seat)
        seat.number_run(cast.number, cut=large == 0)
        self._to = cast.to
        if cast.to is not None:
            wrapped = [encode(ForClient(cast.to, cast.marked, bytes(each))) for each in payloads]
            taken = member.multicast_each(now, wrapped, [RELAYED] * count)
        elif cast.marked:
            taken = member.multicast_each(now, payloads, [MARK] * count)
        elif cast.ordered:
            taken = member.multicast_each(now, payloads, [ORDERED] * count)
        elif cast.items is None:
            taken = member.multicast_plain(now, payloads, sizes)
        else:
            taken = member.multicast_each(now, payloads, [Item(item) for item in cast.items[:count]])
        stream = member.stream
        assert stream is not None
        seat.refused = seat.refused or taken < count
        if taken:
            self._domain.stats.sent += taken
            self._domain.program.left(cast, taken, seat, stream.queued[stream.rank])
        self._domain.drain(now, seat)
        return taken

    # What groups say of it

    def on_event(self, seat: Seat, event: Event) -> None:
        """Messages left, or a group takes more."""
        if type(event) is Unblocked:
            seat.refused = False
        elif type(event) is Sent and self._domain.notes.wanted:
            self._note(seat, event)
        elif isinstance(event, Purged | Thinned):
            for each in event.receipts():
                if each.by is not None:  # else the order has said so
                    seat.taking.purged(each.sender, each.id.seq, each.by.seq)

    def _note(self, seat: Seat, event: Sent) -> None:
        batch = event.batch
        if self._silent:
            seat.spoken.clear()
            return
        first, head = self._number, seat.spoken.popleft()
        self._number += len(batch.payloads)
        others = {other.group: len(other.counts) for other in head.others}
        renamed = Batch(batch.sender, first, batch.payloads, batch.annotation, batch.size, items=batch.items)
        self._domain.notes.sent(seat.name, renamed, event.view, len(head.changed) + 1, others, self._to)

    def held_back(self) -> HeldBack | None:
        """Why the next message waits."""
        wishes = self._domain.program.wishes
        if self._domain.directs.under_way and wishes and type(wishes[0]) is Letter:
            return HeldBack(wishes[0].to, "it has not received a message to it alone")
        wish = self._next()
        seat = None if wish is None else self._seat_for(wish)
        if wish is None or seat is None:
            return None
        if type(wish) is Letter and not self._domain.directs.has_room(wish.to):
            return HeldBack(wish.to, "its program does not read")
        if self._open_for(seat, wish):
            return (
                HeldBack(None, "other groups are to have what came before") if self._blocked(seat) else None
            )
        if isinstance(seat, ClientSeat):
            return HeldBack(seat.contact, "it has not passed on what was sent before")
        slow = seat.slow()
        if self.room(seat) <= 0 and slow:
            return HeldBack(slow[0], "its program does not read")
        return seat.member.held_back()


def _is_in(member: MemberId, seat: Seat) -> bool:
    stream = seat.member.stream
    return stream is not None and member in stream.members
