"""How a logger answers requests (3.2): with the message, or with why it is not in the log any more."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Literal

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.data import data_of
from semcast.protocols.gossip.desk import NOTICES, Asked
from semcast.protocols.gossip.fetching import WINDOW, WINDOW_BYTES
from semcast.protocols.gossip.frames import Gone, Notice, some_spans
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.reading import matches
from semcast.protocols.gossip.receiver import SKIPPED
from semcast.protocols.gossip.service import ServiceLimit
from semcast.protocols.gossip.settings import GossipSettings
from semcast.protocols.gossip.spans import Span, Spans, first_of, spans_of, within
from semcast.protocols.gossip.streamruns import runs_of
from semcast.protocols.gossip.streams import WANTED

_MOST_BYTES = 2 * WINDOW_BYTES
"""In one answer: who asks does not know how large messages are before they come."""

_NOTICED = WANTED
"""Messages that another logger is told of at a time: it asks for no more."""

Receipt = tuple[int, int, int]
"""The first and the last of messages in a row, and what replaced them; 0 if that is not said."""
Why = Literal["expired", "abandoned", "unwanted"]


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
        row = self._books.rows.of(target)
        found: list[Batch] = []
        purged: list[int] = []
        merged: list[Receipt] = []
        gone: dict[Why, list[int]] = {}
        messages, receipts = stream.messages, stream.receipts
        superseded = stream.superseded if row is not None and row.compacted else ()
        told = 0  # what was replaced up to there is among `merged`
        most = _NOTICED if row is None else NOTICES * SKIPPED
        for seq in [seq for span in first_of(Spans(spans), WINDOW) for seq in range(span[0], span[1] + 1)]:
            if seq <= told:
                continue
            batch = messages.get(seq)
            if seq in receipts or (seq in superseded and stream.newest(seq) is not None):
                purged.append(seq)
            elif batch is None:
                why = _why_gone(stream, seq)
                if why is not None:
                    gone.setdefault(why, []).append(seq)
                elif seq <= stream.merged:
                    told = stream.merged_from(seq, most)
                    merged += _skipped(seq, told)
            elif row is not None and row.filter and not matches(batch.annotation, row.filter):
                gone.setdefault("unwanted", []).append(seq)
            else:
                found.append(batch)
        self._send(now, target, found, number)
        many = row is not None and len(purged) > NOTICES
        self._tell_purged(
            target, stream, merged + (_as_spans(stream, purged) if many else _singly(stream, purged))
        )
        for why, seqs in gone.items():
            for part in some_spans(spans_of(seqs)):
                self._out.send(target, Gone(stream.sender, part, why))

    def _send(self, now: Nanos, target: MemberId, found: list[Batch], number: int) -> None:
        """Messages, in as few frames as they fit into; no more than there is room for where they go."""
        ends = list(accumulate([batch.size for batch in found]))
        fitting = len(found) if not ends or ends[-1] <= _MOST_BYTES else bisect_right(ends, _MOST_BYTES)
        count = self._limit.some(now, max(fitting, min(1, len(found))))
        self._stats.retransmitted += count
        for run in runs_of(found[:count], self._frame_bytes):
            self._out.send(target, data_of(run, number))

    def _tell_purged(self, target: MemberId, stream: LogStream, receipts: list[Receipt]) -> None:
        for start in range(0, len(receipts), NOTICES):
            self._out.send(target, Notice(stream.sender, receipts[start : start + NOTICES]))


def _why_gone(stream: LogStream, seq: int) -> Why | None:
    """Why a message that is not in the log will never be; None if it may be, or was replaced."""
    if seq in stream.holes:
        return "abandoned"
    return "expired" if seq in stream.expired or seq <= stream.floor else None


def _singly(stream: LogStream, purged: list[int]) -> list[Receipt]:
    """What replaced each; messages in a row that one other replaced are one receipt."""
    found: list[Receipt] = []
    for seq in purged:
        by = stream.replacement(seq) if seq in stream.receipts else stream.newest(seq)
        assert by is not None
        if found and found[-1][1] == seq - 1 and found[-1][2] == by:
            found[-1] = found[-1][0], seq, by
        else:
            found.append((seq, seq, by))
    return found


def _as_spans(stream: LogStream, purged: list[int]) -> list[Receipt]:
    """A session that is far behind is told what was replaced, and not by what; also of what comes next.

    If a million messages were replaced while it was away, it need not ask for each window of them.
    """
    spans = spans_of(purged)
    first, last = spans.pop()
    spans.append((first, stream.replaced_from(last, NOTICES * SKIPPED)))
    return [receipt for begin, end in spans for receipt in _skipped(begin, end)]


def _skipped(first: int, last: int) -> list[Receipt]:
    """Messages in a row were replaced; no receipt says more than is believed."""
    return [(start, min(last, start + SKIPPED - 1), 0) for start in range(first, last + 1, SKIPPED)]
