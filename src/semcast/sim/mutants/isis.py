"""Broken causal domains: each drops one rule of `docs/protocols/isis.md`."""

from collections.abc import Iterator, Sequence

from semcast.core.events import Left
from semcast.core.ids import MemberId, Nanos
from semcast.protocols.isis.arrivals import Arrivals, DirectTicket, Source
from semcast.protocols.isis.clients import ClientSeat
from semcast.protocols.isis.departures import Departures
from semcast.protocols.isis.directs import Directs
from semcast.protocols.isis.flushing import Flush, Snapshot
from semcast.protocols.isis.giving import Giving
from semcast.protocols.isis.line import Line
from semcast.protocols.isis.numbering import Numbering
from semcast.protocols.isis.order import DomainOrder, Ticket
from semcast.protocols.isis.policies import AnyTicket, Full
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.sending import Sending
from semcast.protocols.isis.stamps import Audience, Time
from semcast.protocols.isis.taking import Taking
from semcast.protocols.isis.total import Totals
from semcast.protocols.isis.waits import Waits
from semcast.protocols.vsync.orders import CausalOrder, Lines
from semcast.sim.isis_programs import DomainProcess
from semcast.sim.mutants.isis_clients import CLIENT_MUTANTS
from semcast.sim.mutants.isis_policies import POLICY_MUTANTS
from semcast.sim.mutants.mutant import Mutant


class _BlindLine(Line):
    def allowed_by_others(self, ticket: AnyTicket) -> bool:  # noqa: ARG002
        return True


class OtherGroupsIgnored(DomainProcess):
    """2.3' is dropped: only the own group of a message is looked at."""

    line_kind = _BlindLine


class _TooMuchTold(Full):
    def delivered(self, ticket: Ticket) -> None:
        super().delivered(ticket)
        stream = ticket.order.lines
        sender = stream.members[ticket.rank]
        for seat in self._seats.values():
            if seat.entered is not None and sender in seat.entered.members:
                seat.hear(ticket.others)


class StampToldByAProcess(DomainProcess):
    """6.3 as printed: what somebody in the group told, in whatever group, is not said there again."""

    full_kind = _TooMuchTold


class _ToldAnyway(Full):
    def delivered(self, ticket: Ticket) -> None:
        super().delivered(ticket)
        ticket.order.seat.hear(ticket.others)


class ToldBeforeItJoined(DomainProcess):
    """What messages of earlier views said in a group counts as said to those who joined since."""

    full_kind = _ToldAnyway


class _OwnGroupsOnly(Full):
    def _times(self, seat: Audience) -> list[tuple[str, Time]]:
        return [(name, time) for name, time in super()._times(seat) if name in self._seats]


class ActiveAsPrinted(DomainProcess):
    """6.3 as printed: only groups that the process is in can be active, so a relay omits the others."""

    full_kind = _OwnGroupsOnly


class _PrintedLine(Line):
    def ready(self, ticket: AnyTicket) -> bool:
        for earlier in self:
            if earlier is ticket:
                break
            if _group_of(earlier) != _group_of(ticket):
                return False
        return super().ready(ticket)


def _group_of(ticket: AnyTicket) -> str:
    return ticket.group if isinstance(ticket, DirectTicket) else ticket.order.seat.name


class ReceiveRuleAsPrinted(DomainProcess):
    """6.3 as printed: a message waits for all that was received earlier in other groups. A deadlock."""

    line_kind = _PrintedLine


class _BackwardLine(Line):
    def next(self) -> AnyTicket | None:
        return next(filter(self.ready, reversed(self._tickets)), None)


class NewestReadyFirst(DomainProcess):
    """What is ready is given to the program in any order."""

    line_kind = _BackwardLine


class _HastyLine(Line):
    def reaches(self, seat: Seat, view: int, counts: list[tuple[int, int]]) -> bool:
        stream = seat.entered
        if stream is not None and view > stream.view().id:
            return True
        return super().reaches(seat, view, counts)


class NewerStampTakenForStale(DomainProcess):
    """A stamp of a view that is not here yet does not wait for it."""

    line_kind = _HastyLine


class _Loophole(Line):
    def waits_for_a_join(self, ticket: AnyTicket) -> bool:
        return isinstance(ticket, DirectTicket) and super().waits_for_a_join(ticket)


class OvertakenWhileItJoins(DomainProcess):
    """A message that waits for a group that is joined is overtaken by what names neither of the two."""

    line_kind = _Loophole


class _EagerJoiner(Line):
    def reaches(self, seat: Seat, view: int, counts: list[tuple[int, int]]) -> bool:
        return seat.entered is None or super().reaches(seat, view, counts)


class JoinerIgnoresStamps(DomainProcess):
    """Stamps of a group that is being joined do not wait for it."""

    line_kind = _EagerJoiner


class _QueuedSeat(Seat):
    def reaches(self, view: int, counts: Sequence[tuple[int, int]]) -> bool:
        stream = self.member.stream
        if stream is None or view != stream.view().id:
            return super().reaches(view, counts)
        return all(stream.queued[rank] >= count for rank, count in counts if rank < len(stream.members))


class ReadyCountsQueued(DomainProcess):
    """What is queued in another group counts as given to the program."""

    seat_kind = _QueuedSeat


class _UnsafeWaits(Waits):
    def unsafe(self, seat: Seat) -> bool:  # noqa: ARG002
        return False


class LeavesWithoutWaitingForSafe(DomainProcess):
    """A process acts in another group on causes that may vanish with it."""

    waits_kind = _UnsafeWaits


class _GenerousWaits(Waits):
    def holders(self, rows: list[list[int]], rank: int, count: int) -> int:
        return super().holders(rows, rank, count) + 1


class KCountsTheSenderAlone(DomainProcess):
    """6.5 with k as in 5.3: the sender of a message counts beside those who have it."""

    waits_kind = _GenerousWaits


class _Discarding(Giving):
    def give(self, now: Nanos) -> bool:
        domain = self._domain
        for ticket in [each for each in domain.line if isinstance(each, Ticket)]:
            seat, stream = ticket.order.seat, ticket.order.lines
            entered = seat.entered
            if entered is stream and entered is not seat.member.stream and not domain.line.ready(ticket):
                assert entered is not None
                domain.line.remove(ticket)
                entered.deliver_run(ticket.rank, ticket.last)
        return super().give(now)


class DiscardedAtFlush(DomainProcess):
    """5.5 step 3 as printed: what waits for a cause in another group goes with its view."""

    giving_kind = _Discarding


class _ForgetfulWaits(Waits):
    def left_behind(self, seat: Seat | ClientSeat) -> bool:  # noqa: ARG002
        return False


class LeaverForgetsActivity(DomainProcess):
    """Leaving a group ends its activity."""

    waits_kind = _ForgetfulWaits


class _ShortWaits(Waits):
    def unsettled(self, seat: Seat) -> bool:  # noqa: ARG002
        return False


class ViewChangeEndsActivity(DomainProcess):
    """What belongs to a view that is over counts as being everywhere."""

    waits_kind = _ShortWaits


class DroppingOrder(DomainOrder):
    """Forgets what purged messages say of other groups."""

    def skipped(self, rank: int, seq: int, head: bytes) -> None:
        CausalOrder.skipped(self, rank, seq, head)


class _DroppingSeat(Seat):
    def order_of(self, lines: Lines, view: int, position: int) -> DomainOrder:
        return DroppingOrder(lines, view, position, self, self._line)


class PurgeDropsForeignFields(DomainProcess):
    """What a purged message says of other groups is forgotten with it."""

    seat_kind = _DroppingSeat


class PutOutOfOneGroupOnly(DomainProcess):
    """Who is put out of one group goes on in the others."""

    def put_out(self, group: str, event: Left) -> None:  # noqa: ARG002
        self.notes.out(group)


class _HastyFlush(Flush):
    def taken_by_all(self, _seq: int) -> bool:
        return True


class FlushedWhenSent(DomainProcess):
    """A flush waits for own messages only, and not for what the program was given."""

    flush_kind = _HastyFlush


class _Forgetful(Departures):
    def left(self, now: Nanos, seat: Seat) -> None:
        super().left(now, seat)
        self._untold.clear()


class FlushedWithoutWhoStays(DomainProcess):
    """A flush does not wait for what the program was given in groups that it has left."""

    departures_kind = _Forgetful


class _ShortSighted(Snapshot):
    def up_to_date(self, member: MemberId) -> bool:  # noqa: ARG002
        return True


class _FlushForOneView(Flush):
    snapshot_kind = _ShortSighted


class FlushedForOneView(DomainProcess):
    """A flush waits for what the program was given in the current view, and not in those before it."""

    flush_kind = _FlushForOneView


class _ForgetfulTaking(Taking):
    def purged(self, sender: MemberId, seq: int, by: int) -> None:
        pass

    def skipped(self, sender: MemberId, seq: int, upto: int) -> None:
        pass


class _ForgetfulSeat(Seat):
    taking_kind = _ForgetfulTaking


class FlushedBeforeReplacements(DomainProcess):
    """What was purged counts as taken with what comes behind it, and not with what replaces it."""

    seat_kind = _ForgetfulSeat


class _HastyDirects(Directs):
    def look(self) -> bool | None:
        if self._way is not None:
            way, self._way = self._way, None
            self._domain.program.letter_left(way, way.untaken[-1] if way.untaken else 0)
        return True


class DirectOvertaken(DomainProcess):
    """Who sends a message to one member does not wait until it is there."""

    directs_kind = _HastyDirects


class _HastyArrivals(Arrivals):
    def _look_at(self, source: Source) -> None:
        frame = source.waiting
        assert frame is not None
        source.placed = frame.nth
        self.answer(source)
        super()._look_at(source)


class DirectAcknowledgedOnReception(DomainProcess):
    """7.2 as printed: a message to one member is acknowledged before its view is there."""

    arrivals_kind = _HastyArrivals


class _KeepingArrivals(Arrivals):
    def kept(self, cut: Sequence[int], counts: Sequence[tuple[int, int]]) -> bool:  # noqa: ARG002
        return True


class DirectKeptWithoutCauses(DomainProcess):
    """A message to one member is given to it though what it comes after is lost with its view."""

    arrivals_kind = _KeepingArrivals


class _OwnOrderOnly(Totals):
    def behind(self) -> Iterator[Seat]:
        return iter(())


class OrderWithoutAdvance(DomainProcess):
    """Ordered messages do not wait for what may come before them in other groups."""

    totals_kind = _OwnOrderOnly


class _ImpatientSending(Sending):
    def awaits_own(self, seat: Seat, *, ordered: bool) -> bool:  # noqa: ARG002
        return False


class OrderOvertakenByItsSender(DomainProcess):
    """Who sent an ordered message sends in other groups before it was given it itself."""

    sending_kind = _ImpatientSending


class _OwnNumbers(Numbering):
    def floor(self) -> int:
        return self._order.seat.turns.said_upto


class _OwnNumberSeat(Seat):
    numbering_kind = _OwnNumbers


class NumbersWithoutLamport(DomainProcess):
    """Holders do not look at the numbers of other groups."""

    seat_kind = _OwnNumberSeat


MUTANTS: dict[str, Mutant] = {
    "other-groups-ignored": Mutant(OtherGroupsIgnored),
    "stamp-told-by-a-process": Mutant(StampToldByAProcess, by_chance=False),
    "told-before-it-joined": Mutant(ToldBeforeItJoined, by_chance=False),
    "active-as-printed": Mutant(ActiveAsPrinted, by_chance=False),
    "receive-rule-as-printed": Mutant(ReceiveRuleAsPrinted, by_chance=False),
    "newest-ready-first": Mutant(NewestReadyFirst),
    "newer-stamp-taken-for-stale": Mutant(NewerStampTakenForStale, by_chance=False),
    "joiner-ignores-stamps": Mutant(JoinerIgnoresStamps, by_chance=False),
    "overtaken-while-it-joins": Mutant(OvertakenWhileItJoins, by_chance=False),
    "ready-counts-queued": Mutant(ReadyCountsQueued, by_chance=False),
    "leaves-without-waiting-for-safe": Mutant(LeavesWithoutWaitingForSafe, by_chance=False),
    "k-counts-the-sender-alone": Mutant(KCountsTheSenderAlone, by_chance=False),
    "discarded-at-flush": Mutant(DiscardedAtFlush, by_chance=False),
    "leaver-forgets-activity": Mutant(LeaverForgetsActivity, by_chance=False),
    "view-change-ends-activity": Mutant(ViewChangeEndsActivity, by_chance=False),
    "purge-drops-foreign-fields": Mutant(PurgeDropsForeignFields, by_chance=False),
    "put-out-of-one-group-only": Mutant(PutOutOfOneGroupOnly),
    "flushed-when-sent": Mutant(FlushedWhenSent),
    "flushed-for-one-view": Mutant(FlushedForOneView, by_chance=False),
    "flushed-without-who-stays": Mutant(FlushedWithoutWhoStays, by_chance=False),
    "flushed-before-replacements": Mutant(FlushedBeforeReplacements, by_chance=False),
    "order-without-advance": Mutant(OrderWithoutAdvance),
    "order-overtaken-by-its-sender": Mutant(OrderOvertakenByItsSender, by_chance=False),
    "numbers-without-lamport": Mutant(NumbersWithoutLamport, by_chance=False),
    "direct-overtaken": Mutant(DirectOvertaken),
    "direct-acknowledged-on-reception": Mutant(DirectAcknowledgedOnReception, by_chance=False),
    "direct-kept-without-causes": Mutant(DirectKeptWithoutCauses, by_chance=False),
    **POLICY_MUTANTS,
    **CLIENT_MUTANTS,
}
