"""A query from one log into another that is killed with everything around it; as a program: the driver."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.live.test_live_logger import PATIENCE
from tests.pipeline.streams import Desk

from semcast import blocking, split_key

QUICKLY = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java compiles quickly rather than well."""


class Driver:
    """A process that runs the query, again and again on the same checkpoint.

    Args:
        order: what it is to do.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = json.dumps(order)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.pipeline.killing", self._order]
        self._process = subprocess.Popen(command, start_new_session=True)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """With its JVM, and all that this started."""
        assert self._process is not None
        for pid in [*descendants(self._process.pid), self._process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()

    def kill_worker(self) -> bool:
        """One Python process that reads or writes rows."""
        assert self._process is not None
        for pid in reversed(descendants(self._process.pid)):
            if "pyspark" in command_of(pid) and "daemon" in command_of(pid) and not _children(pid):
                os.kill(pid, signal.SIGKILL)
                return True
        return False


def command_of(pid: int) -> str:
    """How a process was started; nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:
            continue
    return found


def descendants(pid: int) -> list[int]:
    """Processes that one has started, and those have, parents first."""
    found = _children(pid)
    return found + [each for child in found for each in descendants(child)]


class Load:
    """Publishes numbers into a group, some hundreds a second, until it is told to stop."""

    def __init__(self, group: str) -> None:
        self.sent = 0
        self._group = group
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        given: dict[str, Any] = {"stack": "gossip", "name": "feed", "receive": False}
        with blocking.join(self._group, **given) as group:
            while not self._stop.is_set():
                for _ in range(50):
                    group.send(b"%d" % self.sent, timeout=PATIENCE)
                    self.sent += 1
                time.sleep(0.1)
            group.send(b"%d" % self.sent, timeout=PATIENCE, logged=True)
            self.sent += 1

    def stop(self) -> int:
        """Returns how many messages there are, all of them on disk."""
        self._stop.set()
        self._thread.join()
        return self.sent


def grown(out: Desk, beyond: int, patience: float) -> int:
    """Wait until a log has more messages than that; returns how many."""
    end = time.monotonic() + patience
    with blocking.log(out.group, timeout=patience) as log:
        while True:
            there = log.ends().next
            if there > beyond:
                return there
            assert time.monotonic() < end, f"{there} messages arrived, and no more"
            time.sleep(0.1)


def judge(out: Desk, sent: int, patience: float) -> None:
    """Every message has arrived, once, and each has a key of its own."""
    grown(out, sent - 1, patience)
    rows = [split_key(payload) for payload in out.logged()]
    counts = Counter(payload for _, payload in rows)
    lost = [number for number in range(sent) if b"%d" % number not in counts]
    twice = [payload for payload, count in counts.items() if count > 1]
    assert (lost[:9], twice[:9], len(counts)) == ([], [], sent)
    keys = {key for key, _ in rows if key is not None}
    assert len(keys) == sent
    assert len({key.query for key in keys}) == 1, "one checkpoint is one query, whoever runs it"


def main() -> None:
    """The driver: until it is killed."""
    from semcast.pipeline.session import SMALL_ROWS, at_once, spark_session  # noqa: PLC0415
    from semcast.pipeline.stream import register  # noqa: PLC0415

    order = json.loads(sys.argv[1])
    spark = spark_session(
        "kills", master=order["master"], rows_hint=SMALL_ROWS, shuffle_partitions=2, conf=order["conf"]
    )
    register(spark)
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    with at_once(spark):  # to compile a plan takes longer than to run it
        rows = spark.readStream.format("semcast").option("maxRowsPerTrigger", "4000").load(order["from"])
        query = (
            rows.repartition(2)
            .select("payload")
            .writeStream.format("semcast")
            .option("checkpointLocation", order["checkpoint"])
            .option("keys", "true")
            .start(order["to"])
        )
        query.awaitTermination()


if __name__ == "__main__":
    main()
