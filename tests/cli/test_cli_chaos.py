"""`semcast chaos`: what is asked wrongly is refused before anything starts."""

from pathlib import Path

import pytest

from semcast.cli.main import main


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--members", "1"], "--members: 2 to 26"),
        (["--minutes", "0"], "must be positive"),
        (["--set", "order"], "--set order: write NAME=VALUE"),
        (["--set", "nonsense=1"], "--set: no such setting: nonsense"),
        (["--set", "order=total"], "order is for stack vsync; this is ring"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chaos", *words]) == 2
    assert told in capsys.readouterr().err


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old").touch()
    assert main(["chaos", "--loopback", "--out", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
