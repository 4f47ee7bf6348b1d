"""What the program sends, in its order: each message as soon as other groups and its own allow it."""

from typing import TYPE_CHECKING

from semcast.core.annotations import Item
from semcast.core.events import Event, Sent, Unblocked
from semcast.core.ids import MemberId, Nanos
from semcast.core.marks import MARK, ORDERED
from semcast.core.messages import Batch
from semcast.core.stack import HeldBack
from semcast.protocols.isis.program import Cast, LeaveWish, Letter
from semcast.protocols.isis.seat import Seat
from semcast.protocols.lightweight.events import Undeliverable

if TYPE_CHECKING:
    from semcast.protocols.isis.stack import Isis


class Sending:
    """Of one process.

    While the next message waits for other groups, nothing is given to the program: else what it is given
    would have to be waited for, too, and that might never end. Nothing is paused while a view that this
    process has all of waits to be entered, nor while the message waits for its own group.

    Args:
        domain: the process.
    """

    def __init__(self, domain: "Isis") -> None:
        self._domain = domain
        self._breath = False  # something left, and what came meanwhile may be given before the next pause
        self._number = 0  # of the next message that leaves

    # When

    def pauses(self) -> bool:
        """Whether the program is given nothing for the moment."""
        wish = self._next()
        if wish is None or self._breath:
            return False
        seat = self._seat_for(wish)
        if seat is None or not self._open_for(seat, wish) or self.lifted():
            return False
        return self._blocked(seat)

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
        others = self._domain.seats.values()
        return any(other.awaits_own() for other in others if other is not seat or not ordered)

    def _may_send(self, seat: Seat, cast: Cast) -> bool:
        if not self.open(seat) or self._blocked(seat):
            return False
        return not self.awaits_own(seat, ordered=cast.ordered)

    def _blocked(self, seat: Seat) -> bool:
        domain = self._domain
        return domain.waits.blocked(seat) or domain.policy.crowded()

    def _next(self) -> Cast | Letter | None:
        """What waits to leave; nothing while a direct message is on its way, for that pauses nothing."""
        wishes = self._domain.program.wishes
        wish = wishes[0] if wishes and not self._domain.directs.under_way else None
        return None if wish is None or isinstance(wish, LeaveWish) else wish

    def _seat_for(self, wish: Cast | Letter) -> Seat | None:
        """The group that it goes to; a direct message without one to the first that both are in."""
        seats = self._domain.seats
        if isinstance(wish, Cast):
            return seats.get(wish.group)
        for seat in seats.values():
            if not seat.leaving and wish.group in ("", seat.name) and _is_in(wish.to, seat):
                return seat
        return None

    def _open_for(self, seat: Seat, wish: Cast | Letter) -> bool:
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
            seat = domain.seats.get(wish.group)
            if type(wish) is Letter:
                if not self._send_letter(now, wish):
                    break
            elif seat is None:
                domain.program.drop()
            elif type(wish) is not Cast:
                if seat.awaits_own():
                    break
                domain.program.drop()
                domain.leave_group(now, seat)
            elif not self._may_send(seat, wish) or not self._multicast(now, seat, wish):
                break
            moved = True
            if wishes and wishes[0].group != wish.group:
                self._breath = True  # the next may pause: what has come is given to the program before
                break
        if self._breath and not moved:
            self._breath = False
            moved = True  # so that the pause is looked at again
        return moved

    def _send_letter(self, now: Nanos, letter: Letter) -> bool:
        """Whether it is done with: it stands in the line of its addressee, or there is none."""
        domain = self._domain
        if not domain.directs.under_way:
            seat = self._seat_for(letter)
            if seat is None:
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
        member, room = seat.member, self.room(seat)
        large = next((at for at, each in enumerate(cast.payloads) if len(each) > seat.frame_bytes), None)
        count = min(room, len(cast.payloads) if large is None else max(large, 1))
        payloads = list(cast.payloads[:count])
        self._number = cast.number
        self._domain.policy.sends(seat)
        seat.number_run(cast.number, cut=large == 0)
        if cast.marked:
            taken = member.multicast_each(now, payloads, [MARK] * count)
        elif cast.ordered:
            taken = member.multicast_each(now, payloads, [ORDERED] * count)
        elif cast.items is None:
            taken = member.multicast(now, payloads)
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
        if isinstance(event, Unblocked):
            seat.refused = False
        elif isinstance(event, Sent):
            self._note(seat, event)

    def _note(self, seat: Seat, event: Sent) -> None:
        batch = event.batch
        count, first = len(batch.payloads), self._number
        self._number += count
        notes = self._domain.notes
        if not notes.wanted:
            seat.spoken.clear()
        else:
            head = seat.spoken.popleft()
            others = {other.group: len(other.counts) for other in head.others}
            renamed = Batch(
                batch.sender, first, batch.payloads, batch.annotation, batch.size, items=batch.items
            )
            notes.sent(seat.name, renamed, event.view, len(head.changed) + 1, others)

    def held_back(self) -> HeldBack | None:
        """Why the next message waits."""
        wishes = self._domain.program.wishes
        if self._domain.directs.under_way and type(wishes[0]) is Letter:
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
        slow = seat.slow()
        if self.room(seat) <= 0 and slow:
            return HeldBack(slow[0], "its program does not read")
        return seat.member.held_back()


def _is_in(member: MemberId, seat: Seat) -> bool:
    stream = seat.member.stream
    return stream is not None and member in stream.members
