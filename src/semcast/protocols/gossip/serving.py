"""How a logger answers requests (3.2): with the message, or with why it is not in the log any more."""

from collections.abc import Iterable
from typing import Literal

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.desk import NOTICES, Asked, data_of
from semcast.protocols.gossip.fetching import WINDOW
from semcast.protocols.gossip.frames import Gone, Notice, some_spans
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.reading import matches
from semcast.protocols.gossip.runs import runs_of
from semcast.protocols.gossip.service import ServiceLimit
from semcast.protocols.gossip.settings import GossipSettings
from semcast.protocols.gossip.spans import Span, numbers_of, spans_of, within


class Serving:
    """Answers from the log, within the service limit."""

    def __init__(self, books: Books, settings: GossipSettings, stats: Statistics, out: Outbox) -> None:
        self._books = books
        self._limit = ServiceLimit(settings.repairs_per_second)
        self._frame_bytes = settings.frame_bytes
        self._stats = stats
        self._out = out

    def serve(self, now: Nanos, target: MemberId, asked: Asked, number: int) -> None:
        """Each as it is in the log."""
        for sender, spans in asked:
            stream = self._books.streams.get(sender)
            if stream is not None:
                self._answer(now, target, stream, spans, number)
            elif sender in self._books.ended:
                left = within(spans, 1, self._books.ended.last(sender))
                self._out.send(target, Gone(sender, next(some_spans(left)), "expired"))

    def _answer(
        self, now: Nanos, target: MemberId, stream: LogStream, spans: Iterable[Span], number: int
    ) -> None:
        purged: list[tuple[int, int, int]] = []
        found: list[Batch] = []
        row = self._books.rows.of(target)
        compacted = row is not None and row.compacted
        filter_ = "" if row is None else row.filter
        unwanted: list[int] = []
        expired: list[int] = []
        abandoned: list[int] = []
        for seq in numbers_of(spans, WINDOW):
            batch = stream.messages.get(seq)
            by = stream.newest(seq) if compacted else None
            if by is not None:
                _note_purged(purged, seq, by)
            elif batch is not None and filter_ and not matches(batch, filter_):
                unwanted.append(seq)
            elif batch is not None:
                found.append(batch)
            elif seq in stream.receipts:
                _note_purged(purged, seq, stream.replacement(seq))
            elif seq in stream.holes:
                abandoned.append(seq)
            elif seq in stream.expired or seq <= stream.floor:
                expired.append(seq)
            elif seq <= stream.merged and (not purged or purged[-1][1] < seq):
                purged.append((seq, stream.merged_from(seq), 0))
        self._send(now, target, found, number)
        for start in range(0, len(purged), NOTICES):
            self._out.send(target, Notice(stream.sender, purged[start : start + NOTICES]))
        self._tell_gone(target, stream.sender, expired, "expired")
        self._tell_gone(target, stream.sender, abandoned, "abandoned")
        self._tell_gone(target, stream.sender, unwanted, "unwanted")

    def _send(self, now: Nanos, target: MemberId, found: list[Batch], number: int) -> None:
        """Messages, in as few frames as they fit into."""
        count = self._limit.some(now, len(found))
        self._stats.retransmitted += count
        for run in runs_of(found[:count], self._frame_bytes):
            self._out.send(target, data_of(run, number))

    def _tell_gone(
        self,
        target: MemberId,
        sender: MemberId,
        seqs: list[int],
        why: Literal["expired", "abandoned", "unwanted"],
    ) -> None:
        for part in some_spans(spans_of(sorted(set(seqs)))):
            if part:
                self._out.send(target, Gone(sender, part, why))


def _note_purged(purged: list[tuple[int, int, int]], seq: int, by: int) -> None:
    """Messages in a row that one other replaced are one receipt."""
    if purged and purged[-1][1] == seq - 1 and purged[-1][2] == by:
        purged[-1] = purged[-1][0], seq, by
    else:
        purged.append((seq, seq, by))
