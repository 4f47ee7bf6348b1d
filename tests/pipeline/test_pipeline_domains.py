"""Causal domains in runs that memory does not hold: Spark says what the checkers say."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.isis.test_isis_lives import history_of_lives
from tests.pipeline.agreement import differences, in_memory, said, statuses
from tests.pipeline.histories import named, write
from tests.specs.domain_histories import shuffled, wander
from tests.specs.domain_scripts import domain
from tests.specs.test_specs_domains import BROKEN, SECTION_6_5, SOUND

from semcast.core import MemberId
from semcast.history import History, read_histories
from semcast.pipeline.verify import Options, domains, survey, verify
from semcast.pipeline.verify.forms import Form
from semcast.pipeline.verify.forms import named as of_form
from semcast.specs import DOMAINS, Status
from semcast.specs.domains import stream

DRAWN = 60


def recorded() -> list[History]:
    """By hand, sound and broken, and drawn."""
    scripts = [*SOUND, *(script for _, _, script in BROKEN)]
    histories = [named(domain(script), f"script-{number}") for number, script in enumerate(scripts)]
    histories.append(named(domain("p: conservative F1?"), "nothing"))
    histories.append(named(domain(SECTION_6_5), "gap"))
    histories.append(named(domain(SECTION_6_5.replace("r: ", "r: full1 ")), "beyond"))
    histories.append(named(history_of_lives(), "lives"))
    histories += [
        named(domain(script, cut_off="p", seed=None), f"cut-off-{number}")
        for number, script in enumerate(scripts[:12])
    ]
    for seed in range(DRAWN):
        drawn = wander(seed)
        histories.append(named(shuffled(drawn, Random(seed)) if seed % 2 else drawn, f"drawn-{seed}"))
    return [history for history in histories if history.events]


def test_domains_are_judged_as_in_memory(
    interpreted: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domains, "_STRETCH", 8)  # runs are short
    histories = recorded()
    expected = in_memory(histories, list(DOMAINS))
    for name in DOMAINS:
        assert statuses(expected, name) >= {"holds", "violated", "unknown"}, name
    options = Options(list(DOMAINS), allow_missing=True, memory_rows=0)
    verdicts = verify(interpreted, survey([write(histories, tmp_path)]), options).verdicts
    assert differences(said(verdicts), expected) == []
    assert all(verdict.sample for verdict in verdicts if verdict.status is Status.VIOLATED)


def test_the_trading_floor_is_recorded_and_verified(interpreted: SparkSession, tmp_path: Path) -> None:
    """The example runs live, with a program for each."""
    floor = Path(__file__).parents[2] / "examples" / "trading_floor.py"
    command = [sys.executable, str(floor), str(tmp_path / "live")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    histories = read_histories(tmp_path / "live")
    (tmp_path / "stored").mkdir()
    options = Options(allow_missing=True, memory_rows=0)
    verdicts = verify(interpreted, survey([write(histories, tmp_path / "stored")]), options).verdicts
    assert {verdict.property for verdict in verdicts} == set(DOMAINS)
    told = {verdict.property: verdict.status for verdict in verdicts}
    told.pop("domain_flush")  # the clocks of live programs cannot be compared
    assert set(told.values()) == {Status.HOLDS}, verdicts


def test_every_property_of_domains_has_a_form() -> None:
    """A form that does not know a name would find nothing wrong with it."""
    assert set(of_form(Form.DOMAINS)) == set(DOMAINS) == domains.JUDGED


def test_more_rows_that_wait_than_can_be_held_cannot_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_WAITING", 2)
    history = domain("p: Va1=pq a<q1 a<q2 a<q3\nq: Va1=pq a>1 a>2 a>3")
    streaming = stream.Streaming(history.info, history.processes)
    *events, last = history.of(MemberId("p"))
    for event in events:
        streaming.take(event)
    with pytest.raises(stream.TooManyWaitError, match="3 rows wait"):
        streaming.take(last)
