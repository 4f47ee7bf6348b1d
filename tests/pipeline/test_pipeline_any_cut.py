"""No verdict depends on how runs are cut, on the order of rows and files, or on plans and partitions."""

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.agreement import NAMES, contradictions, differences, in_memory, said, statuses
from tests.pipeline.histories import BRIEF, planted, recut, scatter, simulated, small, write
from tests.pipeline.rings import otherwise_cut
from tests.pipeline.views import views

from semcast.pipeline.verify import FORMS, Options, batches, survey, verify
from semcast.pipeline.verify.forms import Form, named


def test_nothing_depends_on_cuts_partitions_or_files(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs cut otherwise, in several files, their rows in any order; by the plans for many rows."""
    random = Random(7)
    # Contents are lost where runs are cut, and so is what tells that they were changed.
    unchanged = [history for history in simulated(1, BRIEF[:1]) if "changed-payload" not in history.info.run]
    some = [
        *random.sample([*unchanged, *planted(unchanged)], 6),
        *(small(seed) for seed in range(95, 107)),
        *otherwise_cut(random),
        *views(range(90, 104)),
    ]
    folder = tmp_path / "shuffled"
    for history in some:
        scatter(recut(history, random), folder, random)
    interpreted.conf.set("spark.sql.shuffle.partitions", "3")
    monkeypatch.setattr(batches, "_TASKS_A_CORE", 2)
    interpreted.conf.set("spark.sql.files.openCostInBytes", "2000")  # as large as they are: a few in a task
    files = sorted(folder.iterdir(), reverse=True)
    options = Options(NAMES, allow_missing=True, small_rows=0, memory_rows=0)
    found, expected = said(verify(interpreted, survey(files), options).verdicts), in_memory(some, NAMES)
    interpreted.conf.unset("spark.sql.files.openCostInBytes")
    exact = [key for key in expected if key[1] in (*FORMS, *named(Form.VIEWS))]
    assert differences({key: found[key] for key in exact}, {key: expected[key] for key in exact}) == []
    assert contradictions(found, expected) == []


def test_plans_that_are_compiled(spark: SparkSession, tmp_path: Path) -> None:
    """As for many rows, in several tasks; the plans for few rows are interpreted."""
    assert spark.conf.get("spark.sql.codegen.wholeStage") == "true"
    histories = [small(seed) for seed in range(12)]
    names = ["integrity", "fifo_delivery", "semantic_agreement"]
    recorded = survey([write(histories, tmp_path / "runs")])
    report = verify(spark, recorded, Options(names, allow_missing=True, small_rows=0))
    expected = in_memory(histories, names)
    assert all(statuses(expected, name) >= {"holds", "violated"} for name in names)
    assert differences(said(report.verdicts), expected) == []
