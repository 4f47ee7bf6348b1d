"""Daemons and their clients are killed, stopped and started again; what all recorded is judged."""

from pathlib import Path

import pytest

from semcast.chaos.families import FAMILIES
from semcast.chaos.faults import Kill, Plan, Stop, draw
from semcast.chaos.network import Loopback
from semcast.chaos.roster import roster
from semcast.chaos.supervisor import Case, run
from semcast.cli.chaos import say
from semcast.specs import CALLS, Status

DAEMON = FAMILIES.of("daemon")
NAMES = ("a", "b", "c")
CLIENTS = DAEMON.client_names(NAMES)


def test_every_program_has_a_daemon() -> None:
    members = list(roster(DAEMON, draw(1, NAMES, 10, cuts=False, clients=CLIENTS)))
    found = [(each.program, each.host) for each in members]
    assert found[:6] == [
        ("roams", "a"),
        ("answers", "b"),
        ("publishes", "c"),
        ("sleeps", "a"),
        ("roams", "b"),
        ("answers", "c"),
    ]
    assert found[6:] == [("serves", "a"), ("serves", "b"), ("serves", "c")]


def test_processes_are_daemons_and_clients_and_the_network_is_between_daemons() -> None:
    plans = [draw(seed, NAMES, 120, cuts=True, clients=CLIENTS) for seed in range(5)]
    for plan in plans:
        killed = {name for fault in plan.processes if isinstance(fault, Kill) for name in fault.down}
        assert killed & {*NAMES}
        assert killed & {*CLIENTS}
        assert not any("client" in repr(fault) for fault in plan.network)


def test_daemons_and_programs_are_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kill = Kill(at=0.2, down={"a": 0.2, "client2": 0.1})
    stop = Stop(at=0.2, lasts=1.0, names=("b", "client1"))
    plan = Plan(7, ("a", "b"), (), 2.0, (stop,), (kill,), CLIENTS[:4])  # the tracks run side by side
    outcome = run(Case("daemon", {}, 50.0, 30.0), plan, Loopback(), tmp_path, say)
    assert (outcome.stuck, outcome.died) == ((), ()), capsys.readouterr().err
    judged = outcome.judgement
    assert judged.having(Status.VIOLATED) == judged.having(Status.UNKNOWN) == []
    promised = {"lw_settled", "lw_gone", "lw_heard", "lw_purged", "one_fate", *CALLS}
    assert promised <= {each.property for each in judged.findings}
    assert outcome.faults == {"kill": 1, "stop": 1}
    assert judged.crashes == 2, "a daemon and a program, each once, whatever it was in"
    assert judged.deliveries >= 12, "two rounds of marks, of three who send to two who read"
