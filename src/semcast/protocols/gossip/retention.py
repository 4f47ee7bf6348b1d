"""How messages leave a log: replaced, stable, or too many (5.2; compaction is ours)."""

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.records import Collected, Dropped, Expired, Merged, receipts_of
from semcast.protocols.gossip.settings import GossipSettings, Retention
from semcast.protocols.gossip.spans import Span, spans_of

_GRACE = 4
"""Report periods in which a new log collects nothing, so that sessions report again."""


class Retaining:
    """Applies the settings to the books."""

    def __init__(
        self,
        settings: GossipSettings,
        books: Books,
        journal: Journal,
        colleagues: Colleagues,
        out: Outbox,
    ) -> None:
        self._settings = settings
        self._colleagues = colleagues
        self._books = books
        self._journal = journal
        self._out = out
        self._begins: Nanos = 0
        self._emptied = 0  # before this position nothing is left: positions are never filled again

    def wait_for_reports(self, now: Nanos) -> None:
        """The log is new: nobody knows yet who is owed what."""
        self._begins = now + _GRACE * self._settings.report

    @property
    def compacts(self) -> bool:
        """Whether what a logged message replaces leaves the log."""
        return self._settings.compact

    def waits(self, now: Nanos) -> bool:
        """Whether sessions have yet to report."""
        return now < self._begins

    def logged(self, stream: LogStream, first: int, last: int) -> None:
        """These are on disk, without a gap before them: what they replace may leave."""
        self._compact(stream, first, last)
        if self._settings.retention is Retention.LIMITS:
            self._expire(stream)

    def _compact(self, stream: LogStream, first: int, last: int) -> None:
        """What replaces a message must be on the disks of all loggers: one of them may be lost."""
        if self._colleagues:
            first, last = stream.compacted + 1, min(last, self._colleagues.logged(stream.sender))
            stream.compacted = max(stream.compacted, last)
        pairs = stream.obsolete(first, last)
        if not self._settings.compact:
            stream.superseded.update(pairs)
            return
        for seq, by in pairs:
            self._books.replace(stream, seq, by)
        for record in receipts_of(stream.sender, pairs):
            self._journal.write(record)
        self._note(stream, spans_of(sorted(seq for seq, _ in pairs)), "obsolete")

    def start(self) -> None:
        """Of a log that was read: a crash may have come between a message and what leaves because of it."""
        for stream in self._books.streams.values():
            self.logged(stream, 1, stream.logged)

    def limit(self, at: Nanos) -> None:
        """Of what is too old at this time of day, or too much, the oldest leave, by position.

        So nothing leaves before what it replaced: that has an earlier position.
        """
        settings, books = self._settings, self._books
        since = at - settings.log_age if settings.log_age else 0
        excess = sum(stream.size for stream in books.streams.values()) - settings.log_bytes
        excess = excess if settings.log_bytes else 0
        found: dict[MemberId, list[int]] = {}
        for run in books.positions.from_(self._emptied):
            if (run.at >= since and excess <= 0) or run.end > books.positions.synced:
                break
            stream = books.streams.get(run.sender)
            if stream is None:
                continue
            for seq in range(run.first, run.last + 1):
                size = stream.messages.size_of(seq)
                if size is not None and not (run.at < since or excess > 0):
                    break
                if size is not None:
                    found.setdefault(run.sender, []).append(seq)
                    excess -= size
                self._emptied = run.position + seq - run.first + 1
        for sender, seqs in found.items():
            self._expire_all(books.streams[sender], spans_of(seqs))

    def collect(self, now: Nanos) -> None:
        """What all sessions are through with is stable."""
        if now < self._begins:
            return
        for stream in list(self._books.streams.values()):
            minimum = self.minimum(now, stream.sender)
            stable = stream.logged if minimum is None else min(minimum, stream.logged)
            if self._colleagues:
                stable = min(stable, self._elsewhere(stream.sender))
                self._compact(stream, 1, stream.logged)
            if self._leaves(stream, stable) and stable > stream.floor:
                self._journal.write(Collected(stream.sender, stable))
                self._note(stream, spans_of(self._books.collect(stream, stable)), "stable")
            else:
                self._merge(stream, max(stable, stream.crowded(self._settings.receipts)))
            if stream.last is not None and stream.floor >= stream.last:
                self._journal.write(Dropped(stream.sender, stream.last))
                self._books.forget(stream.sender, stream.last)

    def _leaves(self, stream: LogStream, stable: int) -> bool:
        """Whether to collect what is stable: with `live` and `limits`, only if nothing is left of a stream.

        Several loggers keep it: a session may still begin at another one, and come here.
        """
        if self._settings.retention is Retention.STABLE:
            return True
        over = stream.last is not None and stable >= stream.last
        return over and not stream.messages and not self._colleagues

    def _merge(self, stream: LogStream, below: int) -> None:
        """Of receipts that every session is past, and of too many, it is enough that there was one."""
        if stream.may_merge(below):
            self._journal.write(Merged(stream.sender, below))
            stream.merge(below)

    def minimum(self, now: Nanos, stream: MemberId) -> int | None:  # noqa: ARG002
        """What all sessions are through with, on disk; None if there are none."""
        return self._books.rows.minimum(stream)

    def _elsewhere(self, stream: MemberId) -> int:
        """What nobody needs who has a session at another logger, nor that logger itself."""
        return self._colleagues.stable(stream)

    def _expire(self, stream: LogStream) -> None:
        """The oldest leave first, so that nothing leaves before what it replaced."""
        excess = len(stream.messages) - self._settings.log_messages
        if excess > 0:
            spans = spans_of(sorted(seq for seq in stream.messages if seq <= stream.logged)[:excess])
            self._expire_all(stream, spans)

    def _expire_all(self, stream: LogStream, spans: list[Span]) -> None:
        if spans:
            self._journal.write(Expired(stream.sender, spans))
            self._books.expire(stream, spans)
            self._note(stream, spans, "expired")

    def _note(self, stream: LogStream, spans: list[Span], level: str) -> None:
        for first, last in spans:
            count = last - first + 1
            self._out.deliver(Note("collect", sender=stream.sender, seq=first, count=count, level=level))
