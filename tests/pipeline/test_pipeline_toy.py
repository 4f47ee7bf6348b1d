"""`verify` judges runs of a family that is not part of the package by what it promises."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.toy.stack import SaidOnce

from semcast.history import write_history
from semcast.pipeline.verify import Options, survey, verify
from semcast.sim.mutants import Mutant
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of
from semcast.specs import Status, check


@pytest.mark.parametrize(("mutant", "sound"), [(None, True), (Mutant(SaidOnce), False)], ids=["toy", "bad"])
def test_verify_and_check_agree_about_toys(
    interpreted: SparkSession, tmp_path: Path, mutant: Mutant | None, sound: bool
) -> None:
    history = simulate(scenario_of("toy", 0), mutant).history
    write_history(history, tmp_path / "history.parquet")
    report = verify(interpreted, survey([tmp_path]), Options())
    assert {each.property: each.status for each in report.verdicts} == {
        each.property: each.status for each in check(history)
    }
    assert all(each.status is Status.HOLDS for each in report.verdicts) is sound
