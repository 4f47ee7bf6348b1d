"""The sim, demo and main commands, as a person types them."""

import json
from pathlib import Path

import pytest

from semcast.cli import simulated_demo
from semcast.cli.arguments import duration, seed_range
from semcast.cli.errors import UsageError
from semcast.cli.families.vsync import again
from semcast.cli.main import main
from semcast.history import read_history
from semcast.protocols.vsync import Engine, Order
from semcast.sim.vsync_scenario import Variant


def test_sim_run_records_a_history_that_check_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "sim",
        "run",
        "--stack",
        "s-rm",
        "--slow",
        "20ms",
        "--messages",
        "100",
        "--record",
        str(tmp_path),
    ]
    assert main([*command, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["members"][0]["sent"] == 100
    assert set(figures["properties"].values()) == {"holds"}
    assert read_history(tmp_path / "history.parquet").info.only.stack == "s-rm"
    assert main(["check", str(tmp_path)]) == 0
    assert "semantic_agreement" in capsys.readouterr().out


@pytest.mark.parametrize("stack", ["s-rm", "s-srm", "reliable"])
@pytest.mark.parametrize("network", ["switched", "shared", "routed"])
def test_sim_run_shows_a_table(stack: str, network: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "run", "--stack", stack, "--network", network, "--messages", "30"]) == 0
    shown = capsys.readouterr().out
    assert "p0" in shown
    assert "integrity: holds" in shown


@pytest.mark.parametrize(
    "chosen",
    [
        [],
        ["--order", "causal", "--flush", "all", "--members", "2"],
        ["--order", "total", "--engine", "token", "--uniform", "--senders", "3"],
        ["--order", "total", "--engine", "consensus", "--flush", "coordinator", "--members", "12"],
    ],
)
def test_sim_run_has_every_kind_of_virtual_synchrony(
    chosen: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["sim", "run", "--stack", "vsync", "--messages", "20", "--json", *chosen]
    assert main(command) == 0
    properties = json.loads(capsys.readouterr().out)["properties"]
    assert properties["vs_semantic_view_synchrony"] == "holds"
    assert ("total_order" in properties) == ("total" in chosen)
    assert ("causal_delivery" in properties) == ("causal" in chosen or "total" in chosen)
    assert ("uniform_total_order" in properties) == ("--uniform" in chosen)


def test_sim_run_replays_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.csv"
    rows = "".join(f"t,{seq},{seq / 100},k{seq % 3},20,update\n" for seq in range(50))
    trace.write_text("stream,seq,ts,key,bytes,kind\n" + rows, encoding="utf8")
    assert main(["sim", "run", "--trace", str(trace), "--messages", "40", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["members"][0]["sent"] == 40


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sim", "run", "--slow", "soon"], "not a duration"),
        (["sim", "run", "--senders", "9"], "there are 5 members"),
        (["sim", "run", "--trace", "nowhere.csv"], "nowhere.csv"),
        (["sim", "run", "--buffer", "0"], "--buffer"),
        (["sim", "run", "--rate", "0"], "--rate"),
        (["sim", "run", "--loss", "2"], "--loss"),
        (["sim", "run", "--members", "0"], "--members"),
        (["sim", "run", "--order", "total"], "--order total: for --stack vsync, not s-rm"),
        (["sim", "run", "--stack", "vsync", "--order", "fifo", "--engine", "token"], "--engine token"),
        (["sim", "run", "--stack", "vsync", "--engine", "consensus"], "only --order total"),
        (["sim", "run", "--stack", "vsync", "--members", "12", "--buffer", "8"], "--buffer 8"),
        (["sim", "swarm", "--stack", "ring", "--flush", "all"], "--flush all: for --stack vsync, not ring"),
        (["sim", "swarm", "--stack", "s-rm", "--uniform"], "--uniform"),
        (["sim", "swarm", "--seeds", "5..5"], "empty"),
        (["sim", "swarm", "--seeds", "many"], "not a range"),
        (["check", "nowhere"], "nowhere"),
    ],
)
def test_what_went_wrong_is_said_in_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_swarm_hunts_the_mutants_and_says_which_got_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "swarm", "--seeds", "30..32", "--json"]) == 1, "two seeds do not catch them all"
    found = json.loads(capsys.readouterr().out)
    assert found["broken"] == {}
    assert found["mutants"]["out-of-order"] == 30
    assert None in found["mutants"].values()
    assert main(["sim", "swarm", "--seeds", "30..32", "--no-mutants"]) == 0
    assert "2 seeds, 0 with violations" in capsys.readouterr().out


def test_a_broken_protocol_is_reported_with_the_way_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "swarm", "--seeds", "0..2", "--mutant", "out-of-order", "--jobs", "1"]) == 1
    shown = capsys.readouterr().out
    assert "semcast sim swarm --stack s-rm --seeds 0 --mutant out-of-order" in shown
    assert "fifo_delivery: violated" in shown


def test_a_swarm_of_virtual_synchrony_can_be_held_to_one_kind(capsys: pytest.CaptureFixture[str]) -> None:
    kind = ["--order", "causal", "--flush", "all", "--no-uniform"]
    command = ["sim", "swarm", "--stack", "vsync", *kind, "--jobs", "1"]
    assert main([*command, "--seeds", "0..2", "--no-mutants", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fixed"] == " ".join(kind)
    assert (
        again(Variant(Order.TOTAL, Engine.TOKEN, uniform=True)) == " --order total --engine token --uniform"
    )


def test_the_demo_shows_the_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With three of its seven delays: they differ in nothing else."""
    pytest.importorskip("matplotlib", reason="the chart needs the pipeline extra")
    monkeypatch.setattr(simulated_demo, "DELAYS_MS", (5, 20, 40))
    assert main(["demo", "--simulated", "--json", "--out", str(tmp_path)]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [point["delay_ms"] for point in points] == [5, 20, 40]
    assert (tmp_path / "slow-receiver.png").stat().st_size > 10_000


def test_durations_and_ranges() -> None:
    assert [duration(text) for text in ("20ms", "1.5s", "300us", "2m")] == [
        20_000_000,
        1_500_000_000,
        300_000,
        120_000_000_000,
    ]
    assert seed_range("7") == range(7, 8)
    with pytest.raises(UsageError):
        duration("20")


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert "semcast 0.1" in capsys.readouterr().out
