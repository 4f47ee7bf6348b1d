"""`semcast model`: the figures of Pereira 2000, table 2 and figure 8, from the command line."""

import argparse
import json

import pytest

from semcast.cli import model
from semcast.cli.errors import UsageError


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    model.add_parser(parser.add_subparsers())
    args = parser.parse_args(["model", *words])
    code: int = args.run(args)
    return code


def test_stock_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stock", "--buffer", "10,20,30", "--simulate", "--messages", "40000", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [round(row["purge_ratio"], 2) for row in found["predictions"]] == [0.11, 0.20, 0.27]
    assert [round(row["extra_delay_percent"]) for row in found["predictions"]] == [12, 25, 38]
    just_past = [row for row in found["simulated"] if row["load"] < 1.1]
    assert [(row["n"], row["k"]) for row in just_past] == [(n, k) for n in (10, 20, 30) for k in (n, None)]
    assert all(abs(row["difference"]) <= 0.02 for row in just_past)


def test_frd_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("frd", "--r", "0.25", "--d", "1", "--buffer", "20", "--tr", "50", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["predictions"]
    assert row["throughput"] == pytest.approx(66.6, abs=0.05)
    assert row["consumed"] == 50


def test_reach_limits_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    run("frd", "--r", "1", "--d", "10", "--buffer", "20", "--k", "5", "--json")
    (row,) = json.loads(capsys.readouterr().out)["predictions"]
    assert row["purge_ratio"] == pytest.approx(1 - 0.9**5)


def test_tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    options = ("--tr", "40", "--simulate", "--messages", "2000")
    assert run("frd", "--r", "0.5", "--d", "5", "--buffer", "20", *options) == 0
    printed = capsys.readouterr().out
    assert "0.439" in printed
    assert "71.33" in printed
    assert "simulated" in printed


def test_everything_obsolete_has_no_slowest_receiver(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("frd", "--r", "1", "--d", "1", "--buffer", "5", "--simulate", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["predictions"][0]["tolerated_delay_ms"] is None
    assert found["simulated"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("frd --r 1.5 --d 1 --buffer 20", "r is a share between 0 and 1, not 1.5"),
        ("frd --r nan --d 1 --buffer 20", "r is a share between 0 and 1, not nan"),
        ("frd --r 0.5 --d 0 --buffer 20", "d counts items: at least 1, not 0"),
        ("stock --buffer 0", "--buffer 0: a buffer holds at least 1 message"),
        ("stock --buffer 10,x", "--buffer 10,x: write sizes such as 10,20,30"),
        ("stock --buffer 10 --classes 25:0.5", "the shares of the classes must sum to 1, not 0.5"),
        ("stock --buffer 10 --classes 25", "--classes 25: write items:share"),
        ("stock --buffer 10 --ts inf", "--ts inf: a rate is more than 0"),
        ("stock --buffer 10 --tr 0", "--tr 0: a rate is more than 0"),
        ("stock --buffer 10 --k 0", "--k 0: at least 1"),
        ("stock --buffer 10 --messages 0", "--messages 0: at least 1"),
    ],
)
def test_bad_input_is_named(words: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(*words.split())
