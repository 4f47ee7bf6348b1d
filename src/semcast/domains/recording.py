"""`record=` of a program in a domain: what it hears of its daemon, and its calls.

Rows are written before the program is given what they are about, and before what it says leaves. Each session
has journals of its own: one for what it hears, in the group of the domain, beside those of the daemons; and
one for the calls of each group.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from semcast.core.events import Note
from semcast.domains.link import Link, Refusal, Request, Terms
from semcast.group.call_journal import StayingJournal
from semcast.group.errors import ConfigurationError
from semcast.history.events import RunInfo
from semcast.history.journal import FamilyRow, JournalWriter
from semcast.history.schema import TOTAL
from semcast.protocols.clients.notes import heard_row, opened_row
from semcast.protocols.lightweight import LIGHTWEIGHT
from semcast.protocols.lightweight.events import ClientEvent

_LOG = logging.getLogger("semcast.group")


class DomainRecording:
    """The journals of one program.

    Args:
        folder: for journals.
        run: its name; that of the domain where it is empty.
        hears: whether it is written down what the program hears.
        order: of the messages of a group.
    """

    def __init__(self, folder: Path, run: str, *, hears: bool = True, order: str = TOTAL) -> None:
        self._folder = folder
        self._run = run
        self._hears = hears
        self._order = order
        self._terms: Terms | None = None
        self._writer: JournalWriter | None = None
        self._calls: dict[str, StayingJournal] = {}

    def of(self, link: Link) -> Link:
        """A link that is recorded."""
        return RecordedLink(link, self)

    def begin(self, terms: Terms) -> None:
        """A session has begun."""
        self._terms = terms
        self._close_heard()
        for group, journal in list(self._calls.items()):
            if journal.idle:
                self._calls.pop(group).close()
        if self._hears:
            domain = terms.domain
            info = RunInfo.one(
                self._run or domain, domain, LIGHTWEIGHT.name, None, (), None, uniform=False, quiesced=False
            )
            try:
                self._writer = JournalWriter(self._folder, terms.client, info)
            except OSError as error:
                raise ConfigurationError(f"cannot record in {self._folder}: {error}") from error
            self._write([opened_row(terms.client)])

    def heard(self, events: Sequence[ClientEvent | Refusal]) -> None:
        """The program is given these."""
        if self._writer is None or self._terms is None:
            return
        client = self._terms.client
        rows = [heard_row(client, event) for event in events if not isinstance(event, Refusal)]
        self._write([row for row in rows if row is not None])

    def _write(self, rows: list[Note]) -> None:
        if rows and self._writer is not None:
            try:
                self._writer.append(time.time_ns(), [FamilyRow(row) for row in rows])
            except OSError as error:
                _LOG.warning("what %s hears is recorded no more: %s", rows[0].sender, error)
                self._close_heard()
                self._hears = False

    def calls(self, group: str) -> StayingJournal:
        """Of a group that the program is in."""
        assert self._terms is not None
        domain, client = self._terms.domain, self._terms.client
        journal = self._calls.get(group)
        if journal is None:
            name = f"{domain}/{group}"
            journal = StayingJournal(self._folder, self._run or domain, name, client, order=self._order)
            self._calls[group] = journal
        journal.idle = False
        return journal

    def close(self) -> None:
        """The program is out of the domain."""
        self._close_heard()
        while self._calls:
            self._calls.popitem()[1].close()

    def _close_heard(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(OSError):  # then it has no end, and that is how it is read
                writer.close(time.time_ns())


class RecordedLink:
    """A link of which it is written down what the program is told.

    Args:
        link: that it stands for.
        recording: where.
    """

    def __init__(self, link: Link, recording: DomainRecording) -> None:
        self.link = link
        self.room_for = link.room_for
        self.submit: Callable[[Request], None] = link.submit
        self._recording = recording

    async def open(self, heard: Callable[[], None]) -> Terms:
        """Begin the first session."""
        terms = await self.link.open(heard)
        self._recording.begin(terms)
        return terms

    async def renew(self) -> Terms:
        """Begin another one."""
        terms = await self.link.renew()
        self._recording.begin(terms)
        return terms

    async def close(self) -> None:
        """End the session."""
        await self.link.close()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.link.over

    def take(self) -> Sequence[ClientEvent | Refusal]:
        """The next events, once they are written down."""
        events = self.link.take()
        self._recording.heard(events)
        return events
