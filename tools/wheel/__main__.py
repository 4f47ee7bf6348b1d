"""Build a wheel whose protocols are compiled; without a compiler or mypyc, the pure one.

`python -m tools.wheel` puts it into `dist/`. It takes minutes: mypyc writes C, and the compiler reads it.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tools.wheel.staging import stage

PROJECT = Path(__file__).parents[2]


def missing() -> str | None:
    """What a compiled wheel would need and is not here."""
    if importlib.util.find_spec("mypyc") is None:
        return "mypyc (it comes with mypy)"
    compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"a C compiler ({compiler})"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    return None if header.exists() else f"{header}"


def build(project: Path, into: Path) -> None:
    """The wheel of the project in this folder."""
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--skip-dependency-check",  # it would run setup.py, and so mypyc, twice
        "--outdir",
        str(into),
        str(project),
    ]
    subprocess.run(command, check=True)


def main() -> None:
    """Build it."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheel", description=__doc__.partition("\n")[0])
    parser.add_argument("--outdir", type=Path, default=PROJECT / "dist", help="where it goes (default: dist)")
    parser.add_argument("--level", type=int, default=1, help="how hard the compiler optimizes (default: 1)")
    arguments = parser.parse_args()
    lacks = missing()
    if lacks is not None:
        print(f"not found: {lacks}. Building the wheel without compiled modules, which works the same.")
        build(PROJECT, arguments.outdir)
        return
    with tempfile.TemporaryDirectory(prefix="semcast-wheel-") as name:
        modules = stage(PROJECT, Path(name), arguments.level)
        print(f"{len(modules)} modules to compile", flush=True)
        build(Path(name), arguments.outdir)


if __name__ == "__main__":
    main()
