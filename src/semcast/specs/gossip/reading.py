"""What programs are given that read a log by position: every message once, or told that it is gone.

Readers are not asked what they should have been given, nor loggers what they gave: what is in a log, and
where, is known from what loggers had on disk, and what replaces what from the messages themselves.
"""

from collections.abc import Iterator
from functools import cached_property
from zlib import crc32

import msgspec

from semcast.core.annotations import Item
from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import GONE, Kind
from semcast.specs.gossip.kinds import (
    COLLECT,
    COMPACTED,
    COUNTED,
    EXPIRED,
    GIVEN,
    LIMITS,
    OBSOLETE,
    OPENED,
    PLACED,
    READER,
    SKIPPED,
    STABLE,
    STOPPED,
)
from semcast.specs.gossip.ledger import Ledger, ledger_of
from semcast.specs.verdict import Findings, Verdict, unknown

Which = tuple[str, int]
"""A log: of this logger, with this identity."""


class _Batch(msgspec.Struct, frozen=True):
    """What a reader counted as one batch."""

    counted: Event
    given: list[Event]
    skipped: list[Event]

    @property
    def log(self) -> Which:
        assert self.counted.sender is not None
        assert self.counted.order is not None
        return self.counted.sender.name, self.counted.order

    @property
    def number(self) -> str:
        return _text(self.counted)

    @property
    def positions(self) -> range:
        return range(self.counted.seq, self.counted.seq + self.counted.count)


def _text(row: Event) -> str:
    return row.annotation.item if isinstance(row.annotation, Item) else ""


def _readers(history: History) -> dict[str, list[MemberId]]:
    """Their incarnations, in order."""
    found: dict[str, list[MemberId]] = {}
    for process in sorted(history.processes):
        if any(row.kind is READER for row in history.of(process)):
            found.setdefault(process.name, []).append(process)
    return found


def _batches(rows: list[Event]) -> Iterator[_Batch]:
    given: list[Event] = []
    skipped: list[Event] = []
    for row in rows:
        if row.kind is GIVEN:
            given.append(row)
        elif row.kind is SKIPPED:
            skipped.append(row)
        elif row.kind is COUNTED:
            yield _Batch(row, given, skipped)
            given, skipped = [], []


class _PlacedLog:
    """A log: what has which position, and why messages left it."""

    def __init__(self) -> None:
        self.placed: dict[int, MessageId] = {}
        self.left: dict[MessageId, str] = {}

    @cached_property
    def positions(self) -> dict[MessageId, int]:
        return {message: position for position, message in self.placed.items()}

    def replaced(self, ledger: Ledger) -> set[MessageId]:
        """What something at a later position replaces, directly or through others."""
        relation = ledger.relation
        names = [MessageId(message.process, message.seq) for message in relation.messages]
        latest = [self.positions.get(name, -1) for name in names]
        found: set[MessageId] = set()
        for new in relation.sequence:
            for old in relation.replaced[new]:
                if latest[new] > self.positions.get(names[old], -1):
                    found.add(names[old])
                latest[old] = max(latest[old], latest[new])
        return found


def _logs(history: History) -> dict[Which, _PlacedLog]:
    found: dict[Which, _PlacedLog] = {}
    for process in sorted(history.processes):
        log = _PlacedLog()
        for row in history.of(process):
            if row.kind is OPENED:
                log = found.setdefault((process.name, row.order or 0), _PlacedLog())
            elif row.kind is PLACED and row.sender is not None and row.order is not None:
                for place in range(row.count):
                    log.placed.setdefault(row.order + place, MessageId(row.sender, row.seq + place))
            elif row.kind is COLLECT and row.sender is not None:
                for seq in range(row.seq, row.last + 1):
                    log.left.setdefault(MessageId(row.sender, seq), row.level or "")
    return found


def read_true(history: History) -> Verdict:
    """What a reader is given at a position is the message that the log has there, as it was sent."""
    findings = Findings("read_true")
    logs = _logs(history)
    sent = {
        MessageId(row.process, row.seq): row.crc
        for row in history.events
        if row.kind is Kind.MULTICAST and row.count == 1 and row.crc is not None
    }
    for process in history.processes:
        for batch in _batches(list(history.of(process))):
            placed = logs[batch.log].placed if batch.log in logs else {}
            for row in batch.given:
                assert row.sender is not None
                assert row.order is not None
                name, there = MessageId(row.sender, row.seq), placed.get(row.order)
                if there != name:
                    findings.count(1)
                    findings.example(f"{process} was given {name} at {row.order}, where {there} is", row)
                elif f"{sent.get(name, 0):08x}" != _text(row) and name in sent:
                    findings.count(1)
                    findings.example(f"{process} was given {name} with other contents", row)
    return findings.verdict()


def read_once(history: History) -> Verdict:
    """Batches follow each other without a gap; one that is done again has the same positions.

    And a batch has nothing twice, and nothing of another one.
    """
    findings = Findings("read_once")
    for processes in _readers(history).values():
        before: _Batch | None = None
        for process in processes:
            for batch in _batches(list(history.of(process))):
                problem = _out_of_line(before, batch) or _out_of_range(batch)
                if problem is not None:
                    findings.count(1)
                    findings.example(f"{process}, batch {batch.number}: {problem}", batch.counted)
                before = batch
    return findings.verdict()


def _out_of_line(before: _Batch | None, batch: _Batch) -> str | None:
    if before is None:
        return None
    if batch.log != before.log:
        return "it is of another log than the one before"
    if batch.number == before.number:
        same = batch.positions == before.positions
        return None if same else f"positions {batch.positions}, and before {before.positions}"
    if int(batch.number) != int(before.number) + 1 or batch.positions.start != before.positions.stop:
        return (
            f"begins at {batch.positions.start}, and batch {before.number} ended at {before.positions.stop}"
        )
    return None


def _out_of_range(batch: _Batch) -> str | None:
    there = [row.order for row in batch.given]
    if len(set(there)) < len(there):
        return "a position is there twice"
    beyond = [position for position in there if position not in batch.positions]
    return f"position {beyond[0]} is not of it" if beyond else None


def read_all(history: History) -> Verdict:
    """A reader is given every message of its positions, unless a later one replaces it, or it is told.

    It is told only of what left the log. Where the run is over, it has read all that there is.
    """
    ledger = ledger_of(history)
    if ledger.relation.endless:
        return unknown("read_all", "the obsolescence relation is not an order")
    findings = Findings("read_all")
    logs = _logs(history)
    replaced = {which: log.replaced(ledger) for which, log in logs.items()}
    items = {
        MessageId(message.process, message.seq): message.annotation.item
        for message in ledger.relation.messages
        if isinstance(message.annotation, Item)
    }
    for processes in _readers(history).values():
        for process in processes:
            rows = list(history.of(process))
            prefix = next(_text(row) for row in rows if row.kind is READER)
            unwanted = {name for name, item in items.items() if not item.startswith(prefix)}
            for batch in _batches(rows):
                if batch.log in logs:
                    excused = replaced[batch.log] | unwanted
                    _missing(findings, logs[batch.log], batch, excused)
        if history.info.quiesced:
            _to_the_end(findings, history, ledger, logs, processes)
    return findings.verdict()


def _missing(findings: Findings, log: _PlacedLog, batch: _Batch, excused: set[MessageId]) -> None:
    there = {row.order for row in batch.given}
    lacking = [
        position
        for position in batch.positions
        if position not in there and log.placed.get(position) not in excused
    ]
    told = 0
    for row in batch.skipped:
        told += row.order or 0
        within = [log.placed.get(position) for position in range(row.seq, row.seq + row.count)]
        gone = [name for name in within if name in log.left]
        if len(gone) < (row.order or 0):
            findings.count(1)
            findings.example(f"{row.process} was told that {row.order} were trimmed: {len(gone)} were", row)
    if len(lacking) > told:
        findings.count(len(lacking) - told)
        names = ", ".join(str(log.placed.get(position)) for position in lacking[:3])
        findings.example(f"{batch.counted.process} was not given {names}, and not told", batch.counted)


def _to_the_end(
    findings: Findings,
    history: History,
    ledger: Ledger,
    logs: dict[Which, _PlacedLog],
    processes: list[MemberId],
) -> None:
    rows = list(history.of(processes[-1]))
    over = any(row.kind in (*GONE, STOPPED) for row in rows)
    batches = [batch for process in processes for batch in _batches(list(history.of(process)))]
    if over or not batches:
        return
    last = batches[-1]
    current = [log.identity for log in ledger.logs if log.logger == last.log[0]][-1:]
    if last.log[0] in ledger.running and current == [last.log[1]]:
        end = max(logs[last.log].placed, default=-1) + 1
        if last.positions.stop < end:
            findings.count(1)
            findings.example(f"{processes[-1]} read up to {last.positions.stop} of {end}", last.counted)


def read_kept(history: History) -> Verdict:
    """What leaves a log does so by the rules of the log: not because somebody has read it."""
    findings = Findings("read_kept")
    rules = {EXPIRED: LIMITS, STABLE: STABLE, OBSOLETE: COMPACTED}
    for process in history.processes:
        keeping: list[str] = []
        for row in history.of(process):
            if row.kind is OPENED:
                keeping = (row.level or "").split("+")
            elif row.kind is COLLECT and rules[row.level or ""] not in keeping:
                findings.count(row.count)
                findings.example(f"{process} keeps {'+'.join(keeping)}, and dropped it as {row.level}", row)
    return findings.verdict()


def crc_text(payload: bytes) -> str:
    """The contents of a message, as `given` rows have them."""
    return f"{crc32(payload):08x}"
