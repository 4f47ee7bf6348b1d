"""The programs of docs/domains.md run, and print what it says."""

import contextlib
import io
import re
from pathlib import Path
from secrets import token_hex

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "domains.md"
TEXT = PAGE.read_text(encoding="utf8")
PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def _run(program: str) -> str:
    printed = io.StringIO()
    own = program.replace('"floor"', f'"floor {token_hex(4)}"')
    with contextlib.redirect_stdout(printed):
        exec(compile(own, str(PAGE), "exec"), {"__name__": "docs"})  # noqa: S102
    return printed.getvalue()


def test_the_first_program_prints_one_order() -> None:
    said = TEXT.split("It prints ")[1].split(":")[0]
    assert _run(PROGRAMS[0]).splitlines() == re.findall(r"`([^`]+)`", said)


@pytest.mark.parametrize("program", PROGRAMS[1:])
def test_the_programs_print_what_they_say(program: str) -> None:
    printed = _run(program)
    expected = [line.split("  # ")[1] for line in program.splitlines() if "  # " in line]
    assert expected
    assert printed.splitlines() == expected
