"""What a process does from time to time, and how the frames of its groups get to their members."""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Dest, Frame, Reach, Timer
from semcast.protocols.isis.departures import answer_of
from semcast.protocols.isis.frames import Advance, InGroup, StableWanted, Taken, TakenWanted, number_of
from semcast.protocols.isis.giving import members_of
from semcast.protocols.isis.seat import Seat
from semcast.protocols.semantic.exchange import SrmTimer
from semcast.protocols.vsync.frames import InView, Received
from semcast.protocols.vsync.membership import VsyncTimer

if TYPE_CHECKING:
    from semcast.protocols.isis.stack import Isis

_OWN = ""
"""The name under which the timers of the process itself stand."""
_BEATS = frozenset({SrmTimer.GOSSIP, VsyncTimer.CHECK})
"""Timers that all groups have at every heartbeat."""
_OF_A_VIEW = (InView, Received, Taken)
"""Frames that are for the members of one view only."""
_MOST_PATIENCE = 5
"""Who does not answer is asked ever more rarely, up to 2^5 times the first interval."""


class ErrandTimer(Timer):
    """What the process itself waits for."""

    TELL = "tell"
    ASK = "ask"
    BEACON = "beacon"
    AGE = "age"
    MARK = "mark"
    DIRECT = "direct"
    CLIENTS = "clients"
    HAVE = "have"


class Errands:
    """Of one process.

    Args:
        domain: the process.
        phase: when its heartbeats are, out of step with other processes.
    """

    def __init__(self, domain: "Isis", phase: int) -> None:
        self._domain = domain
        self._delay = max(domain.settings.vsync.ack_delay, MILLISECOND)
        self._much = max(1, domain.settings.credit // 4)
        self._pause = 2 * domain.settings.vsync.resend
        self._period = domain.settings.vsync.detector.heartbeat
        self._phase = phase % self._period
        self._patience = 0
        self._heap: list[tuple[Nanos, int, str, Timer]] = []
        self._times: dict[tuple[str, Timer], Nanos] = {}
        self._order = 0
        self._alarm: Nanos | None = None  # what the driver was asked for

    # Timers of many, with one of the driver

    def set_timer(self, now: Nanos, group: str, timer: Timer, at: Nanos | None) -> None:
        """Of a group, or of the process itself."""
        if at is None:
            self._times.pop((group, timer), None)
            return
        if timer in _BEATS:
            at = self._in_step(now, at)
        self._times[group, timer] = at
        self._order += 1
        heappush(self._heap, (at, self._order, group, timer))

    def _in_step(self, now: Nanos, at: Nanos) -> Nanos:
        """With the other groups, if that is not now: one heartbeat of a process speaks for all of them."""
        beat = at - (at - self._phase) % self._period
        return beat if beat > now else at

    def forget(self, group: str) -> None:
        """A group has no timers any more."""
        for key in [key for key in self._times if key[0] == group]:
            del self._times[key]

    def due(self, now: Nanos) -> list[tuple[str, Timer]]:
        """Timers of groups whose time has come; those of the process are dealt with."""
        self._alarm = None
        found: list[tuple[str, Timer]] = []
        while self._heap and self._heap[0][0] <= now:
            at, _, group, timer = heappop(self._heap)
            if self._times.get((group, timer)) == at:
                del self._times[group, timer]
                if group != _OWN:
                    found.append((group, timer))
                elif timer is ErrandTimer.TELL:
                    self._tell_all()
                elif timer is ErrandTimer.BEACON:
                    self._show()
                elif timer is ErrandTimer.MARK:
                    self._ask_for_marks()
                elif timer is ErrandTimer.DIRECT:
                    self._domain.directs.ask(now)
                elif timer is ErrandTimer.CLIENTS:
                    self._domain.clientele.tend(now)
                elif timer is ErrandTimer.HAVE:
                    self._domain.clientele.tell()
                elif timer is ErrandTimer.AGE:
                    self._ask_about_stamps()
                else:
                    self._ask(now)
        return found

    def alarm(self) -> Nanos | None:
        """When to look next, if the driver was not asked for that already."""
        while self._heap and self._times.get((self._heap[0][2], self._heap[0][3])) != self._heap[0][0]:
            heappop(self._heap)
        if not self._heap or self._heap[0][0] == self._alarm:
            return None
        self._alarm = self._heap[0][0]
        return self._alarm

    # What programs took, and who has reached which view

    def look(self, now: Nanos) -> None:
        """Plan what is to be told and asked."""
        domain = self._domain
        program = domain.program
        if program.untold >= self._much:
            self._tell_all()
        if (program.fresh or program.fresh_sources) and (_OWN, ErrandTimer.TELL) not in self._times:
            self.set_timer(now, _OWN, ErrandTimer.TELL, now + self._delay)
        if domain.directs.waits() and (_OWN, ErrandTimer.DIRECT) not in self._times:
            self.set_timer(now, _OWN, ErrandTimer.DIRECT, now + (self._pause << domain.directs.patience))
        if domain.clientele:
            if (_OWN, ErrandTimer.CLIENTS) not in self._times:
                self.set_timer(now, _OWN, ErrandTimer.CLIENTS, now + domain.settings.vsync.detector.heartbeat)
            if domain.clientele.untold() and (_OWN, ErrandTimer.HAVE) not in self._times:
                self.set_timer(now, _OWN, ErrandTimer.HAVE, now + self._delay)
        beacon = domain.settings.beacon
        if beacon and domain.seats and (_OWN, ErrandTimer.BEACON) not in self._times:
            self.set_timer(now, _OWN, ErrandTimer.BEACON, now + beacon)
        if domain.policy.heard_of() and (_OWN, ErrandTimer.AGE) not in self._times:
            self.set_timer(now, _OWN, ErrandTimer.AGE, now + domain.settings.stamp_age)
        if domain.policy.epoch and len(domain.line) and (_OWN, ErrandTimer.MARK) not in self._times:
            self.set_timer(now, _OWN, ErrandTimer.MARK, now + self._pause)
        behind = bool(len(domain.totals)) and self._advance(now, again=False)
        waits = domain.program.settle() or bool(domain.departures) or behind or domain.clientele.asks()
        if not waits:
            self._patience = 0
        elif (_OWN, ErrandTimer.ASK) not in self._times:
            self.set_timer(now, _OWN, ErrandTimer.ASK, now + (self._pause << self._patience))

    def _advance(self, now: Nanos, *, again: bool) -> bool:
        """Ask holders to say the number that the next ordered message waits for; whether one has not."""
        domain = self._domain
        number, found = domain.totals.next_number, list(domain.totals.behind())
        for seat in found:
            stream = seat.member.stream
            if stream is None or (seat.turns.asked_upto >= number and not again):
                continue
            seat.turns.asked_upto = number
            if stream.rank == 0:
                domain.reception.advance(now, seat, number)
            else:
                self.post(seat, [(stream.members[0], Advance(stream.view().id, number))])
        return bool(found)

    def _show(self) -> None:
        """Who is in another group of the same name shall hear of it."""
        for seat in self._domain.seats.values():
            answer = answer_of(seat)
            if answer is not None and answer.members[0] == seat.me:
                self.post(seat, [(Reach.ANYBODY, answer)])

    def _ask_about_stamps(self) -> None:
        """A stamp need not be said any more once all members of its group have what it names (6.4)."""
        for name, time in list(self._domain.policy.heard_of().items()):
            group, counts = number_of(name), sorted(time.counts.items())
            if self._domain.departures.over(group, time.view):
                self._domain.policy.settled(group, time)
            else:
                self._domain.out.announce(InGroup(group, StableWanted(time.view, counts)))

    def _ask_for_marks(self) -> None:
        """What the program is to be given waits for them."""
        for seat, member, frame in self._domain.policy.marks_wanted(self._domain.line):
            self.post(seat, [(member, frame)])

    def _tell_all(self) -> None:
        program = self._domain.program
        program.untold = 0
        fresh, program.fresh = program.fresh, {}
        for seat in fresh.values():
            if self._domain.seats.get(seat.name) is seat:
                self.tell(seat, None)
        sources, program.fresh_sources = program.fresh_sources, {}
        for source in sources.values():
            self._domain.arrivals.answer(source)

    def tell(self, seat: Seat, whom: MemberId | None) -> None:
        """Say what the program here has taken: to one member, or to all."""
        stream = seat.member.stream
        if stream is not None:
            told = seat.taking.told_of.get(seat.me, 0)
            upto = [seat.taking.here[member] for member in stream.members]
            frame = Taken(stream.view().id, upto, told, seat.taking.uncertain(stream.members))
            self.post(seat, [(whom, frame)])

    def _ask(self, now: Nanos) -> None:
        """What is awaited may have been lost."""
        domain = self._domain
        self._patience = min(self._patience + 1, _MOST_PATIENCE)
        for seat in domain.seats.values():
            stream = seat.member.stream
            if stream is not None:
                wanted = TakenWanted(stream.view().id)
                flushes = domain.program.flushes or (seat.serving is not None and seat.serving.flushes())
                asked = members_of(seat) if flushes else seat.behind()
                self.post(seat, [(member, wanted) for member in asked if member != seat.me])
        self._advance(now, again=True)
        for group, member, frame in domain.departures.wanted(now, flushes=bool(domain.program.flushes)):
            domain.out.send(member, InGroup(group, frame))

    # Frames

    def post(self, seat: Seat, sends: Sequence[tuple[Dest, Frame]]) -> None:
        """Frames of a group: those for all go to its members, and to nobody else in the domain."""
        out, number, stream = self._domain.out.sends, seat.number, seat.member.stream
        current = 0 if stream is None else stream.view().id
        for dest, frame in sends:
            to = dest
            if type(frame) is InView and dest is None and frame.view == current:
                to = seat.others  # most of them, and nothing has to be looked up
            elif dest is None:
                to = self._members(seat, frame)
            if to != ():
                out.append((to, InGroup(number, frame)))  # type: ignore[arg-type]

    def _members(self, seat: Seat, frame: Frame) -> Dest:
        """All others, and those who are not there any more where a frame is not of the current view."""
        stream = seat.member.stream
        if stream is None:
            return Reach.ANYBODY
        current = isinstance(frame, _OF_A_VIEW) and frame.view == stream.view().id
        if current and seat.farewells and type(frame) is Received:
            seat.farewells -= 1
            return seat.all_others
        return seat.others if current else seat.all_others
