"""The Spark job: waves of tasks, each of a few seconds of cells.

How long cells take is learnt from those that are done. Two waves are under way at a time, so that the
last task of one does not keep the other cores waiting, and tasks become smaller towards the end, so that all
cores end together. A task that dies takes its wave with it: the wave is then cut in two, again and again,
until the cell that kills its process stands alone.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from uuid import uuid4

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from semcast.pipeline.session import at_once, slots
from semcast.pipeline.sweep.jobtags import cancel, slots_now, tagged, tasks_done
from semcast.pipeline.sweep.spec import PlannedCell
from semcast.pipeline.sweep.worker import (
    FAILED,
    OUTCOMES,
    OUTCOMES_DDL,
    CellOutcome,
    Function,
    as_batch,
    freeze_once,
    run_cells,
)

TASK_SECONDS = 2.0
"""To start a task costs some 40 ms of Spark and of the Python worker."""

SMALLEST_TASK = 0.25
"""Seconds of cells; no core waits longer for the last task."""

TASKS_PER_SLOT = 4
TASKS_LEFT_PER_SLOT = 2
"""A task gets this part of what is left, if that is less than `TASK_SECONDS`."""

CONCURRENT_WAVES = 2
POLL_SECONDS = 1.0
DEATHS = ("Python worker exited unexpectedly", "ExecutorLostFailure")
"""What Spark says when a task took its process with it."""

Chunks = list[list[PlannedCell]]


class Wave(msgspec.Struct, frozen=True):
    """Cells that run as one Spark job, a chunk a task."""

    group: str
    chunks: Chunks

    def cells(self) -> list[PlannedCell]:
        """All of them."""
        return [cell for chunk in self.chunks for cell in chunk]


class Planner:
    """Cuts waves off the cells that are left."""

    def __init__(self, cells: Sequence[PlannedCell], slots: int, partitions: int | None) -> None:
        self._left = deque(cells)
        self.slots = slots
        """How many tasks run at a time; executors may come late, and go."""
        self._partitions = partitions
        self._seconds = 0.0
        self._done = 0

    def learn(self, outcomes: Sequence[CellOutcome]) -> None:
        """Cells took that long."""
        self._seconds += sum(outcome.seconds for outcome in outcomes)
        self._done += len(outcomes)

    def next(self) -> Wave | None:
        """The next wave; before it is known how long cells take, a cell a task."""
        if not self._left:
            return None
        if self._partitions is not None:
            fair = -(-len(self._left) // self._partitions)
            chunks = [self._cut(fair) for _ in range(self._partitions)]
        elif not self._done:
            chunks = [self._cut(1) for _ in range(self.slots)]
        else:
            chunks = [self._cut(self._cells_a_task()) for _ in range(TASKS_PER_SLOT * self.slots)]
        return Wave(uuid4().hex, [chunk for chunk in chunks if chunk])

    def _cells_a_task(self) -> int:
        """As many as keep a core busy for `TASK_SECONDS`; a fair part towards the end."""
        a_second = self._done / max(self._seconds, 1e-6)
        fair = -(-len(self._left) // (TASKS_LEFT_PER_SLOT * self.slots))
        least, most = round(SMALLEST_TASK * a_second), round(TASK_SECONDS * a_second)
        return max(1, min(most, max(fair, least)))

    def _cut(self, size: int) -> list[PlannedCell]:
        return [self._left.popleft() for _ in range(min(size, len(self._left)))]


def run_waves(
    spark: SparkSession,
    function: Function,
    cells: Sequence[PlannedCell],
    *,
    timeout: float,
    save: Callable[[Sequence[CellOutcome]], None],
    progress: Callable[[float], None] = lambda _: None,
    partitions: int | None = None,
) -> None:
    """Run all cells; every wave is given to `save` when it is done.

    Args:
        spark: the session.
        function: the experiment, sent to the executors.
        cells: what to run.
        timeout: seconds that a cell may take.
        save: keeps the outcomes of a wave.
        progress: told how many cells are done, about.
        partitions: cut all cells into so many tasks instead of tasks of a few seconds.
    """
    planner = Planner(cells, slots(spark), partitions)
    runner = Runner(spark, function, timeout)
    done = 0
    with at_once(spark):  # a plan that is made for each wave is not worth compiling
        try:
            while runner.feed(planner):
                for outcomes in runner.finished():
                    save(outcomes)
                    planner.learn(outcomes)
                    done += len(outcomes)
                progress(done + runner.under_way())
                planner.slots = slots_now(spark, planner.slots)
        finally:
            runner.stop()


class Runner:
    """Waves under way, each in a thread of the driver."""

    def __init__(self, spark: SparkSession, function: Function, timeout: float) -> None:
        self._spark = spark
        self._function = function
        self._timeout = timeout
        self._pool = ThreadPoolExecutor(CONCURRENT_WAVES)
        self._running: dict[Future[list[CellOutcome]], Wave] = {}
        self._stopped = False

    def feed(self, planner: Planner) -> bool:
        """Start the waves that there is room for; False if there is nothing left to wait for."""
        while len(self._running) < CONCURRENT_WAVES and (wave := planner.next()) is not None:
            self._running[self._pool.submit(self._run, wave)] = wave
        return bool(self._running)

    def finished(self) -> Iterator[list[CellOutcome]]:
        """The outcomes of waves that are done, after a moment if there are none."""
        for future in wait(self._running, POLL_SECONDS, FIRST_COMPLETED).done:
            del self._running[future]
            yield future.result()

    def under_way(self) -> float:
        """About how many cells of the waves under way are done."""
        return sum(_finished(self._spark, wave) for wave in self._running.values())

    def stop(self) -> None:
        """Give up what is under way."""
        self._stopped = True
        for wave in self._running.values():
            cancel(self._spark, wave.group)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, wave: Wave) -> list[CellOutcome]:
        """One Spark job; where a worker died, its cells in smaller ones."""
        try:
            outcomes = _submit(self._spark, self._function, wave, self._timeout)
        except Exception as error:
            if self._stopped or not any(sign in str(error) for sign in DEATHS):
                raise
            return self._run_apart(wave)
        wanted = [cell.id for cell in wave.cells()]
        assert sorted(outcome.id for outcome in outcomes) == sorted(wanted), "a wave lost cells"
        return outcomes

    def _run_apart(self, wave: Wave) -> list[CellOutcome]:
        cells = wave.cells()
        if len(cells) == 1:
            return [CellOutcome(cells[0].id, FAILED, "the process that ran it died", "{}", 0.0)]
        half = len(cells) // 2
        parts = (Wave(wave.group, [cells[:half]]), Wave(wave.group, [cells[half:]]))
        return [outcome for part in parts for outcome in self._run(part)]


def _submit(spark: SparkSession, function: Function, wave: Wave, timeout: float) -> list[CellOutcome]:
    chunks = wave.chunks

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_once()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield as_batch(list(run_cells(function, chunks[number], timeout)))

    with tagged(spark, wave.group):
        numbers = spark.range(0, len(chunks), 1, len(chunks))
        table = numbers.mapInArrow(task, OUTCOMES_DDL).toArrow()
    return [CellOutcome(**row) for row in table.select(OUTCOMES.names).to_pylist()]


def _finished(spark: SparkSession, wave: Wave) -> float:
    """About how many cells of a wave under way are done."""
    return len(wave.cells()) * min(1.0, tasks_done(spark, wave.group) / len(wave.chunks))
