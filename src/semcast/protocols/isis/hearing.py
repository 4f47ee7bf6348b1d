"""What comes in a group that has clients: for their log, and for the program of a server."""

import msgspec

from semcast.core.annotations import Item as Label
from semcast.core.ids import MemberId
from semcast.core.marks import is_mark, is_relayed
from semcast.core.messages import Batch
from semcast.core.statistics import Statistics
from semcast.protocols.isis.client_frames import Among, ForClient, Relay, read_among
from semcast.protocols.isis.log import Entry, Log
from semcast.protocols.isis.order import Ticket
from semcast.protocols.isis.roster import Roster
from semcast.protocols.isis.styles import Style


class Hearing:
    """At one server.

    Args:
        style: of the group.
        log: what clients are given.
        roster: who they are.
        stats: what is counted.
    """

    def __init__(self, style: Style, log: Log, roster: Roster, stats: Statistics) -> None:
        self._style = style
        self._log = log
        self._roster = roster
        self._stats = stats

    # For clients

    def lined_up(self, ticket: Ticket, batch: Batch) -> None:
        """Messages have come, and all of the group that comes before them."""
        note, items = batch.annotation, batch.items
        if is_relayed(note):
            for place in range(len(batch.payloads)):
                self._hear_among(ticket, batch.cut(batch.first + place, batch.first + place))
            return
        if isinstance(note, Label):
            items = [note.item] * len(batch.payloads)
        everybody = self._style is Style.DIFFUSION
        payloads = list(batch.payloads) if everybody else []
        self._add(ticket, batch, payloads, items, everybody=everybody, marked=is_mark(note))

    def _hear_among(self, ticket: Ticket, batch: Batch) -> None:
        """What clients send or are sent."""
        message, relayed = self._read(batch), self._roster.relayed
        payloads: list[bytes] = []
        to: MemberId | None = None
        if isinstance(message, Relay):
            relayed[message.client] = max(message.number, relayed.get(message.client, 0))
        elif isinstance(message, ForClient):
            payloads, to = [message.payload], message.client
        marked = isinstance(message, ForClient) and message.marked
        self._add(ticket, batch, payloads, None, to, marked=marked)

    def _add(
        self,
        ticket: Ticket,
        batch: Batch,
        payloads: list[bytes],
        items: list[str] | None,
        to: MemberId | None = None,
        *,
        everybody: bool = False,
        marked: bool = False,
    ) -> None:
        number = ticket.number + batch.first - ticket.first
        entry = Entry(
            self._log.time.view,
            ticket.rank,
            batch.first,
            batch.last,
            batch.sender,
            number,
            payloads,
            items,
            to,
            everybody,
            marked,
            ticket.others,
            ticket.epoch,
            ticket.lamport,
        )
        self._log.add(entry)

    # For the program

    def given(self, batch: Batch, number: int) -> tuple[MemberId, int, bytes, bool] | None:
        """What the program is given of such a message: sender, number, payload, whether it is of a call.

        None if it is not for the program. What a client sent may come twice, when its contact failed: the
        first counts.
        """
        message = self._read(batch)
        if isinstance(message, ForClient):
            return batch.sender, number, message.payload, message.marked
        if not isinstance(message, Relay) or not self.is_new(message):
            return None
        self._roster.given[message.client] = message.number
        return message.client, message.number, message.payload, message.marked

    def is_new(self, message: Relay) -> bool:
        """Whether a message of a client was not given to the program before."""
        return message.number > self._roster.given.get(message.client, 0)

    def _read(self, batch: Batch) -> Among | None:
        try:
            return read_among(batch.payloads[0])
        except msgspec.MsgspecError:
            self._stats.malformed += 1
            return None
