"""Messages for this member alone, until they stand in the line of its program (1991, 7.2).

One has its place in the line once the view that it was sent in has begun here and all that it comes after in
its group is queued, or once that view is over; only then it is acknowledged. If what it comes after did not
come to belong to the view, it goes with it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from semcast.core.ids import MemberId
from semcast.protocols.isis.frames import Direct, DirectHeard, InGroup
from semcast.protocols.isis.program import Letter
from semcast.protocols.isis.seat import EndedView, Seat
from semcast.protocols.isis.stamps import Foreign, Head

if TYPE_CHECKING:
    from semcast.protocols.isis.stack import Isis

_SOURCES = 1024
"""Members of which it is remembered how far their direct messages have come, if they are in no view here."""
_GROUPS = 256
"""Groups that were left of which it is remembered how their views ended."""

_read_head = msgspec.msgpack.Decoder(Head).decode


class DirectTicket:
    """A direct message that has its place in the line of the program."""

    ordered, turn = False, 0
    __slots__ = ("epoch", "group", "head", "lamport", "marked", "nth", "others", "payload", "place", "source")

    def __init__(
        self, source: "Source", group: str, view: int, head: Head, nth: int, payload: bytes, *, marked: bool
    ) -> None:
        self.source = source
        self.group = group
        self.head = head
        self.epoch = head.epoch
        self.nth = nth
        self.payload = payload
        self.marked = marked
        self.lamport = head.lamport
        self.place = 0
        """In the line."""
        self.others = [Foreign(group, view, head.changed), *head.others]
        """What it comes after, in its own group, too."""

    def is_next(self) -> bool:
        """Whether nothing else has to be given before it that came the same way."""
        return True

    def stands_before(self, ticket: object) -> bool:  # noqa: ARG002
        """Whether the epochs of the two say which of them is given first."""
        return True


class Source:
    """The direct messages of one member."""

    def __init__(self, member: MemberId) -> None:
        self.member = member
        self.received = 0
        """The last part that came in order."""
        self.placed = 0
        """Up to this part they stand in the line, or never will."""
        self.taken = 0
        """Up to this part the program has taken them."""
        self.group = 0
        self.refused = False
        self.parts: list[bytes] = []
        self.waiting: Direct | None = None
        """The last part of one that has no place yet."""

    def taken_by_all(self, nth: int) -> bool:
        """Of own ones: whether the program has taken it."""
        return self.taken >= nth


class Arrivals:
    """At one process.

    Args:
        domain: the process.
    """

    def __init__(self, domain: "Isis") -> None:
        self._domain = domain
        self._sources: dict[MemberId, Source] = {}
        self._waiting: dict[MemberId, Source] = {}
        self._left: dict[int, tuple[str, dict[int, EndedView]]] = {}

    def __len__(self) -> int:
        """Those that wait for a view, or for what comes before them."""
        return len(self._waiting)

    def source(self, member: MemberId) -> Source:
        """Of a member, made where there is none."""
        source = self._sources.pop(member, None) or Source(member)
        self._sources[member] = source
        if len(self._sources) > _SOURCES:
            for old in list(self._sources):
                if len(self._sources) <= _SOURCES:
                    break
                if old != member and not self._domain.meets(old):
                    del self._sources[old]
                    self._waiting.pop(old, None)
        return source

    def left(self, seat: Seat) -> None:
        """This process has left a group."""
        self._left.pop(seat.number, None)
        self._left[seat.number] = seat.name, seat.ended
        if len(self._left) > _GROUPS:
            del self._left[next(iter(self._left))]

    # They come

    def on_direct(self, member: MemberId, group: int, frame: Direct) -> None:
        """A part of one."""
        source = self.source(member)
        if frame.nth <= source.placed:
            self.answer(source)
            return
        fresh = frame.nth > source.received if frame.part == 0 else frame.nth == source.received + 1
        if not fresh or (frame.part and len(source.parts) != frame.part) or source.waiting is not None:
            self._domain.stats.stale += 1
            return
        if not frame.part:
            source.parts = []
        source.received, source.group = frame.nth, group
        source.parts.append(frame.data)
        if sum(map(len, source.parts)) > self._domain.settings.run_bytes:
            self._refuse(source)
        elif frame.part + 1 < frame.parts:
            source.placed = frame.nth
            self.answer(source)
        else:
            source.waiting = frame
            self._waiting[member] = source
            self._look_at(source)

    def place(self) -> None:
        """Those that waited for a view, or for what comes before them."""
        for source in list(self._waiting.values()):
            self._look_at(source)

    def own(self, seat: Seat, view: int, head: Head, letter: Letter) -> int:
        """One for this process itself; returns which one it is."""
        source = self.source(self._domain.me)
        source.received += 1
        nth = source.placed = source.received
        ticket = DirectTicket(source, seat.name, view, head, nth, letter.payload, marked=letter.marked)
        ticket.epoch = 0  # who sends was given all that comes before
        self._domain.line.add(ticket)
        return nth

    def _look_at(self, source: Source) -> None:
        frame = source.waiting
        assert frame is not None
        domain, group = self._domain, source.group
        seat = domain.seat_numbered(group)
        try:
            head = _read_head(frame.head)
        except msgspec.DecodeError:
            domain.stats.malformed += 1
            self._refuse(source)
            return
        name, ended = self._ended(seat, group, frame.view)
        if ended is not None:
            members, cut = ended
            if source.member not in members:
                self._refuse(source)
            else:
                self._done(source, name, head, kept=self.kept(cut, head.changed))
            return
        stream = None if seat is None else seat.member.stream
        if seat is None or (stream is not None and frame.view < stream.view().id):
            self._refuse(source)  # never in that view, or so long ago that nobody remembers
        elif stream is not None and frame.view == stream.view().id and not seat.member.is_out:
            if source.member not in stream.members:
                self._refuse(source)
            elif _within(stream.queued, head.changed):
                self._done(source, seat.name, head, kept=True)

    def kept(self, cut: Sequence[int], counts: Sequence[tuple[int, int]]) -> bool:
        """Whether all that it comes after belongs to its view, which is over."""
        return _within(cut, counts)

    def _ended(self, seat: Seat | None, group: int, view: int) -> tuple[str, EndedView | None]:
        """How a view that this process was in ended."""
        if seat is not None and view in seat.ended:
            return seat.name, seat.ended[view]
        name, ended = self._left.get(group, ("", {}))
        return name, ended.get(view)

    def _done(self, source: Source, group: str, head: Head, *, kept: bool) -> None:
        frame = source.waiting
        assert frame is not None
        source.waiting = None
        del self._waiting[source.member]
        payload, source.parts = b"".join(source.parts), []
        source.placed = frame.nth
        source.refused = False
        if kept:
            ticket = DirectTicket(source, group, frame.view, head, frame.nth, payload, marked=frame.marked)
            self._domain.line.add(ticket)
            self._domain.policy.placed(ticket.epoch, group)
        self.answer(source)

    def _refuse(self, source: Source) -> None:
        source.waiting, source.parts, source.refused = None, [], True
        self._waiting.pop(source.member, None)
        source.placed = source.received
        self.answer(source)

    def answer(self, source: Source) -> None:
        """Say how far they have come."""
        if source.member != self._domain.me:
            heard = DirectHeard(source.placed, source.taken, source.refused)
            self._domain.out.send(source.member, InGroup(source.group, heard))

    def on_wanted(self, member: MemberId) -> None:
        """Its sender has to know."""
        source = self._sources.get(member)
        if source is not None:
            self.answer(source)


def _within(cut: Sequence[int], counts: Sequence[tuple[int, int]]) -> bool:
    return all(rank < len(cut) and count <= cut[rank] for rank, count in counts)
