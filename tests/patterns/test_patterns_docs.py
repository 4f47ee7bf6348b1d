"""The programs of docs/patterns.md run, one after the other, and print what it says."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "patterns.md"


def test_the_examples_print_what_the_page_says() -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf8"), re.DOTALL)
    names: dict[str, object] = {}
    for program in programs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, PAGE.name, "exec"), names)  # noqa: S102
        expected = [line.split("# ")[1] for line in program.splitlines() if line.startswith("print(")]
        found = printed.getvalue().splitlines()
        assert [each.split(":")[0] for each in expected] == found
