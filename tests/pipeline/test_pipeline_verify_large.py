"""What is judged in memory of small runs has forms for large ones, which say the same."""

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.agreement import Said, in_memory, said, statuses
from tests.pipeline.histories import recut, scatter, write
from tests.pipeline.views import simulated, views

from semcast.pipeline.verify import Options, survey, verify
from semcast.pipeline.verify.large import FORMS_OF_LARGE_RUNS
from semcast.pipeline.verify.large.positions import TOTAL_ORDER
from semcast.pipeline.verify.large.views import VIEWS
from semcast.specs import Status

pytestmark = pytest.mark.xdist_group("spark")

NAMES = [*VIEWS, *TOTAL_ORDER]


def told(spark: SparkSession, folder: Path, small_rows: int = 100_000) -> Said:
    """What the forms for large runs say of whatever is there."""
    options = Options(NAMES, allow_missing=True, memory_rows=0, small_rows=small_rows)
    report = verify(spark, survey([folder]), options)
    violated = [verdict for verdict in report.verdicts if verdict.status is Status.VIOLATED]
    assert all(verdict.sample and verdict.detail for verdict in violated)
    return said(report.verdicts)


def unlike(found: Said, expected: Said) -> list[object]:
    """Where they contradict each other; of total order without positions they may say nothing."""
    return [
        (key, found[key], status)
        for key, (status, _) in expected.items()
        if found[key][0] != status and not (key[1] in TOTAL_ORDER and found[key][0] == "unknown")
    ]


def test_they_agree_with_the_checkers_in_memory(interpreted: SparkSession, tmp_path: Path) -> None:
    histories = [*views(range(90)), *simulated(range(3))]
    expected = in_memory(histories, NAMES)
    found = told(interpreted, write(histories, tmp_path))
    for name in NAMES:
        assert statuses(expected, name) >= {"holds", "violated"}
        assert statuses(found, name) >= {"holds", "violated"}
    assert unlike(found, expected) == []
    counts = [(key, found[key], expected[key]) for key in expected if key[1] in VIEWS]
    assert all(mine == theirs for _, mine, theirs in counts), "of views every case is counted"


def test_nothing_depends_on_cuts_partitions_or_files(interpreted: SparkSession, tmp_path: Path) -> None:
    """Runs cut otherwise, in several files, their rows in any order; by the plans for many rows."""
    random = Random(11)
    histories = views(range(90, 120))
    for history in histories:
        scatter(recut(history, random), tmp_path / "shuffled", random)
    interpreted.conf.set("spark.sql.shuffle.partitions", "3")
    found = told(interpreted, tmp_path / "shuffled", small_rows=0)
    assert unlike(found, in_memory(histories, NAMES)) == []


def test_total_order_without_positions_cannot_be_told(interpreted: SparkSession, tmp_path: Path) -> None:
    histories = [history for history in views(range(40)) if not any(e.order for e in history.events)]
    options = Options(TOTAL_ORDER, allow_missing=True, memory_rows=0)
    report = verify(interpreted, survey([write(histories, tmp_path)]), options)
    assert any("delivered messages without a position" in verdict.detail for verdict in report.verdicts)
    assert {verdict.status for verdict in report.verdicts} <= {Status.UNKNOWN, Status.HOLDS}


def test_every_property_without_a_form_of_its_own_has_one_for_large_runs() -> None:
    assert set(NAMES) <= FORMS_OF_LARGE_RUNS.keys()
