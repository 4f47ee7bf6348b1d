"""A source takes nothing from others: whoever reads a log, and however far, all of it stays for everybody.

Readers are driven here as Spark drives them: `commit` comes one batch late, and never for the last one.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadMaxRows
from tests.live.test_live_logger import PATIENCE
from tests.pipeline.streams import FORGETS_NOTHING, Desk, desk

from semcast import blocking
from semcast.cli.main import main
from semcast.pipeline.stream.connection import disconnect
from semcast.pipeline.stream.options import Where, source_options, where
from semcast.pipeline.stream.source import LogBatchReader, LogStreamReader, Offset

Rows = list[tuple[int, bytes]]
Readers = Callable[[Desk], LogStreamReader]

EVENTS = 60


class TrimsOnCommit(LogStreamReader):
    """Takes it that what its query is through with is of no use to anybody else."""

    def __init__(self, prices: Desk) -> None:
        super().__init__(_where(prices), source_options({}))
        self._prices = prices

    def commit(self, end: Offset) -> None:
        self._prices.kill()
        keep = str(EVENTS - int(end["position"]))
        assert main(["log", "trim", str(self._prices.folder), "--keep", keep]) == 0
        self._prices.start()


def _where(prices: Desk) -> Where:
    return where({"path": prices.group}, "source")


def real(prices: Desk) -> LogStreamReader:
    return LogStreamReader(_where(prices), source_options({}))


def rows_of(reader: LogStreamReader | LogBatchReader, partitions: Sequence[InputPartition]) -> Rows:
    batches = [batch for partition in partitions for batch in reader.read(partition)]
    columns = [(batch["position"].to_pylist(), batch["payload"].to_pylist()) for batch in batches]
    return [pair for positions, payloads in columns for pair in zip(positions, payloads, strict=True)]


def query(reader: LogStreamReader) -> Rows:
    """All that is there, in batches, as a query reads it."""
    found: Rows = []
    start, before = reader.initialOffset(), None
    while (end := reader.latestOffset(start, ReadMaxRows(20))) != start:
        found += rows_of(reader, reader.partitions(start, end))
        if before is not None:
            reader.commit(before)
        start, before = end, end
    reader.stop()
    return found


def others_have_all(prices: Desk, read: Rows) -> None:
    """After one query: a table, another query, and a member that was away all find what it found."""
    with blocking.log(prices.group, timeout=PATIENCE) as log:
        assert log.ends().first == 0
    table = LogBatchReader(_where(prices), source_options({}))
    assert rows_of(table, table.partitions()) == read
    assert query(real(prices)) == read
    with blocking.subscribe(prices.group, durable="away", ack="explicit") as group:
        messages = (message for batch in group.batches(PATIENCE) for message in batch)
        assert [next(messages).payload for _ in read] == [payload for _, payload in read]


def reads(prices: Desk, readers: Readers) -> Rows:
    """A member begins a session and goes; then there are messages; then a query reads all of them."""
    with blocking.subscribe(prices.group, durable="away", start="all", ack="explicit"):
        pass
    prices.events(0, EVENTS)
    try:
        return query(readers(prices))
    finally:
        disconnect(_where(prices))
        prices.kill()
        prices.start()


@pytest.mark.parametrize("keeping", [(), FORGETS_NOTHING, ("--retention", "stable")])
def test_what_a_query_has_read_stays_for_others(tmp_path: Path, keeping: tuple[str, ...]) -> None:
    with desk(tmp_path / "log", *keeping) as prices:
        read = reads(prices, real)
        assert [payload for _, payload in read] == [b"%d" % number for number in range(EVENTS)]
        others_have_all(prices, read)
        disconnect(_where(prices))


def test_a_source_that_trims_is_caught(tmp_path: Path) -> None:
    with desk(tmp_path / "log", *FORGETS_NOTHING) as prices:
        read = reads(prices, TrimsOnCommit)
        assert len(read) == EVENTS, "the query itself sees nothing of it"
        with pytest.raises(AssertionError):
            others_have_all(prices, read)
