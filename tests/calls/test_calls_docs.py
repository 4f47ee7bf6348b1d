"""The program of docs/calls.md runs, and prints what it says."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "calls.md"


def test_the_program_prints_what_the_page_says() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf8"), re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    expected = [line.split("  # ")[1] for line in program.splitlines() if "print(" in line]
    assert ran.stdout.splitlines() == expected, ran.stderr
