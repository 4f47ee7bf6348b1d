"""The programs of `docs/streaming.md` run as they stand there, on real loggers."""

import asyncio
import contextlib
import io
import threading
import time
from pathlib import Path
from uuid import UUID

from pyspark.sql import SparkSession
from tests.docs.test_docs_programs import blocks, defined
from tests.pipeline.streams import Desk, desk

from semcast import Repeats, RowKey, put_key

PATIENCE = 120.0


def test_the_programs_of_the_page(streaming: SparkSession, prices: Desk, tmp_path: Path) -> None:
    """The first copies large orders until it is stopped; the second copies a table."""
    stream, table, _ = blocks("streaming")
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


def test_a_member_skips_repeats_as_the_page_says(prices: Desk) -> None:
    """The program that publishes starts again, and does not know that its last batch was published."""
    orders = defined(blocks("streaming")[2])["orders"]
    row = [(None, put_key(RowKey(UUID(int=7), 3, number, 0), b"%d" % number)) for number in range(3)]
    prices.publish(*row[:2])
    prices.publish(*row, (None, b"159.2"))
    repeats = Repeats()

    async def reads() -> None:
        program = asyncio.create_task(orders(prices.group, repeats))
        async with asyncio.timeout(PATIENCE):
            while repeats.stats.rows + repeats.stats.without_key < 6:
                await asyncio.sleep(0.01)
        program.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await program

    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        asyncio.run(reads())
    rows = [f"batch 3, row {number} b'{number}'" for number in range(3)]
    assert sorted(told.getvalue().splitlines()) == [*rows, "nobody's row b'159.2'"]
    assert repeats.stats.repeated == 2


def _until_logged(out: Desk, wanted: list[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while (found := out.logged()) != wanted:
        assert time.monotonic() < end, found
        time.sleep(0.1)
