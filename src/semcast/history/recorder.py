"""The recorder: one tuple per call while the run goes on, everything else when it is over."""

from itertools import pairwise

import msgspec

from semcast.core.annotations import Annotation
from semcast.core.events import Purged
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch
from semcast.core.views import View
from semcast.history.events import Event, History, RunInfo
from semcast.history.schema import NON_PRIMARY, PRIMARY, Kind

# Looked up once: the hot path uses them.
_MULTICAST, _DELIVER, _PURGE, _BUFFER = Kind.MULTICAST, Kind.DELIVER, Kind.PURGE, Kind.BUFFER

_Row = tuple[
    Kind, Nanos, MemberId, MemberId | None, int, int, int, Annotation | MessageId | View | str | None
]
"""kind, at, process, sender, seq, count, size, and what only this kind has."""


class Recorder:
    """Collects the events of one run.

    It keeps no payloads. Events of one process are given in their local order.

    >>> from semcast.core import MemberId
    >>> from semcast.core.messages import batch_of
    >>> a, b = MemberId("a"), MemberId("b")
    >>> info = RunInfo("demo", "g", "reliable", None, (a, b), 40, uniform=False, quiesced=False)
    >>> recorder = Recorder(info)
    >>> batch = batch_of(a, 1, [b"x", b"y"])
    >>> recorder.multicast(0, a, batch)
    >>> recorder.deliver(5, b, batch)
    >>> for event in recorder.close(quiesced=True).events:
    ...     print(event)
    a[0] at 0 ns: multicast (a,1..2)
    b[0] at 5 ns: deliver (a,1..2)
    """

    __slots__ = ("_append", "_info", "_marks", "_rows")

    def __init__(self, info: RunInfo) -> None:
        self._info = info
        self._rows: list[_Row] = []
        self._append = self._rows.append
        self._marks: dict[MemberId, int] = {}

    def view(self, at: Nanos, process: MemberId, view: View) -> None:
        """`process` installed a view."""
        self._append((Kind.VIEW, at, process, None, 0, 0, 0, view))

    def multicast(self, at: Nanos, process: MemberId, batch: Batch) -> None:
        """`process` multicast its own messages."""
        self._append(
            (
                _MULTICAST,
                at,
                process,
                batch.sender,
                batch.first,
                len(batch.payloads),
                batch.size,
                batch.annotation,
            )
        )

    def deliver(self, at: Nanos, process: MemberId, batch: Batch) -> None:
        """The application at `process` got these messages."""
        self._append(
            (_DELIVER, at, process, batch.sender, batch.first, len(batch.payloads), batch.size, None)
        )

    def purge(self, at: Nanos, process: MemberId, purged: Purged) -> None:
        """`process` gave up a message for another."""
        self._append((_PURGE, at, process, purged.id.sender, purged.id.seq, 1, 0, purged.by))

    def buffer(self, at: Nanos, process: MemberId, messages: int) -> None:
        """The buffers of `process` hold this many messages; a row only if they never held more."""
        if messages > self._marks.get(process, 0):
            self._marks[process] = messages
            self._append((_BUFFER, at, process, None, 0, messages, 0, None))

    def crash(self, at: Nanos, process: MemberId) -> None:
        """`process` stopped for good."""
        self._append((Kind.CRASH, at, process, None, 0, 0, 0, None))

    def recover(self, at: Nanos, process: MemberId) -> None:
        """`process` started again."""
        self._append((Kind.RECOVER, at, process, None, 0, 0, 0, None))

    def apply(self, at: Nanos, process: MemberId, sender: MemberId, digest: str) -> None:
        """At `process` the state that `sender` owns now has this digest."""
        self._append((Kind.APPLY, at, process, sender, 0, 0, 0, digest))

    def close(self, *, quiesced: bool) -> History:
        """What was recorded so far."""
        rows_of: dict[MemberId, list[_Row]] = {}
        for row in self._rows:
            rows_of.setdefault(row[2], []).append(row)
        group = self._info.group
        events = [
            _event(group, index, row)
            for process in sorted(rows_of)
            for index, row in enumerate(_merged(rows_of[process]))
        ]
        return History(msgspec.structs.replace(self._info, quiesced=quiesced), events)


def _merged(rows: list[_Row]) -> list[_Row]:
    """The rows of one process, neighbours joined where that loses nothing."""
    merged = rows[:1]
    for before, row in pairwise(rows):
        if _continues(before, row):
            kind, at, process, sender, seq, count, size, extra = merged[-1]
            merged[-1] = (kind, at, process, sender, seq, count + row[5], size + row[6], extra)
        else:
            merged.append(row)
    return merged


def _continues(before: _Row, row: _Row) -> bool:
    """Whether `row` goes on where `before` ends: next messages, same moment, nothing else to say."""
    return (
        row[:4] == before[:4]
        and row[3] is not None
        and row[4] == before[4] + before[5]
        and row[7] is None
        and before[7] is None
    )


def _event(group: str, index: int, row: _Row) -> Event:
    kind, at, process, sender, seq, count, size, extra = row
    if extra is None:
        return Event(process, index, at, kind, group, sender, seq, count, size)
    if isinstance(extra, View):
        level = PRIMARY if extra.primary else NON_PRIMARY
        return Event(process, index, at, kind, group, view=extra.id, level=level, members=extra.members)
    if isinstance(extra, MessageId):
        return Event(process, index, at, kind, group, sender, seq, count, by=extra)
    if isinstance(extra, str):
        return Event(process, index, at, kind, group, sender, digest=extra)
    return Event(process, index, at, kind, group, sender, seq, count, size, extra)
