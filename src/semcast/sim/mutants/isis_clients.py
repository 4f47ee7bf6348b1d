"""Broken groups with clients (1991, 7.1), each without one of the rules."""

from collections.abc import Collection, Iterable

from semcast.core.ids import MemberId
from semcast.protocols.isis.client_frames import Attach, Relay
from semcast.protocols.isis.clientele import Clientele
from semcast.protocols.isis.clients import ClientSeat, ItemTicket
from semcast.protocols.isis.contact import Contact
from semcast.protocols.isis.departures import Departures
from semcast.protocols.isis.flushing import Flush
from semcast.protocols.isis.hearing import Hearing
from semcast.protocols.isis.line import Line
from semcast.protocols.isis.order import Ticket
from semcast.protocols.isis.policies import AnyTicket
from semcast.protocols.isis.roster import Roster
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.sending import Sending
from semcast.protocols.isis.serving import Serving
from semcast.protocols.isis.waits import Waits
from semcast.sim.isis_programs import DomainProcess
from semcast.sim.mutants.mutant import Mutant


class _Oblivious(Serving):
    def _attach(self, contact: Contact, message: Attach) -> None:
        super()._attach(contact, Attach(False, message.view, message.counts))


class _ObliviousClientele(Clientele):
    serving_kind = _Oblivious


class ClientStampWithoutD(DomainProcess):
    """Who comes to another contact does not say what it has: it goes on with what comes."""

    clientele_kind = _ObliviousClientele


class _Unkind(Waits):
    def with_clients(self, serving: Serving) -> bool:  # noqa: ARG002
        return False


class ClientsNotWaitedFor(DomainProcess):
    """A server changes the group when the other servers have everything, whatever clients have."""

    waits_kind = _Unkind


class _Repeating(Hearing):
    def is_new(self, message: Relay) -> bool:  # noqa: ARG002
        return True


class _RepeatingServer(Serving):
    hearing_kind = _Repeating


class _RepeatingClientele(Clientele):
    serving_kind = _RepeatingServer


class RelayedTwice(DomainProcess):
    """What a client says again, to another contact, counts as another message."""

    clientele_kind = _RepeatingClientele


class _Careless(Roster):
    def awaited(self) -> Collection[MemberId]:
        return ()


class _CarelessServer(Serving):
    roster_kind = _Careless


class _CarelessClientele(Clientele):
    serving_kind = _CarelessServer


class OrphansForgotten(DomainProcess):
    """Clients whose contact failed do not count until they have another one."""

    clientele_kind = _CarelessClientele


class _BlindFlush(Flush):
    def __init__(
        self,
        number: int,
        seats: Iterable[Seat],
        visits: Iterable[ClientSeat],  # noqa: ARG002
        departures: Departures,
    ) -> None:
        super().__init__(number, seats, (), departures)


class ClientFlushedAtOnce(DomainProcess):
    """The flush of a client does not wait for the servers to be given what it was given."""

    flush_kind = _BlindFlush


class _InTheOrderOfThePipe(ItemTicket):
    def is_next(self) -> bool:
        return self.seat.waiting[0] is self and not self.seat.parted

    def stands_before(self, ticket: object) -> bool:  # noqa: ARG002
        return True


class _OrderlyClient(ClientSeat):
    ticket_kind = _InTheOrderOfThePipe


class _OrderlyClientele(Clientele):
    client_kind = _OrderlyClient


class EpochsAgainstThePipe(DomainProcess):
    """What a contact passes on is given in its order, and by epochs, whichever it is that waits."""

    clientele_kind = _OrderlyClientele


class _OpenLine(Line):
    def ready(self, ticket: AnyTicket) -> bool:
        if isinstance(ticket, Ticket) and ticket.order.seat.serving is not None:
            ticket.order.seat.serving.parted = False
        return super().ready(ticket)


class LeaverReadsOn(DomainProcess):
    """Who has left a group with clients is given more of it until the others go on without it."""

    line_kind = _OpenLine


class _Impatient(Sending):
    def _waits_for_programs(self) -> bool:
        return False


class PausedForContacts(DomainProcess):
    """Who waits for its contacts is given nothing at all, so they may wait for it. A deadlock."""

    sending_kind = _Impatient


class _Courteous(Sending):
    def _keeps_from_relaying(self, seat: Seat) -> bool:
        return self._blocked(seat)


class RelaysWaitForContacts(DomainProcess):
    """What clients send waits for the groups that their contact is a client of itself. A deadlock."""

    sending_kind = _Courteous


CLIENT_MUTANTS: dict[str, Mutant] = {
    "client-stamp-without-D": Mutant(ClientStampWithoutD, by_chance=False),
    "clients-not-waited-for": Mutant(ClientsNotWaitedFor, by_chance=False),
    "relayed-twice": Mutant(RelayedTwice, by_chance=False),
    "orphans-forgotten": Mutant(OrphansForgotten, by_chance=False),
    "client-flushed-at-once": Mutant(ClientFlushedAtOnce, by_chance=False),
    "epochs-against-the-pipe": Mutant(EpochsAgainstThePipe, by_chance=False),
    "leaver-reads-on": Mutant(LeaverReadsOn, by_chance=False),
    "paused-for-contacts": Mutant(PausedForContacts, by_chance=False),
    "relays-wait-for-contacts": Mutant(RelaysWaitForContacts, by_chance=False),
}
