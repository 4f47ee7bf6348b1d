"""Queries of what is committed: a read-only connection a thread, so that none waits for the writer."""

import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from semcast.sql.actions import Row, Value
from semcast.sql.errors import DatabaseError, StatementError
from semcast.sql.failures import trouble
from semcast.sql.guard import Guard
from semcast.sql.writer import MAX_LENGTH, MAX_ROWS, STEP

MAX_SECONDS: Final = 30.0
"""A query that takes longer is given up: unlike an action, it may end at another point at each server."""


NOBODY: Final = threading.Event()
"""Of queries that nobody gives up: never set."""


class QueryRows(NamedTuple):
    """What a query gave."""

    columns: tuple[str, ...]
    rows: list[Row]


class SlowQueryError(StatementError):
    """A query takes longer than it may; says how long."""


class ReadConnection:
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
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LENGTH)
        self.connection.set_authorizer(self._guard)
        self.connection.set_progress_handler(self._stepped, STEP)
        self._cursor = self.connection.cursor()
        self._deadline = self._seconds = 0.0
        self._given_up = NOBODY

    def query(
        self,
        sql: str,
        parameters: Sequence[Value],
        seconds: float = MAX_SECONDS,
        given_up: threading.Event = NOBODY,
    ) -> QueryRows:
        """Answer one query: `rows`, with the names of the columns."""
        rows = self.rows(sql, parameters, seconds, given_up)
        return QueryRows(tuple([each[0] for each in self._cursor.description or ()]), rows)

    def rows(
        self,
        sql: str,
        parameters: Sequence[Value],
        seconds: float = MAX_SECONDS,
        given_up: threading.Event = NOBODY,
    ) -> list[Row]:
        """Answer one query.

        Args:
            sql: a query.
            parameters: for its question marks.
            seconds: it may take.
            given_up: set where nobody waits for it any more.

        Raises:
            SlowQueryError: it takes longer.
            StatementError: the query is wrong, or wants to write.
            DatabaseError: the file cannot be read.
        """
        cursor = self._cursor
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._given_up = given_up
        try:
            rows = cursor.execute(sql, parameters).fetchmany(MAX_ROWS + 1)
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise self._translated(error) from error
        if len(rows) > MAX_ROWS:
            cursor.close()
            self._cursor = self.connection.cursor()
            raise StatementError(f"the result has more than {MAX_ROWS} rows: ask for fewer")
        return rows

    def _stepped(self) -> int:
        return int(time.monotonic() > self._deadline or self._given_up.is_set())

    def _translated(self, error: Exception) -> Exception:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
            return StatementError("only queries are answered here: send what writes as an action")
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            return SlowQueryError(f"the query took more than {self._seconds:g} s")
        bad = trouble(error)
        if bad:
            return DatabaseError(f"{self._path}: {bad}: {error}")
        why, self._guard.why = self._guard.why, ""
        return StatementError(why or str(error))


class Readers:
    """The read-only connections of a database, one for each thread that asks.

    Args:
        path: the database file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mine = threading.local()
        self._all: list[ReadConnection] = []
        self._lock = threading.Lock()

    def mine(self) -> ReadConnection:
        """The connection of this thread."""
        try:
            reader: ReadConnection = self._mine.reader
        except AttributeError:
            reader = self._mine.reader = ReadConnection(self._path)
            with self._lock:
                self._all.append(reader)
        return reader

    def query(
        self,
        sql: str,
        parameters: Sequence[Value],
        seconds: float = MAX_SECONDS,
        given_up: threading.Event = NOBODY,
    ) -> QueryRows:
        """Answer a query on the connection of this thread."""
        return self.mine().query(sql, parameters, seconds, given_up)

    def rows(self, sql: str, parameters: Sequence[Value]) -> list[Row]:
        """The rows of the answer alone."""
        return self.mine().rows(sql, parameters)

    def close(self) -> None:
        """Close them all."""
        with self._lock:
            for reader in self._all:
                reader.connection.close()
            self._all.clear()
