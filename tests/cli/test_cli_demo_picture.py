"""The picture at the end of the demo: it shows what was seen, and needs nothing but itself."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from semcast.cli.demo import _save
from semcast.demo.poster import Facts, poster
from semcast.demo.supervisor import Process
from semcast.demo.tape import Mark, Sight, Tape

FACTS = Facts(1500, 10, 102, 1480, 8123, 60, 46, 51234)


def tape(*sights: list[Sight]) -> Tape:
    made = Tape([Process("g", f"p{number}") for number in range(5)])
    made.times = [0.25 * number for number in range(len(sights))]
    made.sights = list(sights)
    return made


def drawn(facts: Facts = FACTS) -> str:
    whole = [Sight(100.0, 5)] * 5
    without = [Sight(100.0, 4), Sight(100.0, 4), Sight(0.0, 0), Sight(100.0, 4), Sight(90.0, 4)]
    second = tape(*[whole] * 8, *[without] * 8, *[whole] * 4)
    second.marks = [Mark(2.0, 2, "kill -9"), Mark(3.0, 2, "starts again")]
    return poster(tape(*[whole] * 8), second, facts)


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)  # noqa: S314 (it is ours)


def test_the_picture_says_what_was_measured() -> None:
    words = {each.text for each in parsed(drawn()).iter("{http://www.w3.org/2000/svg}text")}
    said = {"15 times", "8,123", "60 ms", "46 of 46", "102 quotes/s", "1480 quotes/s", "view of 4"}
    assert said | {"p2: kill -9", "p2: starts again"} <= words


def test_a_run_that_was_not_judged_claims_nothing() -> None:
    assert "promises held" not in drawn(FACTS._replace(hold=0))


def test_it_loads_nothing() -> None:
    assert not re.search(r"(?:href|src)=|url\((?!#)|@import", drawn())


def test_a_run_of_one_look_can_be_drawn() -> None:
    one = tape([Sight(0.0, 5)] * 5)
    parsed(poster(one, one, FACTS))


def test_a_folder_that_cannot_be_written_to_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").write_text("a file")
    assert _save(Console(), tmp_path / "out", "<svg/>") is None
    assert "was not written" in capsys.readouterr().out
    assert _save(Console(), tmp_path / "new", "<svg/>") == str(tmp_path / "new" / "demo.svg")
