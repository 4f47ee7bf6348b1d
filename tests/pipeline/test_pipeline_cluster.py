"""What jobs on a cluster rest on, as far as one machine shows it: settings, URIs, output, Spark Connect."""

import json
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.pipeline import histories

from semcast.cli import main as program
from semcast.cli import verify as command
from semcast.cli.errors import JobError
from semcast.cli.spark import spark_failures
from semcast.core import MemberId
from semcast.history import HistoryError, Kind, RunInfo, read_histories, record_crash
from semcast.history.journal import JournalWriter, SentRow
from semcast.pipeline import executors, session, writing
from semcast.pipeline.failures import ClusterError, told
from semcast.pipeline.fetching import fetch
from semcast.pipeline.frames import TEXT, WHOLE, small_frame
from semcast.pipeline.session import at_once, spark_session
from semcast.pipeline.sweep import jobtags
from semcast.pipeline.sweep.spec import Spec, planned
from semcast.pipeline.sweep.sweep import run_sweep, store_of
from semcast.pipeline.verify import Options, Report, Verdict, survey, verify
from semcast.pipeline.verify.batches import over_row_groups
from semcast.pipeline.writing import write_table
from semcast.sim.experiments import Cell, Result
from semcast.specs import Status

WRITING = """
import sys
from pathlib import Path
import pyarrow as pa
from semcast.pipeline import writing
with writing._appearing(Path(sys.argv[1])) as part:
    writing._write(pa.table({"x": [1]}), part)
    print(part, flush=True)
    sys.stdin.read()
"""
A = MemberId("a")
SETTINGS = """
import json
from semcast.pipeline.session import at_once, spark_session
spark = spark_session("settings", master="local[1]", conf={"spark.sql.shuffle.partitions": "7"})
with at_once(spark):
    names = ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.sql.adaptive.enabled")
    print(json.dumps([spark.conf.get(name) for name in names]))
"""


@pytest.fixture
def viewed(spark: SparkSession, tmp_path: Path) -> str:
    """A folder under a scheme that is neither a local one nor known to anything but Hadoop."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    name = f"m{abs(hash(str(tmp_path)))}"
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set(f"fs.viewfs.mounttable.{name}.link./data", f"file://{folder}")
    return f"viewfs://{name}/data"


class TestSettings:
    def test_what_the_user_sets_wins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also over the settings for few rows, and from the variable that Spark's own tools read."""
        monkeypatch.setenv(
            "PYSPARK_SUBMIT_ARGS", "--conf spark.sql.session.timeZone=Asia/Tokyo pyspark-shell"
        )
        asked = [sys.executable, "-c", SETTINGS]
        done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=300)
        assert json.loads(done.stdout) == ["7", "Asia/Tokyo", "false"]

    def test_a_setting_without_a_value_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert program.main(["sweep", "f2", "--conf", "spark.ui.enabled"]) == 2
        assert "--conf spark.ui.enabled: write spark.some.name=value" in capsys.readouterr().err


class TestOutput:
    def test_a_table_at_a_uri_is_counted(self, spark: SparkSession, viewed: str) -> None:
        assert write_table(spark.range(10), f"{viewed}/table") == 10
        assert spark.read.parquet(f"{viewed}/table").count() == 10

    def test_the_driver_writes_small_tables_of_a_cluster(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writing, "in_one_process", lambda _: False)
        for rows in (5, 3):
            assert write_table(spark.range(rows), str(tmp_path / "a table")) == rows
            assert pq.read_table(tmp_path / "a table").num_rows == rows
        assert [path.name for path in tmp_path.iterdir()] == ["a table"]

    def test_a_sweep_at_a_uri_goes_on_with_what_is_missing(
        self, interpreted: SparkSession, viewed: str
    ) -> None:
        """Outcomes are written and read by Spark; of a cell that ran again the good one counts."""

        def figure(cell: Cell) -> Result:
            if cell["seed"] == 2 and not cell.get("mended"):
                raise ValueError("broken")
            return {"twice": 2 * int(cell["seed"])}

        def mended(cell: Cell) -> Result:
            return figure({**cell, "mended": True})

        spec = Spec("seeds", "f3", "", planned("f3", [{"seed": seed} for seed in range(4)]), None)
        first = run_sweep(interpreted, spec, viewed, function=figure, limit=3)
        assert (first.ran, first.left, first.ok) == (3, 1, 2)
        second = run_sweep(interpreted, spec, viewed, function=mended, retry=True)
        assert (second.before, second.ran, second.ok) == (2, 2, 4)
        table = interpreted.read.parquet(f"{viewed}/seeds/table.parquet")
        assert sorted(row["twice"] for row in table.collect()) == [0, 2, 4, 6]
        store = store_of(interpreted, spec, viewed)
        store.clear()
        assert store.outcomes() == {}

    def test_nothing_is_left_of_a_table_whose_writer_is_killed(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", WRITING, str(tmp_path / "table")]
        writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        part = Path(writer.stdout.readline().strip())
        assert part.parent == tmp_path
        assert any(part.iterdir())
        writer.kill()
        writer.communicate()
        end = time.monotonic() + 60
        while list(tmp_path.iterdir()):
            assert time.monotonic() < end, "the folder is still there"
            time.sleep(0.05)

    def test_output_that_cannot_be_written_fails_the_command(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """With a sentence, and not with the exit code of a violation."""
        (tmp_path / "file").touch()
        runs = histories.write([histories.small(1)], tmp_path / "runs")
        for out in (tmp_path / "file" / "out", Path("/proc/out")):
            assert program.main(["verify", str(runs), "--allow-missing", "--out", str(out)]) == 3
            said = capsys.readouterr().err.splitlines()[-1]
            assert said.startswith("semcast verify: [Errno ")
            assert str(out.parent) in said

    def test_a_full_disk_fails_the_command(self, tmp_path: Path) -> None:
        runs = histories.write([histories.small(1)], tmp_path / "runs")
        command = [sys.executable, "-m", "semcast.cli.main", "verify", str(runs), "--allow-missing", "--json"]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=300
            )
        assert (done.returncode, done.stderr) == (3, "semcast verify: [Errno 28] No space left on device\n")

    def test_missing_rows_fail_the_command(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writing, "_rows_in", lambda _folder: 0)
        with pytest.raises(JobError, match="0 of 5 rows are there after writing"), spark_failures():
            write_table(spark.range(5), str(tmp_path / "table"))


class TestInput:
    def test_histories_at_a_uri_are_brought_here(
        self, spark: SparkSession, viewed: str, tmp_path: Path
    ) -> None:
        histories.write([histories.small(1), histories.small(2)], tmp_path / "mounted")
        fetch(spark, viewed, tmp_path / "here")
        assert len(survey([tmp_path / "here"]).runs) == 2

    def test_files_of_two_folders_at_a_uri_may_have_the_same_name(
        self, spark: SparkSession, viewed: str, tmp_path: Path
    ) -> None:
        """None takes the place of another, and marks of crashes come along."""
        for number, folder in enumerate(("one", "one/be lo%20w", "two")):
            info = RunInfo.one(folder, "g", "s-rm", None, (A,), None, uniform=False, quiesced=False)
            inside = tmp_path / "mounted" / folder
            JournalWriter(inside, A, info).append(0, [SentRow(1, 1 + number, 1, None, safe=False)])
            record_crash(inside, A)
        (tmp_path / "mounted" / "two" / "b-0@g.journal").touch()
        fetch(spark, f"{viewed}/*", tmp_path / "here")
        there = read_histories(tmp_path / "here")
        assert {each.info.run: [row.count for row in each.events] for each in there} == {
            "one": [1, 0],
            "one/be lo%20w": [2, 0],
            "two": [3, 0],
        }
        assert {each.events[-1].kind for each in there} == {Kind.CRASH}
        assert {each.info.run: each.info.cut_off for each in there if each.info.cut_off} == {
            "two": (MemberId("b"),)
        }

    def test_executors_that_see_another_file_are_told(self, spark: SparkSession, tmp_path: Path) -> None:
        """Two machines may have two files of one name, and an executor that comes late another one still."""
        file = histories.write([histories.small(1)], tmp_path) / "small-1.parquet"
        size = file.stat().st_size
        executors.look_for(spark, {str(file): size}, tasks=2)
        with pytest.raises(ClusterError, match=rf"parquet: has {size + 1} bytes, and {size} where executors"):
            executors.look_for(spark, {str(file): size + 1}, tasks=2)
        with pytest.raises(ClusterError, match=r"nothing: executors do not see this file"):
            executors.look_for(spark, {str(tmp_path / "nothing"): 1}, tasks=2)
        told = over_row_groups(spark, [file], iter, pa.schema([("file", pa.string())]))
        file.write_bytes(b"another")
        with (
            pytest.raises(JobError, match=rf"parquet: has {size} bytes, and 7 where an executor"),
            spark_failures(),
        ):
            told.collect()

    def test_no_history_at_a_uri(self, spark: SparkSession, viewed: str, tmp_path: Path) -> None:
        with pytest.raises(HistoryError, match="viewfs://"):
            fetch(spark, f"{viewed}/nothing", tmp_path / "here")
        with pytest.raises(HistoryError, match=r"no .*parquet"):
            fetch(spark, viewed, tmp_path / "there")


def test_failures_are_told_in_a_sentence() -> None:
    for said, sentence in {
        "ModuleNotFoundError: No module named 'semcast'": "no module 'semcast': set PYSPARK_PYTHON",
        'IOException: Cannot run program "python3.99"': "no program 'python3.99': set PYSPARK_PYTHON",
        "Job aborted: ExecutorLostFailure (executor 1 exited)": "an executor was lost",
        "SparkException: Checkpoint block rdd_12_0 not found!": "an executor was lost",
    }.items():
        assert sentence in told(RuntimeError(f"{said}\n\tat org.apache.spark.Some.thing"))
    assert told(RuntimeError("a\n\tat b\nCaused by: c\n\tat d")) == "c"


def test_the_archive_has_all_code_and_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert program.main(["pipeline", "package", str(tmp_path / name / "semcast.zip")]) == 0
    one, two = (tmp_path / name / "semcast.zip" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    asked = [sys.executable, "-c", "import semcast.pipeline.verify.job as j; print(j.__file__)"]
    found = subprocess.run(
        asked, env={"PYTHONPATH": str(one)}, capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.startswith(str(one))
    assert "semcast/py.typed" in zipfile.ZipFile(one).namelist()
    submitted = subprocess.run(
        [sys.executable, tmp_path / "one" / "semcast_submit.py", "pipeline", "--help"],
        env={"PYTHONPATH": str(one)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "package" in submitted.stdout
    assert program.main(["pipeline", "package", str(tmp_path / "semcast.tar")]) == 2


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--strict"], 1)])
def test_strict_makes_unknown_a_failure(
    options: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = Verdict("run", "semantic_validity", Status.UNKNOWN, detail="the run was not over")
    monkeypatch.setattr(command, "_report", lambda _args: Report({}, 1, [unknown]))
    assert program.main(["verify", "somewhere", "--json", *options]) == code
    assert json.loads(capsys.readouterr().out)["unknown"] == 1


class TestWithoutAContext:
    """A Spark Connect client has no `sparkContext`, and cannot tell the types of an empty table."""

    @pytest.fixture
    def client(self, interpreted: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
        def context(spark: SparkSession) -> object:
            # Spark's own code is another one there.
            assert not sys._getframe(1).f_globals["__name__"].startswith("semcast"), "a client has none"
            return spark._sc

        made = SparkSession.createDataFrame

        def typed(spark: SparkSession, data: object, schema: object = None, **options: object) -> object:
            assert not (isinstance(data, pa.Table) and schema is None and not data.num_rows)
            return made(spark, data, schema, **options)  # type: ignore[call-overload]

        for module in (executors, session, jobtags):
            monkeypatch.setattr(module, "is_connect", lambda _spark: True)
        monkeypatch.setattr(SparkSession, "sparkContext", property(context))
        monkeypatch.setattr(SparkSession, "createDataFrame", typed)
        return interpreted

    def test_sweep(self, client: SparkSession, tmp_path: Path) -> None:
        cells = planned("f3", [{"seed": seed, "messages": 50} for seed in range(6)])
        assert run_sweep(client, Spec("few", "f3", "", cells, None), tmp_path).ok == 6

    @pytest.mark.parametrize("rows", [0, 200_000])
    def test_verify(self, client: SparkSession, tmp_path: Path, rows: int) -> None:
        histories.write([histories.small(seed) for seed in range(3)], tmp_path)
        options = Options(["integrity", "fifo_delivery"], allow_missing=True, small_rows=rows, memory_rows=0)
        assert len(verify(client, survey([tmp_path]), options).verdicts) == 6

    def test_an_empty_table(self, client: SparkSession) -> None:
        frame = small_frame(client, {"name": TEXT, "number": WHOLE}, [])
        assert (frame.columns, frame.count()) == (["name", "number"], 0)

    def test_without_the_client_the_error_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "grpc", None)
        with pytest.raises(ClusterError, match=r"pip install 'pyspark\[connect\]'"):
            spark_session("client", master="sc://localhost:1")


class TestWaiting:
    """What the driver does while no executor answers."""

    def test_a_job_that_begins_after_it_was_given_up_is_given_up(
        self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Spark cancels the jobs that it knows. The first time it did not know ours yet."""
        given_up = threading.Semaphore(0)

        def ask(_spark: SparkSession) -> str | None:
            for _ in range(2):
                given_up.acquire()
            raise PySparkException("cancelled")

        monkeypatch.setenv("SEMCAST_SPARK_WAIT", "0")
        monkeypatch.setattr(executors, "_ask", ask)
        monkeypatch.setattr(SparkContext, "cancelAllJobs", lambda _context: given_up.release())
        said: list[str] = []
        with pytest.raises(ClusterError, match="no executor answered for 0 s: the cluster has"):
            executors.probe(spark, said.append)
        assert len(said) == 1

    def test_nobody_at_the_address(self) -> None:
        with pytest.raises(ClusterError, match=r"^spark://127\.0\.0\.1:9,127\.0\.0\.1:10: no Spark master"):
            spark_session("nobody", master="spark://127.0.0.1:9,127.0.0.1:10")
        with pytest.raises(ClusterError, match="the address of a master is spark://host:port"):
            spark_session("nobody", master="spark://somewhere")


def test_settings_for_few_rows_are_set_back(spark: SparkSession) -> None:
    name = "spark.sql.codegen.wholeStage"
    before = spark.conf.get(name)
    with at_once(spark):
        assert spark.conf.get(name) == "false"
    assert spark.conf.get(name) == before
