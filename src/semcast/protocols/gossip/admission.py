"""A logger's side of sessions: who is admitted, what they report, who leaves (5.3: loggers admit)."""

from collections.abc import Callable, Iterator

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.frames import (
    Closed,
    Confirm,
    Entry,
    Farewell,
    Join,
    Logged,
    Report,
    Reported,
    Seek,
    Share,
    Shared,
    Sought,
    entries,
    some_spans,
)
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.records import Acknowledged, Admitted, Dismissed
from semcast.protocols.gossip.rows import Row
from semcast.protocols.gossip.settings import GossipSettings, Retention

_MOST = 16384
"""Sessions at a time: nobody can make us keep more."""
HearOf = Callable[[MemberId, int], None]


def closed(stream: LogStream) -> Closed:
    """What to say of a stream that is over; of many holes, the others are told to who asks for them."""
    assert stream.last is not None
    return Closed(stream.sender, stream.last, next(some_spans(stream.holes)))


class Search:
    """For the session of a member, at all other loggers."""

    def __init__(self, member: MemberId) -> None:
        self.member = member
        self.frame: Join | None = None
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
                    yield Row(part.had, dict(part.through), now, again=False, attempt=part.attempt)


class Admission:
    """Nothing is confirmed, and nothing counts, before it is on disk.

    Args:
        books: with the rows of sessions.
        journal: to write to, and to wait for.
        hear_of: to be told that a sender gave a number.
        settings: of the group.
        colleagues: the other loggers.
        out: where answers go.
    """

    def __init__(
        self,
        books: Books,
        journal: Journal,
        hear_of: HearOf,
        settings: GossipSettings,
        colleagues: Colleagues,
        out: Outbox,
    ) -> None:
        self._books = books
        self._journal = journal
        self._hear_of = hear_of
        self._settings = settings
        self._colleagues = colleagues
        self._out = out
        self._searches: dict[MemberId, Search] = {}
        self._unconfirmed: dict[MemberId, int] = {}  # attempts whose rows are on disk here

    def on_join(self, now: Nanos, source: MemberId, frame: Join) -> None:
        """Admit: the row is on disk before anything is confirmed."""
        rows = self._books.rows
        if rows.is_over(source):
            return
        row, former = rows.of(source), rows.known(source.name)
        if row is None and former is None and len(rows) >= _MOST:
            return
        if row is None and frame.again and self._colleagues:
            self._search(source, frame)
        elif row is None or row.attempt <= frame.attempt:
            self._admit(now, source, frame)

    def _admit(self, now: Nanos, source: MemberId, frame: Join) -> None:
        rows = self._books.rows
        row, former = rows.of(source), rows.known(source.name)
        if row is None or row.attempt < frame.attempt:
            again = former is not None and (former.again or former.member != source)
            through = dict(former.through) if former is not None else self._beginning(frame.start)
            row = rows.admit(now, source, through, again=again, attempt=frame.attempt)
            self._journal.write(Admitted(source, sorted(through.items()), again, frame.attempt))
        row.heard_at, row.here = now, True
        self._journal.then(lambda _now: self._admitted(source, frame.attempt))

    def _beginning(self, start: str) -> dict[MemberId, int]:
        """Where a session begins that is not known here: never below what was promised to other loggers."""
        streams = self._books.streams.values()
        if start == "new":
            return {stream.sender: stream.logged for stream in streams}
        if not self._colleagues or self._settings.retention is not Retention.STABLE:
            return {stream.sender: stream.floor for stream in streams}
        promised = self._colleagues.promised
        return {
            stream.sender: stream.logged if (found := promised(stream.sender)) is None else found
            for stream in streams
        }

    # Other loggers

    def _search(self, source: MemberId, frame: Join) -> None:
        """It may have had a session: another logger may know more of that, or alone know it."""
        search = self._searches.get(source)
        if search is None:
            if len(self._searches) >= _MOST:
                del self._searches[next(iter(self._searches))]
            search = self._searches[source] = Search(source)
        search.frame = frame

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
        for number, part in enumerate(parts):
            self._out.send(target, Sought(member, row.member, row.attempt, number, len(parts), part))

    def on_sought(self, now: Nanos, source: MemberId, frame: Sought) -> None:
        """What another logger has; when all have answered, the newest row counts."""
        search = self._searches.get(frame.member)
        if search is None or not search.take(source.name, frame):
            return
        if search.answered.issuperset(self._colleagues.names):
            del self._searches[frame.member]
            for row in search.rows(now):
                self._take_row(row)
            assert search.frame is not None
            if not self._books.rows.is_over(frame.member):
                self._admit(now, frame.member, search.frame)

    def _take_row(self, row: Row) -> None:
        row.here = False
        if self._books.rows.merge(row):
            through = sorted(row.through.items())
            self._journal.write(Admitted(row.member, through, row.again, row.attempt, here=False))

    def on_share(self, now: Nanos, source: MemberId, frame: Share) -> None:
        """A session that another logger has on disk: here, too, once it is synced."""
        if frame.over:
            if not self._books.rows.is_over(frame.member):
                self.dismiss(frame.member)
            self._journal.then(lambda _now: self._out.send(source, Shared(frame.serial)))
            return
        row = Row(frame.member, dict(frame.through), now, again=frame.again, attempt=frame.attempt)
        row.here = False
        if self._books.rows.knows(row):
            self._journal.then(lambda _now: self._out.send(source, Shared(frame.serial)))
            return
        through = sorted(row.through.items())
        self._journal.write(Admitted(row.member, through, row.again, row.attempt, here=False))
        self._journal.then(lambda _now: self._take_share(source, frame.serial, row))

    def _take_share(self, source: MemberId, serial: int, row: Row) -> None:
        if self._books.rows.merge(row):
            self._colleagues.changed(row.member.name, source)
            self._out.deliver(Note("admit", members=(row.member,), order=row.attempt))
        self._out.send(source, Shared(serial))

    def on_shared(self, source: MemberId, frame: Shared) -> None:
        """Another logger has a row: perhaps that was awaited."""
        name = self._colleagues.on_shared(source, frame.serial)
        for member, attempt in list(self._unconfirmed.items()):
            if member.name == name:
                self._confirm(member, attempt)

    # Confirmation

    def _admitted(self, member: MemberId, attempt: int) -> None:
        """The row is on disk here."""
        row = self._books.rows.of(member)
        if row is None or row.attempt != attempt:
            return
        self._out.deliver(Note("admit", members=(member,), order=attempt))
        self._colleagues.changed(member.name)
        self._unconfirmed[member] = attempt
        if self._settings.log_acks > 1:
            self._colleagues.share()
        self._confirm(member, attempt)

    def enough(self, row: Row) -> bool:
        """Whether so many loggers have a row on disk as must."""
        return 1 + self._colleagues.copies(row) >= self._settings.log_acks

    def _confirm(self, member: MemberId, attempt: int) -> None:
        row = self._books.rows.of(member)
        if row is None or row.attempt != attempt:
            self._unconfirmed.pop(member, None)
            return
        if not self.enough(row):
            return
        self._unconfirmed.pop(member, None)
        owed = [(stream, seq) for stream, seq in sorted(row.through.items()) if stream in self._books.streams]
        over = self._books.ended.entries()
        parts = entries([*owed, *over])
        begin = 0
        for number, part in enumerate(parts):
            after = part[: max(0, len(owed) - begin)]
            ended = part[len(after) :]
            begin += len(part)
            self._out.send(member, Confirm(attempt, number, len(parts), after, ended, row.again))

    def on_report(self, now: Nanos, source: MemberId, frame: Report) -> None:
        """What a session is through with counts as soon as it is on disk."""
        books = self._books
        if books.rows.is_over(source):
            self._out.send(source, Farewell())
            return
        row = books.rows.of(source)
        if row is None and books.rows.known(source.name) is None and len(books.rows) >= _MOST:
            return
        if row is not None and row.attempt > frame.attempt:
            return  # it has moved since
        if row is None or row.attempt < frame.attempt:
            row = self._take_in(now, source, frame)
        row.heard_at, row.here = now, True
        through = []
        for sender, seq, known in frame.through:
            self._hear_of(sender, known)
            stream = books.streams.get(sender)
            upto = 0 if stream is None else min(seq, stream.logged)
            if upto > row.through.get(sender, 0):
                through.append((sender, upto))
        if through:
            self._journal.write(Acknowledged(source, through))
            self._journal.then(lambda _now: self._acknowledged(source, through))
        self._answer(source, row, frame)

    def _take_in(self, now: Nanos, source: MemberId, frame: Report) -> Row:
        """It moves here, with its own position; or its row was lost with a disk."""
        former = self._books.rows.known(source.name)
        through: dict[MemberId, int] = {}
        if self._colleagues:
            through = {stream: seq for stream, seq, _ in frame.through if seq}
        again = former is not None and former.again
        row = self._books.rows.admit(now, source, through, again=again, attempt=frame.attempt)
        self._journal.write(Admitted(source, sorted(through.items()), again, frame.attempt))
        self._journal.then(lambda _now: self._colleagues.changed(source.name))
        return row

    def _acknowledged(self, member: MemberId, through: list[Entry]) -> None:
        self._books.rows.acknowledge(member, through)
        self._colleagues.changed(member.name)
        for sender, seq in through:
            self._out.deliver(Note("acknowledge", sender=sender, seq=seq, members=(member,)))

    def _answer(self, member: MemberId, row: Row, frame: Report) -> None:
        """What is on disk of these streams, and which are over or being closed."""
        books = self._books
        told = [sender for sender, _, _ in frame.through]
        known = [books.streams[sender] for sender in told if sender in books.streams]
        logged = [(stream.sender, stream.logged) for stream in known]
        frozen = [stream.sender for stream in known if stream.frozen]
        self._out.send(member, Reported(frame.serial, frame.part, books.log, logged, frozen))
        for stream in known:
            if stream.last is not None:
                self._out.send(member, closed(stream))
        for sender in told:
            if sender in books.ended:
                self._out.send(member, Closed(sender, books.ended.last(sender), []))
        if frame.parts == 1:
            self._tell_untold(member, row, set(told))

    def _tell_untold(self, member: MemberId, row: Row, told: set[MemberId]) -> None:
        """Streams that the session has never heard of, and is owed."""
        untold = []
        for sender, stream in sorted(self._books.streams.items()):
            if sender not in told and row.through.get(sender, 0) < stream.logged:
                untold.append((sender, stream.logged))
                if stream.last is not None:
                    self._out.send(member, closed(stream))
        for part in entries(untold):
            if part:
                self._out.send(member, Logged(self._books.log, part))

    def dismiss(self, member: MemberId) -> None:
        """A session is over: with it, what is owed to it (R-12)."""
        self._books.rows.dismiss(member)
        self._journal.write(Dismissed(member))
        self._journal.then(lambda _now: self._colleagues.changed(member.name))

    def say_farewell(self, member: MemberId) -> None:
        """R-5: the end of a session is confirmed to who leaves, once it is on disk."""
        self._journal.then(lambda _now: self._out.send(member, Farewell()))
