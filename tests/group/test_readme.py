"""The first program of the README does what the text beside it says."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from secrets import token_hex

README = Path(__file__).parents[2] / "README.md"
PATIENCE = 30.0


def first_program(group: str) -> str:
    found = re.search(r"## A first program\n\n```python\n(.*?)```", README.read_text("utf8"), re.DOTALL)
    assert found is not None
    assert '"prices"' in found[1]
    return found[1].replace('"prices"', repr(group))


def test_started_three_times_all_print_the_same_prices_in_the_same_order(tmp_path: Path) -> None:
    group = f"readme-{token_hex(4)}"
    files = [tmp_path / f"{number}" for number in range(3)]
    command = [sys.executable, "-u", "-c", first_program(group)]
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
    prices = [re.findall(r".* says .*", file.read_text()) for file in files]
    assert prices[0] == prices[1] == prices[2]
    assert len(prices[0]) == 3
    assert all(re.search(r"all of \['.*', '.*', '.*'\] have my", file.read_text()) for file in files)
