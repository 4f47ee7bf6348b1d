"""A family that is not part of the package does everything that ours do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tests.toy

import semcast
from semcast.cli.main import main
from semcast.extensions import VARIABLE
from semcast.group.settings import resolve
from semcast.history import read_history
from semcast.sim.families import FAMILIES
from semcast.sim.swarm import examine, hunt, patrol, scenario_of
from semcast.specs import properties_for

ROOT = Path(__file__).parents[2]
SEEDS = range(30)


def command(*words: str, folder: Path | None = None) -> str:
    """What a command prints, in a process that knows of the toy only from the environment."""
    env = {**os.environ, VARIABLE: tests.toy.__name__}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH", "")]))
    ran = subprocess.run(
        [sys.executable, "-m", "semcast.cli.main", *words],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_its_swarm_is_clean_and_catches_its_mutant() -> None:
    assert [report.broken for report in patrol("toy", SEEDS) if report.broken] == []
    [(name, caught)] = hunt("toy", SEEDS, list(FAMILIES.of("toy").mutants))
    assert name == "said-once"
    assert caught is not None
    assert any("semantic_sender_reliability" in line for line in caught.broken)


def test_a_seed_means_the_same_for_ever() -> None:
    first, second = (examine(scenario_of("toy", 3)).outcome.history for _ in range(2))
    assert first.events == second.events


def test_a_swarm_on_the_command_line_runs_it_in_other_processes() -> None:
    found = json.loads(command("sim", "swarm", "--stack", "toy", "--seeds", "0..8", "--jobs", "2", "--json"))
    assert found["broken"] == {}
    assert found["mutants"]["said-once"] is not None


def test_a_run_is_recorded_and_checked(tmp_path: Path) -> None:
    words = ["--messages", "50", "--loss", "0.1", "--said-again", "5ms", "--content", "plain"]
    command("sim", "run", "--stack", "toy", *words, "--record", str(tmp_path))
    assert "semantic_sender_reliability" in command("check", str(tmp_path))  # and it exits with 0
    [path] = tmp_path.glob("*.parquet")
    history = read_history(path)
    assert history.info.only.stack == "toy"
    assert "semantic_sender_reliability" in properties_for(history.info.only)


def test_its_flag_is_refused_by_other_stacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "run", "--stack", "ring", "--said-again", "5ms"]) == 2
    assert "--said-again 5ms: for --stack toy, not ring" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"said_again": "5ms"}, "said_again is for stack toy; this is ring"),
        ({"stack": "toy", "order": "total"}, "order is for stack vsync; this is toy"),
        ({"stack": "toy", "said_again": "0ms"}, "more than nothing"),
        ({"stack": "toy", "said_again": "soon"}, "not a duration"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_its_settings_are_checked(given: dict[str, Any], words: str) -> None:
    with pytest.raises(semcast.ConfigurationError, match=words):
        resolve(given)


def test_its_settings_come_from_the_environment_and_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "semcast.toml").write_text('[group]\nstack = "toy"\nsaid_again = "7ms"\n', encoding="utf8")
    found = resolve({}, tmp_path)
    assert isinstance(found, tests.toy.live.ToyGroupSettings)
    assert found.said_again == "7ms"
    monkeypatch.setenv("SEMCAST_SAID_AGAIN", "9ms")
    found = resolve({}, tmp_path)
    assert isinstance(found, tests.toy.live.ToyGroupSettings)
    assert found.said_again == "9ms"


def test_the_scenario_holds_its_settings() -> None:
    scenario = scenario_of("toy", 1)
    assert isinstance(scenario.settings, tests.toy.stack.ToySettings)
    assert msgspec.structs.replace(scenario, settings=None) != scenario
