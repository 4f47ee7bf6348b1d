"""A process in many overlapping groups, with causal order over all of them, as one stack.

Birman, Schiper and Stephenson 1991, sections 6 and 7. Each group is one of virtual synchrony; what the
program is given, and when this process may send, is decided here. See `docs/protocols/isis.md`.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar

from semcast.core.annotations import Annotation
from semcast.core.events import Delivery, Left
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.protocols.isis.arrivals import Arrivals
from semcast.protocols.isis.blocks import Blocks
from semcast.protocols.isis.clientele import Clientele
from semcast.protocols.isis.departures import Departures
from semcast.protocols.isis.directs import Directs
from semcast.protocols.isis.epochs import Epochs
from semcast.protocols.isis.errands import Errands
from semcast.protocols.isis.flushing import Flush
from semcast.protocols.isis.frames import number_of
from semcast.protocols.isis.giving import Giving, members_of
from semcast.protocols.isis.line import Line
from semcast.protocols.isis.notes import Notes
from semcast.protocols.isis.packing import Packing
from semcast.protocols.isis.policies import Conservative, Full
from semcast.protocols.isis.program import Cast, LeaveWish, Letter, Program, measured
from semcast.protocols.isis.reception import Reception
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.sending import Sending
from semcast.protocols.isis.settings import MAX_GROUP, IsisSettings, Policy
from semcast.protocols.isis.styles import Style
from semcast.protocols.isis.total import Totals
from semcast.protocols.isis.waits import Waits
from semcast.protocols.lightweight.events import LeftGroup
from semcast.protocols.lightweight.sessions import Refused

_GONE = 4
"""Times of the longest silence after which a group that was left counts as gone with all its members."""


class IsisTimer(Timer):
    """What a process waits for: the next of whatever its groups and it itself wait for."""

    NEXT = "next"


class Isis(Stack):
    """One process.

    Args:
        me: who this is, in all groups.
        settings: of the domain.
        rng: where chance comes from.
        out: what it wants from the world.
    """

    seat_kind: ClassVar[type[Seat]] = Seat
    line_kind: ClassVar[type[Line]] = Line
    waits_kind: ClassVar[type[Waits]] = Waits
    full_kind: ClassVar[type[Full]] = Full
    blocks_kind: ClassVar[type[Blocks]] = Blocks
    epochs_kind: ClassVar[type[Epochs]] = Epochs
    sending_kind: ClassVar[type[Sending]] = Sending
    giving_kind: ClassVar[type[Giving]] = Giving
    flush_kind: ClassVar[type[Flush]] = Flush
    totals_kind: ClassVar[type[Totals]] = Totals
    directs_kind: ClassVar[type[Directs]] = Directs
    arrivals_kind: ClassVar[type[Arrivals]] = Arrivals
    departures_kind: ClassVar[type[Departures]] = Departures
    clientele_kind: ClassVar[type[Clientele]] = Clientele

    def __init__(self, me: MemberId, settings: IsisSettings, rng: Random, out: Outbox) -> None:
        self.me = me
        self.settings = settings
        self.out = out
        self.stats = Statistics()
        self.seats: dict[str, Seat] = {}
        """The groups that this process is in, or asked to be in."""
        self.clientele = self.clientele_kind(self)
        self.notes = Notes(me, out, wanted=settings.notes)
        self.program = Program(me, settings.send_messages, settings.send_bytes, self.notes)
        self.totals = self.totals_kind(self.seats)
        self.policy = self._policy_of(settings.policy)
        self.line = self.line_kind(self.seats, self.policy, self.totals)
        patience = _GONE * settings.vsync.detector.timeout_max
        self.departures = self.departures_kind(patience)
        self.directs = self.directs_kind(self, patience)
        self.arrivals = self.arrivals_kind(self)
        self.waits = self.waits_kind(settings, self.seats, self.clientele.visits, self.departures)
        self.sending = self.sending_kind(self)
        self.giving = self.giving_kind(self)
        self.reception = Reception(self)
        self.packing = Packing(out)
        self._rng = rng
        self.errands = Errands(self, rng.getrandbits(48))
        self._names: dict[int, str] = {}  # of these groups, by number
        self._leaving = ""  # why the process leaves the domain, if it does
        self._left = False
        self.heed: Callable[[], None] = _nobody
        """Called after every input: the program may have something to take, or room."""

    def _policy_of(self, policy: Policy) -> Conservative:
        kinds: dict[Policy, type[Conservative]] = {
            Policy.CONSERVATIVE: Conservative,
            Policy.FULL: self.full_kind,
            Policy.BLOCKS: self.blocks_kind,
            Policy.EPOCHS: self.epochs_kind,
        }
        return kinds[policy](self.seats, self.settings)

    # Life

    def start(self, now: Nanos) -> None:
        """Begin, in no group."""
        self.notes.began(self.settings, self.waits.failures)
        self.settle(now)

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        """Leave all groups, and then the domain."""
        self._leaving = cause
        for seat in list(self.seats.values()):
            if seat.serving is None:
                self._leave_seat(now, seat)
        self.settle(now)

    @property
    def is_over(self) -> bool:
        """Whether this process is in the domain no more."""
        return self._left

    def phase(self) -> str:
        """Operational, or left."""
        return "left" if self._left else "operational"

    def phases(self) -> tuple[str, ...]:
        """The phases of its groups, too."""
        return (self.phase(), *(seat.member.phase() for seat in self.seats.values()))

    def view(self) -> View:
        """A domain has none."""
        return View(0, ())

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> Stack | None:
        """Another incarnation, in no group: its program asks for them again."""
        successor = type(self)(member, self.settings, rng, out)
        successor.heed = self.heed
        return successor

    # From the program. Whoever asks for something has to `settle` then.

    def join(
        self, now: Nanos, group: str, minimum: int = 0, style: str = Style.PEER.value, role: str = ""
    ) -> int:
        """Be in a group, which so many found together if it is not there; returns its number.

        In a group with clients (`style`) it is a server or a client of the others (`role`).
        """
        visits = self.clientele.visits
        _check_name(group)
        if group in self.seats or group in visits:
            raise Refused(f"{self.me} is in {group!r} already, or about to be, or to leave it")
        if len(self.seats) + len(visits) >= self.settings.memberships:
            raise Refused(f"{self.me} is in {len(self.seats) + len(visits)} groups already")
        objection = self.policy.objection(group, list(visits))
        if objection:
            raise Refused(objection)
        self.clientele.check(group, style, role)
        request = self.program.number(1)
        if self.clientele.is_client(role):
            self.clientele.visit(now, group, style, self._rng)
            self.program.done(request)
            return request
        rng = Random(self._rng.getrandbits(64))
        seat = self.seat_kind(
            self.me,
            group,
            number_of(group),
            self.settings,
            minimum,
            rng,
            self.policy,
            self.line,
            self.totals,
        )
        self.seats[group] = seat
        self._names[seat.number] = group
        if style != Style.PEER:
            self.clientele.serve(seat, style)
        after = self.departures.after(seat.number)
        if after is not None:
            seat.member.remember(after)
        seat.member.start(now)
        self.program.done(request)
        return request

    def ask_to_leave(self, group: str) -> int:
        """Be in a group no more, behind all that was sent; returns the number of the request."""
        visit = self.clientele.visits.get(group)
        if visit is not None and visit.parting:
            raise Refused(f"{self.me} leaves {group!r}")
        seat = self._seat_of(group) if visit is None else None
        request = self.program.number(1)
        if seat is not None:
            seat.leaving = True
        elif visit is not None:
            visit.parting = True
        self.program.wish(LeaveWish(group, request))
        return request

    def cast(
        self,
        group: str,
        payloads: Sequence[bytes],
        items: Sequence[str] | None = None,
        *,
        marked: bool = False,
        ordered: bool = False,
        to: MemberId | None = None,
    ) -> int:
        """Multicast messages to a group that it is in; returns the number of the first.

        With `marked` they belong to calls, with `ordered` all ordered messages of the domain are given in
        one order, whatever their groups (ABCAST). With `to` a client of the group gets them, too.
        """
        if group in self.clientele.visits:
            self.clientele.check_cast(group, items is not None, ordered=ordered, to=to)
        else:
            self._check_seat(self._seat_of(group), items is not None, ordered=ordered, to=to)
        if not payloads or (items is not None and len(items) != len(payloads)):
            raise Refused("at least one message, and an item for each or for none")
        if ordered and (items is not None or marked):
            raise Refused("what has a place in the order of the domain replaces nothing, so it has no item")
        sizes = list(map(len, payloads))
        size, largest = measured(sizes)
        if size > self.settings.run_bytes:
            raise Refused(f"a run of more than {self.settings.run_bytes} bytes")
        first = self.program.number(len(payloads))
        cast = Cast(group, first, list(payloads), items, sizes, size, largest, marked, ordered, to)
        self.program.wish(cast)
        return first

    def _check_seat(self, seat: Seat, items: bool, *, ordered: bool, to: MemberId | None) -> None:
        if to is not None and (seat.serving is None or items):
            raise Refused("only servers send to one client, and that replaces nothing, so it has no item")
        if ordered and seat.serving is not None:
            raise Refused(f"{seat.name!r} has clients: it is not in the one order of the domain")

    def send_to(self, to: MemberId, payload: bytes, group: str = "", *, marked: bool = False) -> int:
        """Send a message to one member alone (7.2), of this group or of any that both are in.

        If there is none, or its failure is seen before it is known to be there, `Undeliverable` comes back.
        Returns its number.
        """
        seat = self.seats.get(group)
        if seat is not None and seat.serving is not None and to in seat.serving.roster.listed:
            return self.cast(group, [payload], marked=marked, to=to)
        if len(payload) > self.settings.run_bytes:
            raise Refused(f"a message of more than {self.settings.run_bytes} bytes")
        number = self.program.number(1)
        self.program.wish(Letter(group, number, to, payload, marked))
        return number

    def meets(self, member: MemberId) -> bool:
        """Whether it is in a current view of a group of this process."""
        return any(member in members_of(seat) for seat in self.seats.values())

    def flush(self) -> int:
        """Tell when all that the program has sent or was given is given to all members who go on (7.3).

        Of groups that it has left, too. Returns the number of the request.
        """
        number = self.program.number(1)
        self.notes.flush(number, "asked")
        visits = self.clientele.visits.values()
        self.program.flush(self.flush_kind(number, self.seats.values(), visits, self.departures))
        return number

    def _seat_of(self, group: str) -> Seat:
        seat = self.seats.get(group)
        if seat is None or seat.leaving:
            raise Refused(f"{self.me} is not in {group!r}, or leaves it")
        return seat

    def multicast(
        self,
        now: Nanos,  # noqa: ARG002
        payloads: Sequence[bytes],  # noqa: ARG002
        annotation: Annotation | None = None,  # noqa: ARG002
        *,
        safe: bool = False,  # noqa: ARG002
    ) -> int:
        """Messages go to groups."""
        raise ValueError("in a domain messages go to groups: use cast")

    # From the world

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """For one of the groups."""
        self.reception.receive(now, source, (frame,))
        self.settle(now)

    def on_frames(self, now: Nanos, source: MemberId, frames: Sequence[Frame]) -> None:
        """In the order in which they came: what is received first is given to the program first."""
        self.reception.receive(now, source, frames)
        self.settle(now)

    def seat_numbered(self, number: int) -> Seat | None:
        """The group with a number, if this process is in it."""
        name = self._names.get(number)
        return None if name is None else self.seats.get(name)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Whatever is due."""
        assert timer is IsisTimer.NEXT
        for group, which in self.errands.due(now):
            seat = self.seats.get(group)
            if seat is not None and not self._left:
                seat.member.on_timer(now, which)
                self._drain(now, seat)
        self.settle(now)

    # What groups want

    def settle(self, now: Nanos) -> None:
        """Give the program what it may be given, and send what may be sent, until both are done."""
        if not self._left:
            for seat in list(self.seats.values()):
                out = seat.out
                if out.sends or out.timers or out.events:
                    self._drain(now, seat)
            self.arrivals.place()
            while not self._left:
                given = self.giving.give(now)
                # What was given may have made room, so that more has come.
                if not self.sending.send(now) and not (given and len(self.line)):
                    break
            if self.clientele:
                self.clientele.look(now)
            self.heed()
            if self._leaving and self.clientele:
                for seat in self.clientele.close(now):
                    self._leave_seat(now, seat)
            self.errands.look(now)
            if self._leaving and not self.seats and not self.clientele.visits and not self._left:
                self._left = True
                self.out.deliver(Left(self._leaving))
        self.packing.tidy()
        at = self.errands.alarm()
        if at is not None:
            self.out.set_timer(IsisTimer.NEXT, at)

    def leave_group(self, now: Nanos, seat: Seat) -> None:
        """The program asked to, and all that it sent before has left."""
        if seat.serving is not None:
            seat.serving.parted = True
            if seat.serving.settled():
                seat.serving.say_farewell()
        self._leave_seat(now, seat)

    def _leave_seat(self, now: Nanos, seat: Seat) -> None:
        seat.leaving = True
        seat.member.leave(now)
        self._drain(now, seat)

    def drain(self, now: Nanos, seat: Seat) -> None:
        """Do what a group wants."""
        self._drain(now, seat)

    def _drain(self, now: Nanos, seat: Seat) -> None:
        out = seat.out
        while out.sends or out.timers or out.events:
            if out.timers:
                timers, out.timers = out.timers, []
                for timer, at in timers:
                    self.errands.set_timer(now, seat.name, timer, at)
            if out.sends:
                sends, out.sends = out.sends, []
                self.errands.post(seat, sends)
            if out.events:
                events, out.events = out.events, []
                for event in events:
                    if isinstance(event, Left):
                        self._on_left(now, seat, event)
                    else:
                        self.sending.on_event(seat, event)

    def _on_left(self, now: Nanos, seat: Seat, event: Left) -> None:
        """This process is out of a group: of its own will, or else out of all of them (4.1)."""
        self.departures.left(now, seat)
        seat.gone = True
        self.arrivals.left(seat)
        self.policy.left(seat)
        self.line.leave(seat)
        self.totals.left(seat)
        del self.seats[seat.name], self._names[seat.number]
        self.clientele.serve_no_more(seat)
        self.errands.forget(seat.name)
        self.errands.post(seat, seat.out.sends)
        seat.out.sends, seat.out.timers = [], []
        if (event.again or seat.put_out) and not self._leaving:
            self.put_out(seat.name, event)
        else:
            self.notes.left(seat.name)
            self.program.put(LeftGroup(seat.name))

    def put_out(self, group: str, event: Left) -> None:
        """Out of one group is out of all of them."""
        self.notes.out(group)
        self._left = True
        self.seats.clear()
        self.clientele.visits.clear()
        self.clientele.served.clear()
        self.program.close(event.cause)
        self.heed()
        self.out.deliver(Left(f"{group}: {event.cause}", again=True))

    # To the application

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:  # noqa: ARG002
        """The program takes what it is given by itself."""
        return []

    def deliverable(self) -> bool:
        """Nothing goes this way."""
        return False

    def pending(self) -> int:
        """What the program asked for and has not happened."""
        return len(self.program.wishes)

    def held_back(self) -> HeldBack | None:
        """Why it waits."""
        return self.sending.held_back()

    def buffered(self) -> int:
        """What waits here and in groups."""
        return len(self.program) + sum(seat.member.buffered() for seat in self.seats.values())


def _check_name(group: str) -> None:
    if not 1 <= len(group.encode()) <= MAX_GROUP:
        raise Refused(f"{group!r} is no name of a group: 1 to {MAX_GROUP} bytes")


def _nobody() -> None:
    """The program looks for itself."""
