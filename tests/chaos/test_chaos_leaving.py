"""How long a process may take to leave: counted from when it can hear, however long it takes to start."""

import asyncio
from pathlib import Path

import pytest

from semcast.chaos import supervisor
from semcast.chaos.faults import Plan
from semcast.chaos.network import Loopback
from semcast.chaos.supervisor import Case, Supervisor
from semcast.processes import Child

PROGRAM = """
import json, sys, time
starting, leaving = map(float, sys.argv[1:3])
time.sleep(starting)
print(json.dumps({"event": "begun"}), flush=True)
assert json.loads(sys.stdin.readline()) == {"do": "leave"}
time.sleep(leaving)
"""


async def left(folder: Path, starting: float, leaving: float) -> list[str]:
    """Who is stuck when such a process is asked to leave as soon as it is there."""
    (folder / "program.py").write_text(PROGRAM)
    plan = Plan(seed=1, names=("a",), late=(), seconds=1.0, network=(), processes=())
    case = Case("ring", {}, 1.0, 1.0)
    trial = Supervisor(case, plan, Loopback(), folder, lambda _text: None)
    member = trial.members["a"]
    member.child = Child("program", [str(starting), str(leaving)], member.hear, folder=folder)
    await member.child.start()
    await trial._leave("a")
    return trial.stuck


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_LEAVING", 0.4)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_a_process_that_is_slow_to_start_has_its_time_to_leave(tmp_path: Path) -> None:
    assert asyncio.run(left(tmp_path, 0.8, 0.0)) == []


def test_a_process_that_does_not_leave_is_stuck(tmp_path: Path) -> None:
    stuck = asyncio.run(left(tmp_path, 0.0, 60.0))
    assert [text.split(" within")[0] for text in stuck] == ["a did not leave"]


def test_a_run_that_does_not_begin_says_who_is_stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All were in one view, and one had reported nothing: there was no round of marks to compare with."""
    plan = Plan(seed=1, names=("a",), late=(), seconds=1.0, network=(), processes=())
    trial = Supervisor(Case("ring", {}, 1.0, 1.0), plan, Loopback(), tmp_path, lambda _text: None)
    monkeypatch.setattr(Supervisor, "_together", lambda _self: True)
    trial._note_stuck()
    [stuck] = trial.stuck
    assert stuck.startswith("a (")
    assert "marks" not in stuck
