"""The programs of `docs/streaming.md` run as they stand there, on real loggers."""

import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from tests.docs.test_docs_programs import blocks, defined
from tests.pipeline.streams import Desk, desk

PATIENCE = 120.0


def test_the_programs_of_the_page(streaming: SparkSession, prices: Desk, tmp_path: Path) -> None:
    """The first copies large orders until it is stopped; the second copies a table."""
    stream, table = blocks("streaming")
    page = defined(stream + table)
    large = [b"%d" % number * 101 for number in range(3)]
    prices.publish(("a", b"small"), (None, large[0]), ("b", large[1]))
    with desk(tmp_path / "out") as out, desk(tmp_path / "copy") as copy:

        def goes_on() -> None:
            """Another order comes while the query runs; then it is stopped."""
            try:
                _until_logged(out, large[:2])
                prices.publish((None, large[2]))
                _until_logged(out, large)
            finally:
                for query in streaming.streams.active:
                    query.stop()

        other = threading.Thread(target=goes_on)
        other.start()
        page["copy_large_orders"](prices.group, out.group, str(tmp_path / "checkpoint"))
        other.join()
        assert out.logged() == large
        page["copy_table"](out.group, copy.group)
        assert copy.logged() == large


def _until_logged(out: Desk, wanted: list[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while (found := out.logged()) != wanted:
        assert time.monotonic() < end, found
        time.sleep(0.1)
