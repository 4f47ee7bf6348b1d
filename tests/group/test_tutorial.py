"""Every program of the tutorial runs, and prints what stands below it; so does that of the first page."""

import re
import subprocess
import sys
from pathlib import Path
from secrets import token_hex

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "tutorial.md"
STEPS = re.findall(
    r"^## (\d+)\..*?```python\n(.*?)```\n\n```text\n(.*?)```",
    PAGE.read_text("utf8"),
    re.DOTALL | re.MULTILINE,
)


def test_there_are_ten_steps() -> None:
    assert [number for number, _, _ in STEPS] == [str(number) for number in range(1, 11)]


@pytest.mark.parametrize(("number", "program", "output"), STEPS, ids=[f"step {step[0]}" for step in STEPS])
def test_a_step_prints_what_it_says(number: str, program: str, output: str, tmp_path: Path) -> None:
    file = tmp_path / f"step{number}.py"
    file.write_text(program.replace("tutorial-", f"tutorial-{token_hex(4)}-"), "utf8")
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == output


def test_the_program_of_the_first_page_runs(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (DOCS / "index.md").read_text("utf8"), re.DOTALL)
    file = tmp_path / "first.py"
    file.write_text(program.replace('"prices"', f'"prices-{token_hex(4)}"'), "utf8")
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith(" b'101.50'\n")
