"""A logger's side of sessions: who is admitted, what they report, who leaves (5.3: loggers admit)."""

from collections.abc import Callable
from typing import ClassVar

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.arriving import Arriving
from semcast.protocols.gossip.books import Books, admitted
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.frames import (
    Acknowledge,
    Closed,
    Confirm,
    Entry,
    Farewell,
    Join,
    Logged,
    Refused,
    Report,
    Reported,
    Shared,
    Sought,
    entries,
    some_spans,
)
from semcast.protocols.gossip.frames import (
    Acknowledged as AcknowledgedFrame,
)
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.reading import OffsetError, Reading
from semcast.protocols.gossip.records import Acknowledged
from semcast.protocols.gossip.rows import Row
from semcast.protocols.gossip.settings import GossipSettings, Retention
from semcast.protocols.gossip.sharing import Sharing
from semcast.protocols.gossip.starting import RefusedError, beginning

_MOST = 16384
"""Sessions at a time: nobody can make us keep more."""
_REFUSED = 1024
"""Attempts that were refused last, and are refused again."""
HeardBy = Callable[[MemberId, MemberId, int], None]


def closed(stream: LogStream) -> Closed:
    """What to say of a stream that is over; of many holes, the others are told to who asks for them."""
    assert stream.last is not None
    return Closed(stream.sender, stream.last, next(some_spans(stream.holes)))


class Admission:
    """Nothing is confirmed, and nothing counts, before it is on disk.

    Args:
        books: with the rows of sessions.
        journal: to write to, and to wait for.
        heard_by: to be told that a session has heard that a sender gave a number.
        settings: of the group.
        colleagues: the other loggers.
        out: where answers go.
    """

    arriving_kind: ClassVar[type[Arriving]] = Arriving

    def __init__(
        self,
        books: Books,
        journal: Journal,
        heard_by: HeardBy,
        settings: GossipSettings,
        colleagues: Colleagues,
        out: Outbox,
    ) -> None:
        self._books = books
        self._journal = journal
        self._heard_by = heard_by
        self._settings = settings
        self._colleagues = colleagues
        self._out = out
        self.sharing = Sharing(books, journal, colleagues, out)
        self.arriving = self.arriving_kind()
        self._unconfirmed: dict[MemberId, int] = {}  # attempts whose rows are on disk here
        self._refused: dict[MemberId, Refused] = {}

    def on_join(self, now: Nanos, source: MemberId, frame: Join) -> None:
        """Admit; who follows up on somebody, once all is on disk that was acknowledged before.

        Who was refused has left: the same question, which was asked again meanwhile, makes no session that
        nobody would ever use.
        """
        rows, refused = self._books.rows, self._refused.get(source)
        if refused is not None and refused.attempt == frame.attempt:
            self._out.send(source, refused)
        elif rows.of(source) is None and frame.again and self._colleagues:
            self.sharing.search(source, frame)
        elif rows.of(source) is None and rows.known(source.name) is not None:
            self._journal.then(lambda then: self._admit(then, source, frame))
        else:
            self._admit(now, source, frame)

    def on_sought(self, now: Nanos, source: MemberId, frame: Sought) -> None:
        """What another logger knows of who wants a session."""
        self.sharing.on_sought(now, source, frame, self._admit)

    def look(self, now: Nanos) -> None:
        """A logger is waited for no more."""
        self.sharing.look(now, self._admit)

    def _admit(self, now: Nanos, source: MemberId, frame: Join) -> None:
        """The row is on disk before anything is confirmed."""
        rows = self._books.rows
        if rows.is_over(source):
            return
        row, former = rows.of(source), rows.known(source.name)
        if row is None and former is None and len(rows) >= _MOST:
            self._books.refused += 1
            why = f"the log has {_MOST} sessions; those of programs that were killed end in time"
            self._refuse(source, Refused(frame.attempt, source.incarnation, why))
            return
        new = row is None or row.attempt < frame.attempt
        if row is None or new:
            try:
                through = dict(former.through) if former is not None else self._beginning(frame, source)
            except (RefusedError, OffsetError) as error:
                self._refuse(source, Refused(frame.attempt, source.incarnation, str(error)[:256]))
                return
            again = former is not None and (former.again or former.member != source)
            row = rows.admit(now, source, through, again=again, attempt=frame.attempt)
            row.compacted = frame.start == "compacted" if former is None else former.compacted
            row.filter = frame.filter
            self._journal.write(admitted(row))
        elif row.attempt > frame.attempt:
            return  # it has asked another logger since
        row.heard_at, row.here, row.away = now, True, False
        self._journal.then(lambda _now: self._admitted(source, frame.attempt, new=new))

    def _refuse(self, source: MemberId, refused: Refused) -> None:
        self._refused[source] = refused
        if len(self._refused) > _REFUSED:
            del self._refused[next(iter(self._refused))]
        self._out.send(source, refused)

    def _beginning(self, join: Join, source: MemberId) -> dict[MemberId, int]:
        """Where a session begins that is not known here: never below what was promised to other loggers.

        Its own stream begins as early as it can: what it sent meanwhile its program may not have read.
        """
        floors = {sender: stream.floor for sender, stream in self._books.streams.items()}
        if self._colleagues and self._settings.retention is Retention.STABLE:
            for sender, stream in self._books.streams.items():
                promised = self._colleagues.promised(sender)
                floors[sender] = max(stream.floor, stream.logged if promised is None else promised)
        found = beginning(self._books, Reading(self._books), join, source.name, floors)
        return found | {sender: floor for sender, floor in floors.items() if sender == source}

    # Confirmation

    def on_shared(self, source: MemberId, frame: Shared) -> None:
        """Another logger has a row: perhaps that was awaited."""
        name = self._colleagues.on_shared(source, frame.serial)
        for member, attempt in list(self._unconfirmed.items()):
            if member.name == name:
                self._confirm(member, attempt)

    def _admitted(self, member: MemberId, attempt: int, *, new: bool) -> None:
        """The row is on disk here. For who asks again it is not said anew to others: it is on its way."""
        row = self._books.rows.of(member)
        if row is None or row.attempt != attempt:
            return
        self._out.deliver(Note("admit", members=(member,), order=attempt))
        self._unconfirmed[member] = attempt
        if new:
            self._colleagues.changed(member.name)
        else:
            self._colleagues.spread(row)
        if new and self._settings.log_acks > 1:
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
        owed = self._owed(row)
        over = self._books.ended.newest()
        parts = entries([*owed, *over])
        begin = 0
        for number, part in enumerate(parts):
            after = part[: max(0, len(owed) - begin)]
            ended = part[len(after) :]
            begin += len(part)
            whose = row.again, member.incarnation
            self._out.send(member, Confirm(attempt, number, len(parts), after, ended, *whose))

    def _owed(self, row: Row) -> list[Entry]:
        """Where a session goes on in each stream that is not over.

        Of one that this logger has never heard of, as it was down, another one has written that in the row:
        who is not told would begin that stream anew.
        """
        streams, ended, shared = self._books.streams, self._books.ended, bool(self._colleagues)
        through = sorted(row.through.items())
        return [
            (stream, seq) for stream, seq in through if stream in streams or (shared and stream not in ended)
        ]

    def on_report(self, now: Nanos, source: MemberId, frame: Report) -> None:
        """What a session is through with counts as soon as it is on disk."""
        books = self._books
        if books.rows.is_over(source):
            self._out.send(source, Farewell(source.incarnation))
            return
        row = books.rows.of(source)
        if row is None and books.rows.known(source.name) is None and len(books.rows) >= _MOST:
            return
        if row is not None and row.attempt > frame.attempt:
            return  # it has moved since
        if row is not None and row.attempt == frame.attempt and source not in self.arriving:
            self._report(now, source, row, frame)
            return
        parts = self.arriving.take(source, frame)
        if parts or books.rows.known(source.name) is None:  # until all of it is here, it is owed everything
            row = self._take_in(now, source, frame.attempt, parts)
        for part in parts:
            assert row is not None
            self._report(now, source, row, part)

    def _report(self, now: Nanos, source: MemberId, row: Row, frame: Report) -> None:
        row.heard_at, row.here, row.away = now, True, False
        for sender, through, known in frame.through:
            if known >= through:
                self._heard_by(source, sender, known)
        self._take(source, row, [(sender, seq) for sender, seq, _ in frame.through])
        self._answer(source, row, frame)

    def on_acknowledge(self, now: Nanos, source: MemberId, frame: Acknowledge) -> None:
        """The same, said by the program. It is answered once all of it is on disk, and asked again before.

        A stream that is not known here is over; or what its sender sent is still to come.
        """
        row = self._books.rows.of(source)
        if row is None:
            return
        row.heard_at = now
        streams, ended = self._books.streams, self._books.ended
        for sender, seq in frame.upto:
            if sender not in ended:
                self._heard_by(source, sender, seq)
        self._take(source, row, frame.upto)
        if all(sender not in streams or seq <= streams[sender].logged for sender, seq in frame.upto):
            answer = AcknowledgedFrame(frame.serial, frame.part, source.incarnation)
            self._journal.then(lambda _now: self._out.send(source, answer))

    def _take(self, source: MemberId, row: Row, said: list[Entry]) -> None:
        through = []
        for sender, seq in said:
            stream = self._books.streams.get(sender)
            upto = 0 if stream is None else min(seq, stream.logged)
            if upto > row.through.get(sender, 0):
                through.append((sender, upto))
        if through:
            self._journal.write(Acknowledged(source, through))
            self._journal.then(lambda _now: self._acknowledged(source, through))

    def _take_in(self, now: Nanos, source: MemberId, attempt: int, parts: list[Report]) -> Row:
        """It moves here, with its own position; or its row was lost with a disk."""
        former = self._books.rows.known(source.name)
        through: dict[MemberId, int] = {}
        if self._colleagues:
            through = {stream: seq for part in parts for stream, seq, _ in part.through if seq}
        again = former is not None and former.again
        row = self._books.rows.admit(now, source, through, again=again, attempt=attempt)
        if former is not None:
            row.compacted, row.filter = former.compacted, former.filter
        self._journal.write(admitted(row))
        self._journal.then(lambda _now: self._colleagues.changed(source.name))
        return row

    def _acknowledged(self, member: MemberId, through: list[Entry]) -> None:
        self._books.rows.acknowledge(member, through)
        self._colleagues.changed(member.name)
        for sender, seq in through:
            self._out.deliver(Note("acknowledge", sender=sender, seq=seq, members=(member,)))

    def _answer(self, member: MemberId, row: Row, frame: Report) -> None:
        """What is on disk of these streams, and which are over or being closed.

        Of a stream that is being closed its sender is not told what is settled: that counts holes. Who is
        through with more than it knows of a stream knows that it is over.
        """
        books = self._books
        told = [sender for sender, _, _ in frame.through]
        known = [books.streams[sender] for sender in told if sender in books.streams]
        counted = [stream for stream in known if not (stream.frozen and stream.sender == member)]
        logged = [(stream.sender, stream.logged) for stream in counted]
        frozen = [stream.sender for stream in known if stream.frozen]
        whose = member.incarnation
        self._out.send(member, Reported(frame.serial, frame.part, whose, books.log, logged, frozen))
        for sender in [sender for sender, through, heard in frame.through if heard >= through]:
            stream = books.streams.get(sender)
            if stream is not None and stream.last is not None:
                self._out.send(member, closed(stream))
            elif sender in books.ended:
                self._out.send(member, Closed(sender, books.ended.last(sender), []))
        if frame.parts == 1:
            self._tell_untold(member, row, set(told))

    def _tell_untold(self, member: MemberId, row: Row, told: set[MemberId]) -> None:
        """Streams that the session has never heard of, and is owed."""
        streams, through = self._books.streams, row.through.get
        untold = [
            (sender, stream.logged)
            for sender, stream in streams.items()
            if through(sender, 0) < stream.logged and sender not in told
        ]
        untold.sort()
        for sender, _ in untold:
            if streams[sender].last is not None:
                self._out.send(member, closed(streams[sender]))
        for part in entries(untold):
            if part:
                self._out.send(member, Logged(self._books.log, part))

    def dismiss(self, member: MemberId) -> None:
        """A session is over: with it, what is owed to it (R-12)."""
        self.sharing.dismiss(member)

    def say_farewell(self, member: MemberId) -> None:
        """R-5: the end of a session is confirmed to who leaves, once it is on disk."""
        self._journal.then(lambda _now: self._out.send(member, Farewell(member.incarnation)))
