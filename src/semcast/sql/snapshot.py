"""Copies of a database at one position: for a server that joins, and as backup.

SQLite's backup copies pages, so that everything is the same in the copy, rowids included.
"""

import os
import sqlite3
from contextlib import closing
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
        copy(source, part)
        position = position_of(part)
        _sync(part)
        part.rename(target)
    except OSError as error:
        raise DatabaseError(f"{target}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return position


def copy(source: Path, target: Path) -> None:
    """Copy what is committed in any SQLite file.

    Raises:
        DatabaseError: it is none, or a disk is full.
    """
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as reading,
            closing(sqlite3.connect(target, isolation_level=None)) as writing,
        ):
            reading.backup(writing)
            writing.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise DatabaseError(f"{source}: {trouble(error) or error}") from error


def put_in_place(data: bytes, target: Path) -> None:
    """Write a copy where a database is to be, in the place of what is there. Nobody may have it open.

    Raises:
        DatabaseError: a disk is full, or the file cannot be written.
    """
    part = target.with_name(target.name + ".part")
    try:
        part.write_bytes(data)
        _sync(part)
        remove(target)
        part.rename(target)
    except OSError as error:
        raise DatabaseError(f"{target}: {error.strerror}") from error


def remove(path: Path) -> None:
    """Delete a database with all that SQLite keeps beside it."""
    for name in (path.name, path.name + "-wal", path.name + "-shm", path.name + "-journal"):
        path.with_name(name).unlink(missing_ok=True)


def written_back(path: Path) -> bool:
    """Have all that is committed outlive a crash of the machine; returns whether it does.

    It does not wait: where somebody reads or writes just now, another try is needed.

    Raises:
        DatabaseError: the disk failed.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        busy, log, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:
        raise DatabaseError(f"{path}: {trouble(error) or error}") from error
    finally:
        connection.close()
    return not busy and log == done


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
