"""How loggers share sessions: each row goes to all, and is looked for at all before a session begins anew."""

from collections.abc import Callable, Iterator
from functools import partial

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.books import Books, admitted
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.frames import Join, Seek, Share, Shared, Sought, entries
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.records import Dismissed
from semcast.protocols.gossip.rows import Row

_MOST = 4096
"""Searches at a time."""

Found = Callable[[Nanos, MemberId, Join], None]


class Search:
    """For the session of a member, at all other loggers."""

    def __init__(self, member: MemberId, frame: Join) -> None:
        self.member = member
        self.frame = frame
        self.answered: set[str] = set()
        self._parts: dict[str, dict[int, Sought]] = {}

    def take(self, name: str, frame: Sought) -> bool:
        """A part of what one of them knows; returns whether that is all of it."""
        parts = self._parts.setdefault(name, {})
        if any(other.had != frame.had or other.parts != frame.parts for other in parts.values()):
            parts.clear()
        parts[frame.part] = frame
        if len(parts) == frame.parts:
            self.answered.add(name)
            return True
        return False

    def rows(self, now: Nanos) -> Iterator[Row]:
        """All that were found."""
        for parts in self._parts.values():
            for part in parts.values():
                if part.had is not None:
                    row = Row(part.had, dict(part.through), now, again=False, attempt=part.attempt)
                    row.compacted, row.filter, row.here = part.compacted, part.filter, False
                    yield row


class Sharing:
    """What one logger does about it.

    Args:
        books: with the rows.
        journal: to write to, and to wait for.
        colleagues: the other loggers.
        out: where frames go.
    """

    def __init__(self, books: Books, journal: Journal, colleagues: Colleagues, out: Outbox) -> None:
        self._books = books
        self._journal = journal
        self._colleagues = colleagues
        self._out = out
        self._searches: dict[MemberId, Search] = {}

    # A session is looked for

    def search(self, member: MemberId, frame: Join) -> None:
        """It may have had a session: another logger may know more of that, or alone know it."""
        search = self._searches.get(member)
        if search is not None:
            search.frame = frame
            return
        if len(self._searches) >= _MOST:
            del self._searches[next(iter(self._searches))]
        self._searches[member] = Search(member, frame)

    def seek(self) -> None:
        """Ask those that have not answered yet."""
        for search in self._searches.values():
            for colleague in self._colleagues.there():
                if colleague.name not in search.answered:
                    self._out.send(colleague, Seek(search.member))

    def on_seek(self, source: MemberId, frame: Seek) -> None:
        """Another logger asks for a session: what is on disk here, once all is."""
        self._journal.then(lambda _now: self._tell(source, frame.member))

    def _tell(self, target: MemberId, member: MemberId) -> None:
        row = self._books.rows.known(member.name)
        if row is None:
            self._out.send(target, Sought(member, None, 0, 0, 1, []))
            return
        parts = entries(sorted(row.through.items()))
        kind = row.compacted, row.filter
        for number, part in enumerate(parts):
            self._out.send(target, Sought(member, row.member, row.attempt, number, len(parts), part, *kind))

    def on_sought(self, now: Nanos, source: MemberId, frame: Sought, found: Found) -> None:
        """What another logger has; when all have answered, the newest row counts."""
        search = self._searches.get(frame.member)
        if search is not None and search.take(source.name, frame):
            self._look(now, search, found)

    def look(self, now: Nanos, found: Found) -> None:
        """A logger is waited for no more: which searches are over?"""
        for search in list(self._searches.values()):
            self._look(now, search, found)

    def _look(self, now: Nanos, search: Search, found: Found) -> None:
        if search.answered.issuperset(self._colleagues.names):
            del self._searches[search.member]
            for row in search.rows(now):
                if self._books.rows.merge(row):
                    self._journal.write(admitted(row))
                    self._journal.then(partial(self._tell_admitted, row))
            found(now, search.member, search.frame)

    # A session is shared

    def on_share(self, now: Nanos, source: MemberId, frame: Share) -> None:
        """A session that another logger has on disk: here, too, once it is synced."""
        rows = self._books.rows
        row = Row(frame.member, dict(frame.through), now, again=frame.again, attempt=frame.attempt)
        row.compacted, row.filter, row.here = frame.compacted, frame.filter, False
        if frame.over and not rows.is_over(frame.member):
            self.dismiss(frame.member, source)
        if frame.over or rows.knows(row):
            self._journal.then(lambda _now: self._out.send(source, Shared(frame.serial)))
        else:
            self._journal.write(admitted(row))
            self._journal.then(lambda _now: self._take(source, frame.serial, row))

    def dismiss(self, member: MemberId, source: MemberId | None = None) -> None:
        """A session is over; all know it soon, but for who said so."""
        forgotten = self._books.rows.dismiss(member)
        if forgotten is not None:
            self._colleagues.forget_session(forgotten)
        self._journal.write(Dismissed(member))
        self._journal.then(lambda _now: self._dismissed(member, source))

    def _dismissed(self, member: MemberId, source: MemberId | None) -> None:
        self._books.rows.settle(member)
        self._out.deliver(Note("dismissed", members=(member,)))
        self._colleagues.changed(member.name, source)

    def _take(self, source: MemberId, serial: int, row: Row) -> None:
        rows = self._books.rows
        if rows.merge(row):
            self._colleagues.changed(row.member.name, source)
        if rows.has(row):  # also where a search brought it meanwhile, which is on disk later
            self._tell_admitted(row)
        self._out.send(source, Shared(serial))

    def _tell_admitted(self, row: Row, _now: Nanos = 0) -> None:
        self._out.deliver(Note("admit", members=(row.member,), order=row.attempt))
