"""The package as an archive that Spark sends to its executors (`--py-files`, `addPyFile`, `addArtifacts`).

Executors import Python code from an archive, but no compiled modules: what the package depends on must be
installed where they run.
"""

import zipfile
from pathlib import Path

import semcast

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive, so that the same code gives the same bytes."""

_SCRIPT = '''\
"""For spark-submit: the command `semcast`. Made by `semcast pipeline package`."""

import sys

from semcast.cli.main import main

sys.exit(main())
'''


def package_folder() -> Path | None:
    """Where the package lies; None if it was imported from an archive, which Spark has sent already."""
    folder = Path(semcast.__file__).parent
    return folder if folder.is_dir() else None


def write_package(out: Path) -> int:
    """Write the archive, whole or not at all; returns how many files it holds."""
    folder = package_folder()
    if folder is None:
        raise FileNotFoundError("semcast was imported from an archive: use that one")
    files = sorted(path for path in folder.rglob("*") if path.suffix == ".py" or path.name == "py.typed")
    part = out.with_name(f".{out.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                name = zipfile.ZipInfo(str(Path(folder.name) / file.relative_to(folder)), _EPOCH)
                archive.writestr(name, file.read_bytes(), zipfile.ZIP_DEFLATED)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return len(files)


def write_script(archive: Path) -> Path:
    """Write the program that `spark-submit` starts, beside the archive; returns it.

    Python looks for modules beside a program first: as `semcast.py` it would be taken for the package.
    """
    program = archive.with_name(f"{archive.stem}_submit.py")
    program.write_text(_SCRIPT)
    return program
