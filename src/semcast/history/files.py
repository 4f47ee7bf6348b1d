"""Recorded histories as files. They need pyarrow, the extra `history`; nothing else of recording does.

Each function imports what it needs when it is called: programs that neither read nor write such files run
without pyarrow.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from semcast.extras import extra

if TYPE_CHECKING:
    from semcast.history.events import History
    from semcast.history.replay import JournalContents


def needs_pyarrow() -> AbstractContextManager[None]:
    """Imports inside say what to install where pyarrow is missing."""
    return extra("history", "pyarrow", "reading or writing a recorded history")


def require_pyarrow() -> None:
    """MissingExtraError if pyarrow is not installed: for who records first and reads later."""
    with needs_pyarrow():
        import pyarrow  # noqa: F401, PLC0415


def read_history(path: Path) -> "History":
    """Read one run: a file, or a folder of files."""
    with needs_pyarrow():
        from semcast.history import reader  # noqa: PLC0415
    return reader.read_history(path)


def read_histories(path: Path) -> "list[History]":
    """Read every run in a file or in a folder, in the order of their first files.

    A run may be spread over several files, with its rows in any order. A damaged journal of a live process
    is read up to the damage.
    """
    with needs_pyarrow():
        from semcast.history import reader  # noqa: PLC0415
    return reader.read_histories(path)


def read_journal(path: Path) -> "JournalContents":
    """Read the journal of one live process, up to the first damage."""
    with needs_pyarrow():
        from semcast.history import replay  # noqa: PLC0415
    return replay.read_journal(path)


def write_history(history: "History", path: Path) -> None:
    """Write one run to one Parquet file; creates missing folders."""
    with needs_pyarrow():
        from semcast.history import writer  # noqa: PLC0415
    writer.write_history(history, path)


def converted(paths: Sequence[Path], folder: Path) -> list[Path]:
    """The same histories as Parquet files only: journals among `paths` are converted into `folder`."""
    with needs_pyarrow():
        from semcast.history import convert  # noqa: PLC0415
    return convert.converted(paths, folder)
