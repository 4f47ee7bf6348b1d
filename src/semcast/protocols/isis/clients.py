"""A process as a client of a group (1991, 7.1): it has a contact among the servers, and is in no view.

What it sends its contact multicasts for it; what its contact is given, and is for clients, it is given in the
same order. If the contact fails, the first of the servers goes on, with what the client says that it has (D).
Deviation: the paper's clients multicast to all servers themselves, with stamps of s + c fields.
"""

import enum
from collections import deque
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, ClassVar

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.clients.permissions import CALLS
from semcast.protocols.isis.arrivals import DirectTicket, Source
from semcast.protocols.isis.client_frames import (
    Attach,
    Bye,
    ClientCast,
    ClientHeard,
    ClientHello,
    ClientOffer,
    ClientOut,
    ClientPiece,
    Done,
    Farewell,
    Flushed,
    FlushWanted,
    Item,
    Said,
    Settle,
    Settled,
    ViewItem,
    encode,
    read_down,
)
from semcast.protocols.isis.frames import InGroup, number_of
from semcast.protocols.isis.pipe import Pipe
from semcast.protocols.isis.program import Cast, Inlet
from semcast.protocols.isis.stamps import Counts, Foreign, Head, Time, Times, merge
from semcast.protocols.isis.styles import Style
from semcast.protocols.lightweight.events import Cause, Delivered, GroupView
from semcast.protocols.lightweight.ids import Epoch, ViewId

if TYPE_CHECKING:
    from semcast.protocols.isis.stack import Isis

_LEAST_QUEUE = 256
"""So much may always wait for the program of a client."""
_ROOM = 1 << 16
"""Bytes of what is in a pipe besides payloads, at most."""


class Phase(enum.Enum):
    """Of a client."""

    SEEKING = "seeking"
    ATTACHING = "attaching"
    ATTACHED = "attached"
    OVER = "over"


class ItemTicket(DirectTicket):
    """What came from the contact: messages, or a view of the servers."""

    def __init__(self, seat: "ClientSeat", item: Item | ViewItem) -> None:
        others, epoch, lamport = [], 0, 0
        if isinstance(item, Item):
            others = [Foreign(each.group, each.view, each.counts) for each in item.others]
            epoch, lamport = item.epoch, item.lamport
        head = Head([], others, 0, epoch, lamport)
        super().__init__(seat.source, seat.name, item.view, head, 0, b"", marked=False)
        self.others = others
        self.seat = seat
        self.item = item
        self.is_view = isinstance(item, ViewItem)

    def is_next(self) -> bool:
        """Whether nothing else of its group comes first: what came earlier, except for higher epochs.

        The contact passes on what has no order among its causes in the order in which that came. A message of
        a higher epoch may wait for others that wait for one of a lower epoch behind it, and cannot be its
        cause.
        """
        if self.seat.parted:
            return False
        earlier = takewhile(lambda each: each is not self, self.seat.waiting)
        return not any(each.is_view or self.is_view or each.epoch <= self.epoch for each in earlier)

    def stands_before(self, ticket: object) -> bool:
        """Views have no epoch, and of two messages of one group the contact says which is the first."""
        return not self.is_view and not (isinstance(ticket, ItemTicket) and ticket.seat is self.seat)


class ClientSeat:
    """From when a process asks to be a client until it has left.

    Args:
        domain: the process.
        name: of the group.
        style: of the group.
        now: when it asks.
        sessions: numbers that no other incarnation of it has used.
    """

    ticket_kind: ClassVar[type[ItemTicket]] = ItemTicket

    def __init__(self, domain: "Isis", name: str, style: Style, now: Nanos, sessions: Iterator[int]) -> None:
        self.me = domain.me
        self.name = name
        self.number = number_of(name)
        self.style = style
        self.phase = Phase.SEEKING
        self.parting = False
        """Whether the program has asked to leave."""
        self.leaving = False
        """Whether all that it asked for before has happened."""
        self.waiting: deque[ItemTicket] = deque()
        """What came and was not given to the program."""
        self.contact: MemberId | None = None
        self.source = Source(self.me)
        self.told: Times = {}
        """What the contact was told of other groups."""
        self.inlet = Inlet()
        self.entered: ViewItem | None = None
        """The last view of servers that the program was told of."""
        self.done = 0
        """The programs of all servers have taken what was sent up to this number."""
        self._domain = domain
        self._sessions = sessions
        self._session = 0
        self._pipe: Pipe | None = None
        self._offers: list[tuple[int, MemberId]] = []
        self._since = self._heard_at = now
        self._time = Time(0, {})  # D: what came so far
        self._unsure: deque[ClientCast] = deque()  # not known to be with all servers
        self._dirty = False  # whether something was sent or given that others may lack
        self._calm = False  # whether all have what has come, be it not given to the program
        self._asked = self._answered = 0
        self._fresh = 0  # the question that was asked after all that was sent or given
        self._bye = False
        self._given = Time(0, {})  # the last view of which something was given, and what of each server
        self._flushes: dict[int, FlushWanted] = {}  # that the contact has not answered, by number
        self._flush = 0  # the last of them
        self._last_flush = 0, self._given  # that is asked for before it leaves

    @property
    def parted(self) -> bool:
        """Whether it has said good-bye: nobody would see to it that others are given what it is given now."""
        return self._bye

    # What the program does

    def room(self) -> int:
        """How many messages may be sent."""
        return self._domain.settings.credit - len(self._unsure)

    @property
    def open(self) -> bool:
        """Whether the program may send."""
        return self.entered is not None and self.phase is not Phase.OVER and self.room() > 0

    def send(self, cast: Cast) -> int:
        """The first message of a request leaves; returns its number."""
        domain, number = self._domain, cast.number
        domain.policy.sends(self)
        others = domain.policy.owed(self)
        said = [Said(each.group, each.view, each.counts) for each in others]
        lamport = domain.totals.lamport
        message = ClientCast(number, cast.marked, said, domain.policy.epoch, lamport, bytes(cast.payloads[0]))
        assert self.entered is not None
        fields = {each.group: len(each.counts) for each in said}
        domain.notes.client_sent(self, number, self.entered.view, fields)
        self._unsure.append(message)
        self._soil()
        if cast.marked:  # who calls counts the servers that it knows of when it is given its own request
            groups, payload = (self.name, CALLS), message.payload
            self.inlet.untaken += 1
            domain.program.put(Delivered(self.me, number, groups, None, [payload], len(payload)), self.inlet)
        for each in others:
            merge(self.told, each.group, each.view, each.counts)
        if self._pipe is not None and self.phase is Phase.ATTACHED:
            self._pipe.push(encode(message))
        return number

    def pending(self) -> int:
        """What was sent and is not known to be with all servers."""
        return len(self._unsure)

    def taken_by_all(self, number: int) -> bool:
        """Whether the programs of all servers have taken a message."""
        return number <= self.done or self.phase is Phase.OVER

    def active(self) -> bool:
        """Whether others may lack what this process sent, or was given."""
        return self._dirty

    def relayed(self) -> bool:
        """Whether others may lack it because the contact has not multicast it, as far as is known here."""
        return self._dirty and bool(self._unsure)

    def _soil(self) -> None:
        self._dirty, self._fresh, self._calm = True, 0, False

    def settle(self) -> None:
        """Somebody wants to know that all have it."""
        if self._dirty and not self._fresh and self._pipe is not None and self.phase is Phase.ATTACHED:
            self._asked += 1
            self._fresh = self._asked
            self._pipe.push(encode(Settle(self._asked)))

    def ask_to_flush(self) -> int:
        """Somebody wants to know that servers were given what this process was; returns its number.

        What was sent is not asked about: the contact tells that by itself (`Done`).
        """
        self._flush += 1
        if self._given.view:
            counts = sorted(self._given.counts.items())
            wanted = self._flushes[self._flush] = FlushWanted(self._flush, self._given.view, counts)
            if self._pipe is not None and self.phase is Phase.ATTACHED:
                self._pipe.push(encode(wanted))
        return self._flush

    def flushed(self, nth: int) -> bool:
        """Whether they were; of a group that it has left nothing is waited for."""
        return nth not in self._flushes or self.phase is Phase.OVER

    def leave(self) -> None:
        """Behind all that was sent and given: it is done when others have that."""
        self.leaving = True
        if self.phase is not Phase.ATTACHED and self.entered is None:
            self.close()
            return
        # A flush of the program that comes later can ask nobody any more.
        nth, given = self._last_flush
        if not nth or (self.flushed(nth) and given != self._given):
            nth, given = self._last_flush = self.ask_to_flush(), self._given
        settled = not self._dirty and self.flushed(nth)
        if self.phase is Phase.ATTACHED and settled and not self._bye and self._pipe is not None:
            self._bye = True
            self._pipe.push(encode(Bye()))

    def quit(self) -> None:
        """The process ends: say good-bye, and do not wait for an answer."""
        if self._pipe is not None and not self._bye:
            self._pipe.push(encode(Bye()))
        self.close()

    def close(self, cause: str = "") -> None:
        """It is a client no more."""
        self.phase = Phase.OVER
        self._domain.clientele.left(self, cause)

    # Finding a contact

    def tick(self, now: Nanos) -> None:
        """From time to time."""
        limit = self._domain.settings.vsync.detector.timeout_max
        if self._pipe is not None and now - self._heard_at > limit:
            self._lose(now)
        if self._pipe is not None:
            self._pipe.again()
            self._pipe.tell()
            return
        if self._offers:
            self._attach(now, min(self._offers)[1])
            return
        if now - self._since > 4 * limit:
            if self.leaving:
                self.close()
                return
            if self.entered is not None:
                self._domain.clientele.put_out(self, "none of the servers that it had is there")
                return
        self._session = next(self._sessions)
        hello = ClientHello(self._session, self.style.value, self.entered is not None or self._time.view > 0)
        self._domain.out.announce(InGroup(self.number, hello))

    def on_offer(self, source: MemberId, frame: ClientOffer) -> None:
        """A server would take this client."""
        if self.phase is not Phase.SEEKING or frame.session != self._session:
            return
        if frame.refusal:
            self._domain.clientele.refuse(self, frame.refusal)
        else:
            self._offers.append((frame.load, source))

    def _attach(self, now: Nanos, contact: MemberId) -> None:
        self._offers = []
        self.phase, self.contact = Phase.ATTACHING, contact
        settings = self._domain.settings
        self._pipe = Pipe(
            self._session,
            up=True,
            frame_bytes=settings.vsync.frame_bytes,
            most=settings.run_bytes * 2 + _ROOM,
            post=self._post,
        )
        self._heard_at = now
        self._pipe.push(encode(self.position()))

    def position(self) -> Attach:
        """What this client has (D)."""
        return Attach(self._time.view > 0, self._time.view, sorted(self._time.counts.items()))

    def _post(self, frame: Frame) -> None:
        assert self.contact is not None
        self._domain.out.send(self.contact, InGroup(self.number, frame))  # type: ignore[arg-type]

    def _lose(self, now: Nanos) -> None:
        """The contact says nothing any more."""
        self.phase, self.contact, self._pipe = Phase.SEEKING, None, None
        self._since, self._offers = now, []
        self._fresh, self._bye = 0, False

    # What the contact says

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """Of a server."""
        if isinstance(frame, ClientOffer):
            self.on_offer(source, frame)
        elif isinstance(frame, ClientOut):
            if self.phase is not Phase.OVER and frame.client == self.me:
                self._domain.clientele.put_out(self, frame.cause)
        elif source != self.contact or self._pipe is None or frame.session != self._session:  # type: ignore[attr-defined]
            self._domain.stats.stale += 1
        elif isinstance(frame, ClientHeard) and frame.up:
            self._heard_at = now
            self._pipe.on_heard(frame)
            if self._bye and not len(self._pipe):
                self.close()
        elif isinstance(frame, ClientPiece) and not frame.up:
            self._heard_at = now
            for data in self._pipe.on_piece(frame):
                self._hear(data)

    def _hear(self, data: bytes) -> None:
        try:
            message = read_down(data)
        except msgspec.MsgspecError:
            self._domain.stats.malformed += 1
            return
        if self.phase is Phase.ATTACHING:
            self._attached()
        if isinstance(message, Done):
            self.done = max(self.done, message.number)
            while self._unsure and self._unsure[0].number <= message.number:
                self._unsure.popleft()
        elif isinstance(message, Flushed):
            self._flushes.pop(message.nth, None)
        elif isinstance(message, Farewell):
            self._calm = True
            self._dirty = bool(self._unsure)
        elif isinstance(message, Settled):
            self._answered = max(self._answered, message.nth)
            if self._fresh and self._answered >= self._fresh:
                self._dirty, self._fresh = False, 0
        else:
            self._line_up(message)

    def _attached(self) -> None:
        """The contact serves this client from now on: it is told again what nobody may have."""
        assert self._pipe is not None
        self.phase, self.told = Phase.ATTACHED, {}
        for message in (*self._unsure, *self._flushes.values()):
            self._pipe.push(encode(message))

    def _line_up(self, item: Item | ViewItem) -> None:
        """It has its place in the line of the program."""
        if self.parted:
            return
        if isinstance(item, ViewItem):
            if item.view <= self._time.view:
                return
            self._time = Time(item.view, {})
        else:
            counts: Counts = dict(item.counts)
            if item.view == self._time.view:
                for rank, count in self._time.counts.items():
                    counts[rank] = max(count, counts.get(rank, 0))
            self._time = Time(item.view, counts)
        self._calm = False
        ticket = self.ticket_kind(self, item)
        self.waiting.append(ticket)
        self._domain.line.add(ticket)
        self._domain.policy.placed(ticket.epoch, self.name)

    # What the program is given

    def hand_over(self, ticket: ItemTicket) -> None:
        """It is given to the program."""
        domain, item = self._domain, ticket.item
        self.waiting.remove(ticket)
        if isinstance(item, ViewItem):
            self._enter(item)
            return
        if not self._calm:
            self._soil()
        self._count(item)
        domain.policy.heard(ticket.others, ticket.epoch, self.name)
        domain.totals.learn(ticket.lamport)
        count = len(item.payloads)
        domain.stats.delivered += count
        domain.notes.given(self.name, item.sender, item.first, count)
        groups = (self.name, CALLS) if item.marked else (self.name,)
        size = sum(map(len, item.payloads))
        event = Delivered(item.sender, item.first, groups, None, item.payloads, size, item.items)
        self.inlet.untaken += 1
        domain.program.put(event, self.inlet)

    def _count(self, item: Item) -> None:
        """What is not for programs nobody takes, so a flush names only what was given itself."""
        assert self.entered is not None
        rank = self.entered.members.index(item.sender)
        counts = self._given.counts if self._given.view == item.view else {}
        self._given = Time(item.view, {**counts, rank: dict(item.counts)[rank]})

    def _enter(self, item: ViewItem) -> None:
        domain, members = self._domain, tuple(item.members)
        first = self.entered is None
        self.entered = item
        domain.notes.client_view(self, item)
        name = ViewId(Epoch(0, rest=False, representative=members[0]), item.view)
        joined = (self.me,) if first else tuple(item.joined)
        left, failed = tuple(item.left), tuple(item.failed)
        cause = Cause.GONE if failed else Cause.LEAVE if left else Cause.JOIN
        told = GroupView(self.name, name, members, joined, left, failed, cause, vs=False)
        self.inlet.untaken += 1
        domain.program.put(told, self.inlet)

    def look(self) -> None:
        """After every input: tell the contact what has come. Who does not read is no client for long."""
        pipe = self._pipe
        if pipe is not None and pipe.owes:
            pipe.tell()
        most = max(_LEAST_QUEUE, 8 * self._domain.settings.credit)
        if len(self.waiting) + self.inlet.untaken > most and self.phase is not Phase.OVER:
            self._domain.clientele.put_out(self, "the program does not read what it is given")
        if self.leaving:
            self.settle()
            self.leave()
