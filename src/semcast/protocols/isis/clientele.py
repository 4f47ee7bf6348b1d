"""The groups with clients that a process is in, as a server or as a client of others (1991, 2 and 7.1)."""

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import TYPE_CHECKING, ClassVar

from semcast.core.events import Left
from semcast.core.ids import MemberId, Nanos
from semcast.protocols.isis.client_frames import ClientFrame, ClientOffer, ClientOut
from semcast.protocols.isis.clients import ClientSeat
from semcast.protocols.isis.program import LeaveWish
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.serving import Serving
from semcast.protocols.isis.styles import Role, Style, objection
from semcast.protocols.lightweight.events import LeftGroup
from semcast.protocols.lightweight.sessions import Refused

if TYPE_CHECKING:
    from semcast.protocols.isis.stack import Isis

_SESSION_BITS = 40


class Clientele:
    """Of one process.

    Args:
        domain: the process.
    """

    serving_kind: ClassVar[type[Serving]] = Serving
    client_kind: ClassVar[type[ClientSeat]] = ClientSeat

    def __init__(self, domain: "Isis") -> None:
        self.visits: dict[str, ClientSeat] = {}
        """The groups that it is a client of, or asked to be."""
        self.served: dict[str, Seat] = {}
        """Those that it is a server of."""
        self._domain = domain
        self._closed: set[str] = set()
        self._close_by: Nanos | None = None  # when this process ends, whatever others lack
        self._roles: dict[str, str] = {}
        self._sessions: Iterator[int] | None = None  # other incarnations have used other numbers

    def __bool__(self) -> bool:
        return bool(self.visits or self.served)

    # Joining and leaving

    def check(self, group: str, style: str, role: str) -> None:
        """Whether this process may be that in the group; raises Refused."""
        problem = objection(style, role)
        known = self._roles.get(group, role)
        if not problem and known != role:
            was = known or "peer"
            problem = f"{self._domain.me} was a {was} of {group!r} before, and can be nothing else there"
        if problem:
            raise Refused(problem)
        self._roles[group] = role

    def check_cast(self, group: str, items: bool, *, ordered: bool, to: MemberId | None) -> None:
        """Whether a client may send that; raises Refused."""
        visit = self.visits[group]
        if visit.parting:
            raise Refused(f"{self._domain.me} leaves {group!r}")
        if visit.style is Style.DIFFUSION:
            raise Refused(f"clients of the diffusion group {group!r} only listen")
        if items or ordered or to is not None:
            raise Refused("a client sends to all servers: without item, order of the domain, or addressee")

    def visit(self, now: Nanos, group: str, style: str, rng: Random) -> None:
        """Be a client of a group."""
        if self._sessions is None:
            self._sessions = count(rng.getrandbits(_SESSION_BITS))
        visit = self.visits[group] = self.client_kind(self._domain, group, Style(style), now, self._sessions)
        visit.tick(now)

    def serve(self, seat: Seat, style: str) -> None:
        """Be a server of a group."""
        seat.serving = self.serving_kind(self._domain, seat, Style(style))
        self.served[seat.name] = seat

    def serve_no_more(self, seat: Seat) -> None:
        """This process has left a group: what its clients sent and had no turn they send again to others."""
        if self.served.pop(seat.name, None) is not None and seat.serving is not None:
            for contact in seat.serving.contacts.values():
                self._domain.line.drop(contact.arrived)

    def is_client(self, role: str) -> bool:
        """Whether that is somebody in no view."""
        return role == Role.CLIENT

    def left(self, visit: ClientSeat, cause: str = "") -> None:
        """This process is a client of a group no more."""
        if self.visits.pop(visit.name, None) is not None:
            self._domain.line.drop(visit.waiting)
            self._domain.notes.left(visit.name)
            self._domain.program.put(LeftGroup(visit.name, cause))

    def put_out(self, visit: ClientSeat, cause: str) -> None:
        """The servers have given this process up: it is out of all groups (4.1)."""
        self._domain.put_out(visit.name, Left(cause, again=True))

    def refuse(self, visit: ClientSeat, why: str) -> None:
        """The group is of another style."""
        visit.close(why)

    def close(self, now: Nanos) -> list[Seat]:
        """This process ends: the groups that it has to leave now.

        What clients sent has to be with all servers, and they have to know that, unless it takes too long.
        The same holds for what they were given.
        """
        if self._close_by is None:
            self._close_by = now + self._domain.settings.vsync.detector.timeout_max
        late = now >= self._close_by
        for visit in list(self.visits.values()):
            if late or not visit.pending():
                visit.quit()
        done = [
            seat
            for seat in self.served.values()
            if seat.name not in self._closed and (late or self._is_done_with(seat))
        ]
        self._closed.update(seat.name for seat in done)
        return done

    def _is_done_with(self, seat: Seat) -> bool:
        """Whether clients of this process need it no more: it has said so, and they have heard that."""
        serving = seat.serving
        if serving is None:
            return True
        if not serving.bade_farewell and not serving.busy() and serving.settled():
            serving.say_farewell()
        return serving.bade_farewell and not serving.busy()

    # Frames

    def on_frame(self, now: Nanos, source: MemberId, number: int, frame: ClientFrame) -> None:
        """Between a client and a server, or two servers."""
        visit = next((each for each in self.visits.values() if each.number == number), None)
        seat = next((each for each in self.served.values() if each.number == number), None)
        if visit is not None:
            visit.on_frame(now, source, frame)
        elif seat is not None and seat.serving is not None and not isinstance(frame, ClientOffer | ClientOut):
            seat.serving.on_frame(now, source, frame)
        else:
            self._domain.stats.stale += 1

    # From time to time, and after every input

    def tend(self, now: Nanos) -> None:
        """Say that this process is there, and see who is not."""
        for visit in list(self.visits.values()):
            visit.tick(now)
        for seat in self.served.values():
            if seat.serving is not None:
                seat.serving.tick(now)

    def untold(self) -> bool:
        """Whether other servers do not know what the clients of this one have."""
        return any(seat.serving is not None and seat.serving.holdings.news() for seat in self.served.values())

    def asks(self) -> bool:
        """Whether clients of this process wait to hear what the programs of other servers have taken."""
        return any(seat.serving is not None and seat.serving.asks() for seat in self.served.values())

    def pending(self) -> int:
        """What is yet to be sent, or to reach all, for clients and about them."""
        waiting = sum(visit.pending() for visit in self.visits.values())
        return waiting + sum(
            0 if seat.serving is None else seat.serving.pending() for seat in self.served.values()
        )

    def tell(self) -> None:
        """Tell them."""
        for seat in self.served.values():
            if seat.serving is not None:
                seat.serving.tell()

    def look(self, now: Nanos) -> None:
        """Pass on what has come, and ask what the program has to know before it changes the group."""
        wishes = self._domain.program.wishes
        group = wishes[0].group if wishes else None
        for visit in list(self.visits.values()):
            leaves = bool(wishes) and isinstance(wishes[0], LeaveWish)
            if group not in (None, visit.name) or leaves or visit.leaving:
                visit.settle()
            visit.look()
        for seat in list(self.served.values()):
            if seat.serving is not None:
                seat.serving.look()
                stream = seat.member.stream
                if seat.serving.roster.commands and stream is not None and not seat.member.is_out:
                    seat.member.settle_order(now, stream)
                    self._domain.drain(now, seat)
