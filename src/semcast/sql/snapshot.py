"""Copies of a database at one position: for a server that joins, and as backup.

SQLite's backup copies pages, so that everything is the same in the copy, rowids included.
"""

import os
import sqlite3
from pathlib import Path

from semcast.sql.errors import DatabaseError
from semcast.sql.failures import trouble


def take(source: Path, target: Path) -> int:
    """Copy what is committed into a new file, while the server goes on; returns its position.

    Raises:
        DatabaseError: there is no such database, the target exists, or a disk is full.
    """
    if target.exists():
        raise DatabaseError(f"{target}: there is a file already")
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    try:
        with sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True) as reading:
            _copy(reading, part)
        reading.close()
        position = position_of(part)
        _sync(part)
        part.rename(target)
    except (sqlite3.Error, OSError) as error:
        part.unlink(missing_ok=True)
        raise DatabaseError(f"{target}: {trouble(error) or error}") from error
    return position


def _copy(reading: sqlite3.Connection, target: Path) -> None:
    writing = sqlite3.connect(target, isolation_level=None)
    try:
        reading.backup(writing)
        writing.execute("PRAGMA journal_mode = DELETE")
    finally:
        writing.close()


def position_of(path: Path) -> int:
    """The position of a copy.

    Raises:
        DatabaseError: the file is no copy of a replicated database.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        (position,) = connection.execute("SELECT position FROM _semcast_line").fetchone()
    except (sqlite3.Error, TypeError) as error:
        raise DatabaseError(f"{path}: no copy of a replicated database: {error}") from error
    finally:
        connection.close()
    return int(position)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
