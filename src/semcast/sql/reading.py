"""Queries of what is committed: a read-only connection a thread, so that none waits for the writer."""

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from semcast.sql.actions import Row, Value
from semcast.sql.errors import DatabaseError, StatementError
from semcast.sql.failures import trouble
from semcast.sql.guard import Guard


class Answer(NamedTuple):
    """What a query gave."""

    columns: tuple[str, ...]
    rows: list[Row]


class Reader:
    """A connection that cannot write.

    Args:
        path: the database file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = Guard()
        address = f"{path.absolute().as_uri()}?mode=ro"
        self.connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA query_only = ON")
        self.connection.set_authorizer(self._guard)

    def query(self, sql: str, parameters: Sequence[Value]) -> Answer:
        """Answer one query.

        Raises:
            StatementError: the query is wrong, or wants to write.
            DatabaseError: the file cannot be read.
        """
        self._guard.why = ""
        try:
            cursor = self.connection.execute(sql, parameters)
            return Answer(tuple([each[0] for each in cursor.description or ()]), cursor.fetchall())
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> Exception:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
            return StatementError("only queries are answered here: send what writes as an action")
        bad = trouble(error)
        if bad:
            return DatabaseError(f"{self._path}: {bad}: {error}")
        return StatementError(self._guard.why or str(error))


class Readers:
    """The read-only connections of a database, one for each thread that asks.

    Args:
        path: the database file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mine = threading.local()
        self._all: list[Reader] = []
        self._lock = threading.Lock()

    def mine(self) -> Reader:
        """The connection of this thread."""
        reader: Reader | None = getattr(self._mine, "reader", None)
        if reader is None:
            reader = Reader(self._path)
            self._mine.reader = reader
            with self._lock:
                self._all.append(reader)
        return reader

    def query(self, sql: str, parameters: Sequence[Value]) -> Answer:
        """Answer a query on the connection of this thread."""
        return self.mine().query(sql, parameters)

    def close(self) -> None:
        """Close them all."""
        with self._lock:
            for reader in self._all:
                reader.connection.close()
            self._all.clear()
