"""The documentation tells the truth: its programs run, its links lead somewhere, its commands exist."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from semcast.cli.main import build_parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def programs() -> list[str]:
    """Those that run alone; the first wants company (`tests/group/test_readme.py`)."""
    found = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf8"), re.DOTALL)
    return [program for program in found if "minimum=3" not in program]


@pytest.mark.parametrize("program", programs())
def test_the_programs_of_the_readme_print_what_it_says(program: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "README.md", "exec"), {})  # noqa: S102
    for line in program.splitlines():
        if "print(" in line and "# " in line:
            expected = line.split("# ")[1].split(": the slow")[0].split(", ...")[0]
            assert expected in printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_in_the_text_exist(page: Path) -> None:
    text = page.read_text(encoding="utf8")
    for name in re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+\.\w+)`", text):
        assert (ROOT / name).exists(), f"{page.name}: {name}"


def test_every_verb_of_the_readme_exists(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf8")
    with pytest.raises(SystemExit):
        build_parser().parse_args(["--help"])
    offered = capsys.readouterr().out
    for verb in set(re.findall(r"`semcast (\w+)", text)):
        assert verb in offered


def test_the_walk_through_a_stack_quotes_what_is_there() -> None:
    """Each block of code stands, word for word, in the file that was named last."""
    text = (ROOT / "docs" / "adding-a-stack.md").read_text(encoding="utf8")
    source = ""
    quoted = 0
    for name, block in re.findall(r"`(tests/toy/\w+\.py)`|```python\n(.*?)```", text, re.DOTALL):
        if name:
            source = (ROOT / name).read_text(encoding="utf8")
        else:
            assert block in source, block
            quoted += 1
    assert quoted >= 8
