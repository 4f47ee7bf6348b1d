"""The README's first program, started three times."""

import re
import signal
import subprocess
import time
from pathlib import Path
from secrets import token_hex

README = Path(__file__).parents[1] / "README.md"
PATIENCE = 30.0


def first_program(group: str) -> str:
    """The program, with a group of its own."""
    found = re.search(r"## A first program\n\n```python\n(.*?)```", README.read_text("utf8"), re.DOTALL)
    assert found is not None
    assert '"prices"' in found[1]
    return found[1].replace('"prices"', repr(group))


def run_three(python: str, folder: Path) -> list[str]:
    """Run it with this interpreter until all have printed three prices; returns what each printed."""
    group = f"readme-{token_hex(4)}"
    files = [folder / f"{number}" for number in range(3)]
    command = [python, "-u", "-c", first_program(group)]
    programs = []
    for file in files:
        with file.open("w") as output:
            programs.append(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT))
    try:
        deadline = time.monotonic() + PATIENCE
        while any(file.read_text().count("says") < 3 for file in files):
            assert time.monotonic() < deadline, [file.read_text() for file in files]
            time.sleep(0.05)
        for program in programs:
            program.send_signal(signal.SIGINT)
        assert [program.wait(PATIENCE) for program in programs] == [0, 0, 0], [f.read_text() for f in files]
    finally:
        for program in programs:
            program.kill()
            program.wait()
    return [file.read_text() for file in files]
