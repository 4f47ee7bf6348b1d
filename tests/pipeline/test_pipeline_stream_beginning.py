"""Where a query began, and how far it is: what its checkpoint says holds, or the query fails and says why."""

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.pipeline.streams import FORGETS_NOTHING, Desk, collected, desk, payloads, stream

from semcast.cli.main import main
from semcast.pipeline.stream.connection import disconnect
from semcast.pipeline.stream.options import source_options, where
from semcast.pipeline.stream.ranges import Range, ShorterLogError
from semcast.pipeline.stream.source import LogStreamReader


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def forget(checkpoint: Path, kind: str, *batches: int) -> None:
    """As if a driver had been killed before it wrote that of a batch."""
    for batch in batches:
        (checkpoint / kind / f"{batch}").unlink()
        (checkpoint / kind / f".{batch}.crc").unlink(missing_ok=True)


def test_what_is_new_is_new_when_the_query_first_ran(
    streaming: SparkSession, prices: Desk, tmp_path: Path
) -> None:
    """Not when it runs again, be it before its first batch had rows, or was done."""
    prices.events(0, 5)
    frame, checkpoint = stream(streaming, prices.group, start="new"), tmp_path / "a"
    assert collected(frame, checkpoint) == []
    prices.events(5, 5)
    assert payloads(collected(frame, checkpoint)) == numbers(5, 10), "logged between two runs"
    forget(checkpoint, "commits", 0, 1)
    forget(checkpoint, "offsets", 1)
    prices.events(10, 5)
    assert payloads(collected(frame, checkpoint)) == numbers(5, 15), "it was killed in the first batch"


def test_what_a_first_batch_had_and_was_trimmed_is_lost(streaming: SparkSession, tmp_path: Path) -> None:
    """The driver was killed in the first batch: its log begins elsewhere since."""
    with desk(tmp_path / "log", *FORGETS_NOTHING) as prices:
        prices.events(0, 20)
        frame = stream(streaming, prices.group)
        assert len(collected(frame, tmp_path / "a")) == 20
        forget(tmp_path / "a", "commits", 0)
        prices.kill()
        assert main(["log", "trim", str(prices.folder), "--keep", "3"]) == 0
        prices.start()
        with pytest.raises(StreamingQueryException, match="were trimmed before they were read"):
            collected(frame, tmp_path / "a")
        forget(tmp_path / "a", "offsets", 0)
        assert payloads(collected(frame, tmp_path / "a")) == numbers(17, 20), "nothing was planned yet"


def test_a_first_batch_of_another_log_is_refused(
    streaming: SparkSession, prices: Desk, tmp_path: Path
) -> None:
    prices.events(0, 20)
    frame = stream(streaming, prices.group)
    assert len(collected(frame, tmp_path / "a")) == 20
    forget(tmp_path / "a", "commits", 0)
    prices.kill()
    shutil.rmtree(prices.folder)
    prices.start()
    prices.events(0, 9)
    with pytest.raises(StreamingQueryException, match="a position means nothing in another log"):
        collected(frame, tmp_path / "a")


def test_a_first_batch_that_is_done_again_has_the_same_rows(prices: Desk) -> None:
    """Killed in the first batch, which has rows: `new` means another position by then."""
    prices.events(0, 5)
    reader = LogStreamReader(where({"path": prices.group}, "source"), source_options({"start": "new"}))
    start = reader.initialOffset()
    prices.events(5, 5)
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert reader.partitions(start, end) == [Range(str(end["log"]), 5, 10)]
    prices.events(10, 5)
    again = reader.initialOffset()
    assert again["position"] == 15
    assert reader.partitions(again, end) == [Range(str(end["log"]), 5, 10)]
    after = reader.latestOffset(end, reader.getDefaultReadLimit())
    assert reader.partitions(end, after) == [Range(str(end["log"]), 10, 15)]
    disconnect(where({"path": prices.group}, "source"))


def test_an_older_copy_of_a_log_is_refused(streaming: SparkSession, tmp_path: Path) -> None:
    """It is the same log, and gives positions again that the query has read: their messages are others."""
    with desk(tmp_path / "log", *FORGETS_NOTHING) as prices:
        prices.events(0, 5)
        prices.kill()
        shutil.copytree(prices.folder, tmp_path / "copy")
        prices.start()
        prices.events(5, 5)
        frame = stream(streaming, prices.group)
        assert len(collected(frame, tmp_path / "a")) == 10
        prices.kill()
        shutil.rmtree(prices.folder)
        shutil.copytree(tmp_path / "copy", prices.folder)
        prices.start()
        with pytest.raises(StreamingQueryException, match="an older copy of its disk"):
            collected(frame, tmp_path / "a")
        forget(tmp_path / "a", "commits", 0)
        with pytest.raises(StreamingQueryException, match="an older copy of its disk"):
            collected(frame, tmp_path / "a")
        assert payloads(collected(frame, tmp_path / "b")) == numbers(0, 5)


def test_a_position_that_is_still_to_come_is_waited_for(prices: Desk) -> None:
    prices.events(0, 5)
    which = where({"path": prices.group}, "source")
    reader = LogStreamReader(which, source_options({"start": "7"}))
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    found = reader.latestOffset(start, limit)
    assert (found["position"], found["began"]) == (7, 7)
    prices.events(5, 5)
    assert reader.latestOffset(found, limit)["position"] == 10
    with pytest.raises(ShorterLogError, match="ends at position 10, and this query has positions up to 12"):
        reader.latestOffset({**found, "position": 12}, limit)
    disconnect(which)
