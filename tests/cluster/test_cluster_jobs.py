"""Jobs on a standalone cluster whose workers have disks of their own, come late, and lose executors."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.cluster.standalone import Cluster
from tests.pipeline import histories
from tests.pipeline.agreement import differences, in_memory, said

from semcast.pipeline.failures import ClusterError
from semcast.pipeline.profile.output import write_tables
from semcast.pipeline.profile.profiling import Settings, profiled
from semcast.pipeline.profile.read import read_trace
from semcast.pipeline.session import seen_by_executors, slots
from semcast.pipeline.sweep.spec import Spec, planned
from semcast.pipeline.sweep.sweep import run_sweep
from semcast.pipeline.verify import Options, survey, verify
from semcast.pipeline.verify.forms import Form
from semcast.pipeline.writing import OutputError, write_table
from semcast.sim.experiments import Cell, Result

ROWS = 60_000
KEYS = 5_000


def trace(path: Path) -> tuple[int, int]:
    """Write a trace as text; returns how many of its messages are made obsolete, and its keys."""
    chosen = random.Random(7).choices(range(KEYS), k=ROWS)
    path.write_text("ts,key\n" + "".join(f"{at},item-{key}\n" for at, key in enumerate(chosen)))
    return ROWS - len(set(chosen)), len(set(chosen))


def test_executors_run_the_code_that_the_driver_runs(spark: SparkSession) -> None:
    """They are sent it; what is installed where they run may be another version."""

    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import semcast  # noqa: PLC0415

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [semcast.__file__]})

    found = spark.range(0, 4, 1, 4).mapInArrow(where, "file string").collect()
    assert all(".zip/semcast/" in row["file"] for row in found)


def test_a_worker_that_comes_late_changes_no_figure(
    spark: SparkSession, cluster: Cluster, shared: Path, disk: Path
) -> None:
    """Text is cut into blocks by the number of cores, which grows between two passes over it."""
    obsolete, keys = trace(shared / "trace.csv")
    before = slots(spark)
    read = read_trace(spark, [str(shared / "trace.csv")])
    cluster.add_worker(cores=6)
    end = time.monotonic() + 120
    while slots(spark) == before:
        assert time.monotonic() < end, "the executor of the late worker did not come"
        time.sleep(0.2)
    with profiled(read, Settings(groups="ts", chunk=1000)) as by_operation:
        assert by_operation.streams[0].commits == ROWS
    with profiled(read) as done:
        assert [stream.distances.obsolete for stream in done.streams] == [obsolete]
        write_tables(done, str(disk / "out"))
    assert pq.read_table(disk / "out" / "items.parquet").num_rows == keys
    assert pq.read_table(disk / "out" / "summary.parquet")["made_obsolete"].to_pylist() == [obsolete]
    assert not [path for path in (disk / "out").iterdir() if path.name.startswith(".")]


def test_a_table_that_executors_wrote_to_their_own_disks_is_an_error(spark: SparkSession, disk: Path) -> None:
    with pytest.raises(OutputError, match="0 of 1000 rows are there after writing"):
        write_table(spark.range(1000), str(disk / "large"), driver_rows=10)
    assert write_table(spark.range(1000), str(disk / "small")) == 1000
    assert pq.read_table(disk / "small").num_rows == 1000


def test_files_that_only_the_driver_has_are_named(spark: SparkSession, disk: Path) -> None:
    mine = disk / "mine.parquet"
    mine.touch()
    with pytest.raises(ClusterError, match=r"mine\.parquet: executors do not see this file"):
        seen_by_executors(spark, [mine])


def test_verify_survives_a_lost_executor(spark: SparkSession, cluster: Cluster, shared: Path) -> None:
    runs = [*histories.simulated()][:6] + [histories.small(seed) for seed in range(10)]
    folder = shared / "histories"
    folder.mkdir()
    recorded = survey([histories.write(runs, folder)])
    killed: list[int | None] = []

    def lose_one(step: str) -> None:
        """In the middle: some of what was kept until then goes with it."""
        if step == Form.ORDER.value:
            killed.append(cluster.kill_executor())

    names = ["integrity", "fifo_delivery", "semantic_agreement", "semantic_fifo_completeness"]
    options = Options(names, small_rows=0, memory_rows=0, allow_missing=True)
    report = verify(spark, recorded, options, lose_one)
    assert len(killed) == 1
    assert all(killed)
    assert differences(said(report.verdicts), in_memory(runs, names)) == []


def test_sweep_survives_a_lost_executor(spark: SparkSession, cluster: Cluster, disk: Path) -> None:
    cells = planned("f3", [{"seed": seed} for seed in range(40)])
    killed: list[int | None] = []

    def nap(cell: Cell) -> Result:
        time.sleep(0.2)
        return {"twice": 2 * int(cell["seed"])}

    def lose_one(done: float, _cells: int) -> None:
        if done > 5 and not killed:
            killed.append(cluster.kill_executor())

    summary = run_sweep(spark, Spec("naps", "f3", "", cells, None), disk, progress=lose_one, function=nap)
    assert killed
    assert all(killed)
    assert (summary.ok, summary.failures) == (40, [])
    table = pq.read_table(summary.table).to_pylist()
    assert [row["twice"] for row in table] == [2 * seed for seed in range(40)]
