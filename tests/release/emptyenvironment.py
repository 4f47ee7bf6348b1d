"""Environments with nothing in them but a wheel of the package and what it declares that it needs.

Dependencies are linked from the environment of the tests: no package index is asked.
"""

import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


class Environment:
    """A virtual environment with the wheel and one set of its extras."""

    def __init__(self, folder: Path, wheel: Path, *extras: str) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = str(folder / "bin" / "python")
        self.site = next((folder / "lib").glob("python3.*")) / "site-packages"
        install = ["--python", self.python, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
        subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *install], check=True)
        (info,) = self.site.glob("semcast-*.dist-info")
        for needed in _closure(Distribution.at(info), extras).values():
            self._link(needed)

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Python with these arguments."""
        command = [self.python, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)

    def _link(self, needed: Distribution) -> None:
        for top in {file.parts[0] for file in needed.files or () if file.parts[0] != ".."}:
            target = self.site / top
            if not target.exists():
                target.symlink_to(Path(str(needed.locate_file(top))))


def _closure(root: Distribution, extras: tuple[str, ...]) -> dict[str, Distribution]:
    """What it needs, and what that needs, by name."""
    found: dict[str, Distribution] = {}
    pending = [(root, ("", *extras))]
    while pending:
        current, chosen = pending.pop()
        for text in current.requires or ():
            needed = Requirement(text)
            if needed.marker is not None and not any(needed.marker.evaluate({"extra": e}) for e in chosen):
                continue
            if needed.name not in found:
                found[needed.name] = distribution(needed.name)
                pending.append((found[needed.name], ("", *needed.extras)))
    return found
