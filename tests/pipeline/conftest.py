"""One Spark session for all tests of the pipeline, the histories they share, and recordings to read."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline import histories
from tests.pipeline import rings as ring_histories
from tests.pipeline import views as view_histories
from tests.pipeline.agreement import NAMES, Judged
from tests.pipeline.streams import FORGETS_NOTHING, Desk, desk

from semcast.history import History
from semcast.pipeline.data import VARIABLE, data_folder
from semcast.pipeline.session import SMALL_ROWS, at_once, spark_session
from semcast.pipeline.stream import register
from semcast.pipeline.verify import Options, survey, verify


@pytest.fixture(scope="session")
def session() -> SparkSession:
    """For few rows, as the commands have it."""
    return spark_session("semcast tests", master="local[2]", rows_hint=SMALL_ROWS, shuffle_partitions=2)


@pytest.fixture
def spark(session: SparkSession) -> SparkSession:
    """The session, which plans every job once. A command sets that back."""
    session.conf.set("spark.sql.adaptive.enabled", "false")
    return session


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """The session for a few hundred rows: to compile a plan takes longer than to run it."""
    with at_once(spark):
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        yield spark


@pytest.fixture
def streaming(interpreted: SparkSession) -> SparkSession:
    """The session, with the format `semcast`."""
    register(interpreted)
    return interpreted


@pytest.fixture
def prices(tmp_path: Path) -> Iterator[Desk]:
    """A group with a logger that keeps everything."""
    with desk(tmp_path / "in", *FORGETS_NOTHING) as made:
        yield made


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The real traces."""
    folder = data_folder()
    if folder is None or not (folder / "quake-mvd" / "profile.json").exists():
        pytest.skip(f"no recordings in {folder}: set {VARIABLE}")
    return folder


@pytest.fixture(scope="session")
def plain() -> list[History]:
    """Histories of reliable multicast."""
    return histories.plain()


@pytest.fixture(scope="session")
def rings() -> list[History]:
    """Histories of rings."""
    return ring_histories.rings()


@pytest.fixture(scope="session")
def views() -> list[History]:
    """Histories of groups with primary views."""
    return [*view_histories.views(range(90)), *view_histories.simulated(range(3))]


@pytest.fixture(scope="session")
def cut_off() -> list[History]:
    """Histories of reliable multicast whose recordings are cut off."""
    return histories.all_cut_off()


@pytest.fixture(scope="session")
def everything(
    plain: list[History], rings: list[History], views: list[History], cut_off: list[History]
) -> list[History]:
    """All of them: those without views, and those with views."""
    without = [*plain, *cut_off, histories.deep_chain(), histories.without_b()]
    return [*without, *rings, *views, histories.two_groups()]


@pytest.fixture(scope="session")
def judged(
    session: SparkSession, everything: list[History], tmp_path_factory: pytest.TempPathFactory
) -> Judged:
    """What Spark says of all of them by every property, as if they were too large for memory: in one job."""
    assert len({history.info.run for history in everything}) == len(everything)
    folder = histories.write(everything, tmp_path_factory.mktemp("judged"))
    options = Options(NAMES, allow_missing=True, memory_rows=0)
    report = verify(session, survey([folder]), options)
    return Judged(report.verdicts, report.events)
