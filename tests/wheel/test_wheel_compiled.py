"""What only a compiled wheel can get wrong; `make test-wheel` installs one and runs this."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tools.wheel.modules import to_compile

from semcast.bench import Case, measure

SOURCE = Path(__file__).parents[2] / "src"
RUNS = ("s-rm:3", "s-rm:7", "s-srm:5", "ring:2", "ring:11", "vsync:1", "vsync:4", "isis:1", "rpbcast:2")
HISTORY = """
import hashlib, sys
import msgspec
from semcast.protocols.ring import rotation
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of

print(rotation.__file__.endswith(".so"))
for run in sys.argv[1:]:
    stack, seed = run.split(":")
    outcome = simulate(scenario_of(stack, int(seed)))
    seen = [outcome.history.events, outcome.steps, outcome.ended, outcome.stacks]
    seen = msgspec.msgpack.encode(seen, enc_hook=repr)  # the kind of an event is no value of msgspec's
    print(run, len(outcome.history.events), hashlib.blake2b(seen).hexdigest())
"""

pytestmark = pytest.mark.skipif("SEMCAST_TEST_COMPILED" not in os.environ, reason="make test-wheel does this")


def histories(**environment: str) -> list[str]:
    command = [sys.executable, "-c", HISTORY, *RUNS]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_what_is_imported_is_compiled() -> None:
    for path in to_compile(SOURCE):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        assert str(import_module(name).__file__).endswith(".so"), name


def test_nothing_of_the_compiler_is_needed_to_run_it() -> None:
    """The wheel says what it requires, and mypy is not among it."""
    hidden = "import sys; sys.modules.update(mypy_extensions=None, mypyc=None, mypy=None, librt=None)"
    script = f"{hidden}; import semcast; from semcast.protocols.vsync import stack; print(stack.__file__)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip().endswith(".so")


@pytest.mark.parametrize(("stack", "order"), [("ring", "agreed"), ("ring", "safe"), ("vsync", "total")])
def test_a_live_group_delivers(stack: str, order: str) -> None:
    case = Case(stack=stack, order=order, senders=2, count=2000)
    assert [each.delivered for each in measure(case)] == [2002] * 3  # each sender says that it ends


def test_the_same_seed_gives_the_same_history_compiled_or_not() -> None:
    compiled = histories()
    pure = histories(PYTHONPATH=str(SOURCE))
    assert (compiled[0], pure[0]) == ("True", "False")
    assert compiled[1:] == pure[1:]
    assert len(compiled) == 1 + len(RUNS)
