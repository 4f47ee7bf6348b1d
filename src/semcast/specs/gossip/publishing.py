"""What becomes of batches that programs give a logger: each is in the log whole and once, or not at all.

A logger is not asked which batches it has published. Its stream is cut into batches by what these contain:
the publisher says how many messages a batch has, and their CRC.
"""

from collections.abc import Iterator
from itertools import chain

import msgspec

from semcast.core.annotations import Item
from semcast.core.ids import MemberId
from semcast.history.crc import crc32_combine
from semcast.history.events import Event, History
from semcast.history.schema import GONE, Kind
from semcast.specs.gossip.kinds import ASKED, OFFERED, OPENED, PLACED, REFUSED, TAKEN
from semcast.specs.gossip.ledger import Log, ledger_of
from semcast.specs.verdict import Findings, Verdict, unknown

STAGE = "stage"
"""Why a logger refuses a batch of which it has not all pieces."""


class _Published(msgspec.Struct, frozen=True):
    """A batch in a log."""

    key: str
    rows: list[Event]


def _key(row: Event) -> str:
    assert isinstance(row.annotation, Item)
    return row.annotation.item


def _offered(history: History) -> dict[tuple[int, int], str]:
    """Keys of batches, by their numbers of messages and CRCs."""
    return {(row.count, row.order or 0): _key(row) for row in history.events if row.kind is OFFERED}


def _streams(history: History, log: Log) -> Iterator[list[Event]]:
    """What a logger published in each life, as far as it is on the disk of a log, in order."""
    for process in log.lives:
        logged = log.logged.get(process)
        if logged is not None:
            rows = [row for row in history.of(process) if row.kind is Kind.MULTICAST and row.seq in logged]
            whole = [row if row.last in logged else row.only(row.seq) for row in rows]
            yield sorted(whole, key=lambda row: row.seq)


def _batches(
    rows: list[Event], offered: dict[tuple[int, int], str], longest: int
) -> Iterator[_Published | Event]:
    """A stream cut into batches; rows with which none begins are given as they are."""
    place = 0
    while place < len(rows):
        found = _whole(rows, place, offered, longest)
        yield found or rows[place]
        place += 1 if found is None else len(found.rows)


def _whole(
    rows: list[Event], place: int, offered: dict[tuple[int, int], str], longest: int
) -> _Published | None:
    """The batch that begins there, if one does."""
    count = crc = 0
    for end in range(place, len(rows)):
        row = rows[end]
        if count >= longest or row.crc is None or (count and row.seq != rows[end - 1].last + 1):
            return None
        count, crc = count + row.count, crc32_combine(crc, row.crc, row.size)
        key = offered.get((count, crc))
        if key is not None:
            return _Published(key, rows[place : end + 1])
    return None


def _in_logs(history: History) -> Iterator[tuple[Log, list[_Published | Event]]]:
    offered = _offered(history)
    longest = max((count for count, _ in offered), default=0)
    for log in ledger_of(history).logs:
        streams = (_batches(rows, offered, longest) for rows in _streams(history, log))
        yield log, list(chain.from_iterable(streams))


def published_once(history: History) -> Verdict:
    """All that a logger publishes is batches that were offered, whole, and none is in its log twice.

    A logger that lost its disk lost its keys: what its new log has of the former one came from others.
    """
    findings = Findings("published_once")
    for log, found in _in_logs(history):
        first: dict[str, Event] = {}
        for each in found:
            if isinstance(each, Event):
                findings.count(each.count)
                findings.example(f"{log.logger}: a part of a batch, or nothing that was offered", each)
                continue
            row = first.setdefault(each.key, each.rows[0])
            if row is not each.rows[0]:
                findings.count(1)
                findings.example(f"{log.logger} published {each.key} as {row.seq}.., and again", each.rows[0])
    return findings.verdict()


def published_taken(history: History) -> Verdict:
    """A batch of which a publisher was told that it is in the log is there, at the position it was told.

    And a batch of which all pieces were said to be on disk is not refused for want of them.
    """
    findings = Findings("published_taken")
    places = _places(history)
    logs = {
        (log.logger, log.identity): {
            each.key: places.get((log.identity, *_first(each)))
            for each in found
            if not isinstance(each, Event)
        }
        for log, found in _in_logs(history)
    }
    for process in history.processes:
        asked = ""
        for row in history.of(process):
            if row.kind in (OFFERED, ASKED):
                asked = _key(row) if row.kind is ASKED else ""
            elif row.kind is TAKEN and row.order is not None and row.sender is not None:
                position = logs.get((row.sender.name, row.order), {}).get(_key(row))
                if position != row.seq:
                    where = "nowhere" if position is None else f"at {position}"
                    findings.count(1)
                    findings.example(
                        f"{process} was told that {_key(row)} is at {row.seq}, and it is {where}", row
                    )
            elif row.kind is REFUSED and row.level == STAGE and _key(row) == asked:
                findings.count(1)
                findings.example(f"{process}: pieces of {asked} were on disk, and are gone", row)
    return findings.verdict()


def _places(history: History) -> dict[tuple[int, MemberId, int], int]:
    """Of messages that loggers published, their positions in their own logs."""
    found: dict[tuple[int, MemberId, int], int] = {}
    for process in history.processes:
        log = 0
        for row in history.of(process):
            if row.kind is OPENED:
                log = row.order or 0
            elif row.kind is PLACED and row.sender is not None and row.sender.name == process.name:
                assert row.order is not None
                for offset in range(row.count):
                    found[log, row.sender, row.seq + offset] = row.order + offset
    return found


def _first(batch: _Published) -> tuple[MemberId, int]:
    return batch.rows[0].process, batch.rows[0].seq


def published_all(history: History) -> Verdict:
    """Where the run is over, every batch that was offered is in a log, unless its publisher is gone.

    Or unless the disk of a logger was lost, with it what was published and the positions of its readers.
    """
    if not history.info.quiesced:
        return unknown("published_all", "the run was not over")
    ledger = ledger_of(history)
    if ledger.disk_lost:
        return unknown("published_all", "a log was lost")
    findings = Findings("published_all")
    there = {each.key for _, found in _in_logs(history) for each in found if not isinstance(each, Event)}
    names = {
        process.name
        for process in history.processes
        if not any(row.kind in GONE for row in history.of(process))
    }
    for row in history.events:
        if row.kind is OFFERED and row.process.name in names and _key(row) not in there:
            findings.count(1)
            findings.example(f"{_key(row)} is in no log", row)
    return findings.verdict()
