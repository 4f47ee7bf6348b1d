"""A disk without room for even an empty database: an error that names the file, not one of SQLite."""

import sqlite3
from pathlib import Path

import pytest

from semcast.sql.errors import DatabaseError
from semcast.sql.failures import is_damage
from semcast.sql.store import SqliteStore
from semcast.sql.writer import WriteConnection


class _Full:
    """What a statement gives that SQLite finds no room for in its first step."""

    def fetchall(self) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error


def test_no_room_for_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WriteConnection, "ours", lambda *_: _Full())
    path = tmp_path / "database.sqlite"
    with pytest.raises(DatabaseError, match=f"^{path}: the disk is full$") as raised:
        SqliteStore(path)
    assert not is_damage(raised.value.__cause__), "another file would not help"
