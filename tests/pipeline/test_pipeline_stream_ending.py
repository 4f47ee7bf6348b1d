"""How a program with a query ends: with the query, with its failure, or with Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.query import StreamingQuery
from tests.pipeline.killing import QUICKLY
from tests.pipeline.streams import Desk

from semcast.pipeline.stream import run_to_end

PATIENCE = 240.0
EXAMPLE = Path(__file__).parents[2] / "examples" / "spark" / "prices.py"


class Query(StreamingQuery):
    """Goes on until it is stopped."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.over = threading.Event()
        self.failure = failure

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        assert self.over.wait(PATIENCE)
        if self.failure is not None:
            raise self.failure
        return None

    def stop(self) -> None:
        self.over.set()


@pytest.fixture
def pythons_signals() -> Iterator[None]:
    """Not those of a session that other tests have made."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_query_that_ends_ends_the_wait() -> None:
    query = Query()
    query.stop()
    run_to_end(query)
    failing = Query(ValueError("no log"))
    failing.stop()
    with pytest.raises(ValueError, match="no log"):
        run_to_end(failing)


def test_an_interrupt_stops_the_query(pythons_signals: None) -> None:
    """What is cancelled by that is no failure."""
    query = Query(ValueError("cancelled"))
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    run_to_end(query)
    assert query.over.is_set()


def test_the_example_ends_on_ctrl_c(prices: Desk, tmp_path: Path) -> None:
    """A terminal interrupts all of its processes: Java, and those that read rows, too."""
    prices.publish(("IBM", b"159.2"))
    said = tmp_path / "said"
    env = os.environ | {"JDK_JAVA_OPTIONS": QUICKLY}
    with said.open("wb") as out:
        program = subprocess.Popen(
            [sys.executable, str(EXAMPLE), prices.group],
            stdout=out,
            stderr=out,
            start_new_session=True,
            env=env,
        )
    try:
        end = time.monotonic() + PATIENCE
        while "159.2" not in said.read_text("utf8", errors="replace"):
            assert program.poll() is None, said.read_text("utf8", errors="replace")
            assert time.monotonic() < end, said.read_text("utf8", errors="replace")
            time.sleep(0.1)
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(PATIENCE) == 0
    finally:
        program.kill()
        program.wait()
    told = said.read_text("utf8", errors="replace")
    assert "KeyboardInterrupt" not in told
    assert "Py4J" not in told
