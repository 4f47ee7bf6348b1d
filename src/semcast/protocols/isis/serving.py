"""A process as a server of a group that has clients (1991, 7.1 and 7.4).

Servers are the members of the group's views, clients are in none. Each client has a contact among the
servers, and all servers know of all clients (`roster.py`). The contact multicasts what its clients send
(`Relay`) and passes on what comes, in the causal order of the group; its own program may be behind. All
servers keep what some client may lack (`log.py`), until all have it (`holdings.py`).
"""

from collections import deque
from typing import TYPE_CHECKING, ClassVar

import msgspec

from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame
from semcast.protocols.isis.arrivals import DirectTicket, Source
from semcast.protocols.isis.client_frames import (
    About,
    Attach,
    Bye,
    Came,
    ClientCast,
    ClientHeard,
    ClientHello,
    ClientOffer,
    ClientOut,
    ClientPiece,
    ClientsHave,
    FlushWanted,
    Gone,
    Relay,
    Settle,
    ViewItem,
    read_up,
)
from semcast.protocols.isis.contact import Contact
from semcast.protocols.isis.frames import InGroup
from semcast.protocols.isis.hearing import Hearing
from semcast.protocols.isis.holdings import Holdings
from semcast.protocols.isis.log import Log
from semcast.protocols.isis.roster import Roster
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.stamps import Foreign, Head, Time
from semcast.protocols.isis.styles import Style

if TYPE_CHECKING:
    from semcast.protocols.isis.stack import Isis

_REMEMBERED = 4096
"""Clients that left of which it is remembered that they did."""
_LEAST_LOG = 64


class RelayTicket(DirectTicket):
    """What a client sends, in the line of its contact."""

    def __init__(self, serving: "Serving", contact: Contact, message: ClientCast) -> None:
        others = [Foreign(each.group, each.view, each.counts) for each in message.others]
        head = Head([], others, message.number, message.epoch, message.lamport)
        source = Source(contact.client)
        super().__init__(source, serving.seat.name, 0, head, 0, message.payload, marked=message.marked)
        self.others = others
        self.serving = serving
        self.contact = contact

    def is_next(self) -> bool:
        """Whether nothing else of the client comes first."""
        return self.contact.arrived[0] is self


class Serving:
    """Of one process in one group.

    Args:
        domain: the process.
        seat: in the group.
        style: of the group.
    """

    contact_kind: ClassVar[type[Contact]] = Contact
    roster_kind: ClassVar[type[Roster]] = Roster
    hearing_kind: ClassVar[type[Hearing]] = Hearing

    def __init__(self, domain: "Isis", seat: Seat, style: Style) -> None:
        self.seat = seat
        self.style = style
        self.log = Log()
        self.outgoing: deque[tuple[Relay, Contact]] = deque()
        """What is to be multicast for clients."""
        self.contacts: dict[MemberId, Contact] = {}
        """The clients of this server."""
        self.parted = False
        """Whether the program has left: all have what it was given there, and it is given nothing more."""
        self.bade_farewell = False
        """Whether clients were told that it leaves, and that all have what has come."""
        self.roster = self.roster_kind(seat.me, style)
        self.holdings = Holdings(seat.me, self.log, self.contacts, self.roster)
        self.hearing = self.hearing_kind(style, self.log, self.roster, domain.stats)
        self._left: dict[MemberId, int] = {}  # sessions of clients that left
        self._domain = domain

    def busy(self) -> bool:
        """Whether clients of this server wait for something that it has to do for them."""
        if self.outgoing or self.roster.commands:
            return True
        return any(
            each.open or each.relays or each.arrived or each.settling or each.flushes or len(each.pipe)
            for each in self.contacts.values()
        )

    def settled(self) -> bool:
        """Whether all servers and clients have all that has come."""
        time = self.log.time
        return self.seat.all_have(time.view, sorted(time.counts.items())) and not self.holdings.lags(time)

    def say_farewell(self) -> None:
        """This server leaves. Who is a client of nobody then could not ask whether all have what it has."""
        self.bade_farewell = True
        for contact in self.contacts.values():
            contact.say_farewell()

    def asks(self) -> bool:
        """Whether clients wait to hear what the programs of servers have taken."""
        return any(each.relays or each.flushes for each in self.contacts.values())

    def flushes(self) -> bool:
        """Whether that is about messages of others, too."""
        return any(each.flushes for each in self.contacts.values())

    def pending(self) -> int:
        """What is yet to be sent, or known."""
        return len(self.outgoing) + len(self.roster.commands) + len(self.roster.orphans)

    # What the others know

    def active(self) -> bool:
        """Whether somebody may lack what this process sent or was given there."""
        time = self.seat.time()
        return time is not None and self.holdings.lags(time)

    def tell(self, *, again: bool = False) -> None:
        """Tell the other servers what this one and its clients have, if they have not heard it."""
        frame, me = self.holdings.report(again=again), self.seat.me
        if frame is not None:
            servers = [each for each in self.roster.members if each != me]
            self._domain.errands.post(self.seat, [(each, frame) for each in servers])

    def enter(self, event: Installed) -> None:
        """A view begins, and the one before it is over."""
        view, old = event.view, self.log.time
        item = ViewItem(view.id, list(view.members), list(event.joined), list(event.left), list(event.failed))
        self.log.enter(item)
        self.holdings.enter(view.members)
        self._check_lost(old)
        self.roster.enter(view.members, [(each.client, each.session) for each in self.contacts.values()])

    def _check_lost(self, old: Time) -> None:
        """Who was given what does not belong to its view has to go: nobody else ever has it."""
        ended = self.seat.ended.get(old.view)
        for contact in list(self.contacts.values()):
            seen = contact.seen
            if ended is not None and seen is not None and seen.view == old.view:
                cut = ended[1]
                if any(rank >= len(cut) or count > cut[rank] for rank, count in seen.counts.items()):
                    self._dismiss(contact, "what it was given is lost")

    def obey(self, sender: MemberId, seq: int, message: About) -> None:
        """A server said something of clients."""
        if isinstance(message, Came):
            self._came(sender, seq, message)
        elif isinstance(message, Gone):
            contact = self.contacts.pop(message.client, None) if self.roster.went(message) else None
            if contact is not None:
                contact.post(ClientOut(message.client, "the servers have given it up"))
        elif not self.roster.rolled(sender, message):
            self._domain.stats.stale += 1

    def _came(self, sender: MemberId, seq: int, message: Came) -> None:
        client, mine = message.client, sender == self.seat.me
        if self.roster.came(sender, message):
            self.holdings.came(sender, message)
            if not mine:
                self.contacts.pop(client, None)  # it was never given anything here
        contact = self.contacts.get(client)
        if mine and contact is not None and contact.session == message.session:
            contact.came_at = self.log.time.view, seq

    def _dismiss(self, contact: Contact, cause: str) -> None:
        """One of its clients is one no more."""
        self.contacts.pop(contact.client, None)
        contact.post(ClientOut(contact.client, cause))
        if contact.client in self.roster.listed or contact.cast:
            self.roster.commands.append(Gone(contact.client, 0))
        self.roster.give_up(contact.client)

    def _part(self, contact: Contact) -> None:
        """One of its clients has left."""
        client = contact.client
        del self.contacts[client]
        contact.pipe.tell()
        self.roster.commands.append(Gone(client, contact.session))
        self._left[client] = contact.session
        if len(self._left) > _REMEMBERED:
            del self._left[next(iter(self._left))]

    # What clients say

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """Of a client, or of another server."""
        if isinstance(frame, ClientsHave):
            self.holdings.hear(source, frame)
            return
        if isinstance(frame, ClientHello):
            self._on_hello(now, source, frame)
            return
        if source in self.roster.gone:
            out = ClientOut(source, "the servers have given it up")
            self._domain.out.send(source, InGroup(self.seat.number, out))
            return
        if not isinstance(frame, ClientPiece | ClientHeard):
            self._domain.stats.stale += 1
            return
        if isinstance(frame, ClientPiece) and frame.session <= self._left.get(source, 0):
            heard = ClientHeard(frame.session, True, frame.nth)
            self._domain.out.send(source, InGroup(self.seat.number, heard))
            return
        contact = self.contacts.get(source)
        if contact is None or frame.session > contact.session:
            if not self._opens(source, frame):
                self._domain.stats.stale += 1
                return
            contact = self._make(source, frame.session)
        if frame.session != contact.session:
            self._domain.stats.stale += 1
            return
        contact.heard_at = now
        if isinstance(frame, ClientHeard):
            if not frame.up:
                contact.on_heard(frame)
        elif frame.up:
            for data in contact.pipe.on_piece(frame):
                self._hear(contact, data)
        if contact.pipe.broken:
            self._domain.stats.malformed += 1
            self._dismiss(contact, "what it sent cannot be read")

    def _opens(self, source: MemberId, frame: ClientPiece | ClientHeard) -> bool:
        """Whether somebody comes who may be a client of this server."""
        first = isinstance(frame, ClientPiece) and frame.up and frame.nth == 1
        return first and self.roster.may_take(source)

    def _on_hello(self, now: Nanos, source: MemberId, frame: ClientHello) -> None:
        domain, seat = self._domain, self.seat
        if source in self.roster.gone:
            out = ClientOut(source, "the servers have given it up")
            domain.out.send(source, InGroup(seat.number, out))
            return
        if seat.entered is None or seat.leaving or seat.member.is_out or not seat.member.up_to_date:
            return
        refusal = ""
        if frame.style != self.style.value:
            refusal = f"{seat.name} is a {self.style.value} group"
        elif (
            source in self.roster.members
            or not self.roster.may_take(source)
            or (frame.placed and source not in self.roster.listed)
        ):
            return
        elif source in self.roster.orphans:
            self.roster.orphans[source] = now
        domain.out.send(source, InGroup(seat.number, ClientOffer(frame.session, len(self.contacts), refusal)))

    def _make(self, client: MemberId, session: int) -> Contact:
        def post(frame: Frame) -> None:
            self._domain.out.send(client, InGroup(self.seat.number, frame))  # type: ignore[arg-type]

        old = self.contacts.get(client)
        contact = self.contact_kind(client, session, self._domain.settings, post)
        if old is not None:
            contact.cast = old.cast
        self.contacts[client] = contact
        return contact

    def _hear(self, contact: Contact, data: bytes) -> None:
        try:
            message = read_up(data)
        except msgspec.MsgspecError:
            self._domain.stats.malformed += 1
            return
        if isinstance(message, Attach):
            self._attach(contact, message)
        elif isinstance(message, ClientCast):
            if self.style is Style.CLIENT_SERVER:
                ticket = RelayTicket(self, contact, message)
                contact.arrived.append(ticket)
                self._domain.line.add(ticket)
                self._domain.policy.placed(ticket.epoch, self.seat.name)
        elif isinstance(message, Settle):
            contact.settling = message.nth, None
        elif isinstance(message, FlushWanted):
            contact.flushes.append(message)
        elif isinstance(message, Bye):
            contact.bye = True

    def _attach(self, contact: Contact, message: Attach) -> None:
        """Who was a client before goes on where it was; others begin with what comes."""
        listed, log = self.roster.listed.get(contact.client), self.log
        if message.placed:
            contact.seen = self.position(message)
            if not self._can_serve(contact.seen):
                self._dismiss(contact, "what it was given is lost")
                return
            contact.begin(log, log.first)
        took = listed is not None and listed.contact != self.seat.me
        if listed is not None and not took:
            contact.came_at = 0, 0
            return
        takes, own = self.holdings.take_over() if took else 0, self.holdings.own()
        came = Came(contact.client, contact.session, takes, own.view, sorted(own.counts.items()))
        self.roster.commands.append(came)
        contact.cast = True

    def position(self, message: Attach) -> Time:
        """What a client that comes back has (D)."""
        return Time(message.view, dict(message.counts))

    def _can_serve(self, seen: Time) -> bool:
        """Whether all that a client has belongs to the group, and what it lacks is here."""
        if seen.view < self.log.since:
            return False
        ended = self.seat.ended.get(seen.view)
        if seen.view < self.log.time.view:
            if ended is None:
                return False
            cut = ended[1]
            return all(rank < len(cut) and count <= cut[rank] for rank, count in seen.counts.items())
        return True

    def relay(self, ticket: RelayTicket) -> None:
        """A message of a client has its turn: it is multicast as soon as this process may send here."""
        contact = ticket.contact
        contact.arrived.popleft()
        self._domain.policy.told(ticket.others, ticket.epoch, self.seat.name)
        self._domain.totals.learn(ticket.lamport)
        message = Relay(contact.client, ticket.head.number, ticket.marked, ticket.payload)
        contact.open += 1
        self.outgoing.append((message, contact))

    def left(self, seq: int) -> None:
        """The next of them was multicast, with this number in the group."""
        message, contact = self.outgoing.popleft()
        contact.open -= 1
        contact.relays.append((message.number, seq))

    # From time to time, and after every input

    def look(self) -> None:
        """Pass on what there is."""
        if not self.log.time.view:
            return
        for contact in list(self.contacts.values()):
            if not contact.feeds and self._known(contact):
                contact.start(self.log)
            if contact.feeds:
                contact.feed(self.log)
                contact.settle(self.seat, self)
            if contact.pipe.owes:
                contact.pipe.tell()
            if contact.bye and not contact.open and not contact.arrived:
                self._part(contact)
        self._trim()

    def _known(self, contact: Contact) -> bool:
        """Whether the other servers are sure to know of a client: then it may be given something."""
        stream, at = self.seat.member.stream, contact.came_at
        if at is None or stream is None:
            return False
        return at[0] < stream.view().id or stream.buffers.certain_upto(stream.rank) >= at[1]

    def _trim(self) -> None:
        log = self.log
        while log.entries and not self.roster.orphans and self.holdings.cover(log.entries[0]):
            log.trim(log.first + 1)
        most = max(_LEAST_LOG, 4 * self._domain.settings.credit)
        if len(log.entries) > most:
            fed = [each for each in self.contacts.values() if each.feeds]
            slowest = min(fed, key=lambda each: each.acked, default=None)
            if slowest is not None and slowest.acked < log.end - most:
                self._dismiss(slowest, "it does not read what it is given")

    def tick(self, now: Nanos) -> None:
        """Clients that say nothing for too long are given up."""
        limit = self._domain.settings.vsync.detector.timeout_max
        for contact in list(self.contacts.values()):
            contact.heard_at = contact.heard_at or now
            if now - contact.heard_at > limit:
                self._dismiss(contact, "it said nothing for too long")
            else:
                contact.pipe.again()
                contact.pipe.tell()
        self.roster.tick(now, limit, self.contacts)
        self.tell(again=True)
