"""The replicated database of one server: one SQLite file, read at two levels.

Green actions are committed, a transaction for each batch. Red ones, whose order is not known yet, are done in
a transaction that stays open: its connection sees green and red (a *dirty* read), all others see what is
committed (a *weak* read). News of the order undo the open transaction; what is still red is done again.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from semcast.sql.actions import Row, SqlOutcome, Value
from semcast.sql.errors import DatabaseError, SlowActionsError, StatementError
from semcast.sql.failures import trouble
from semcast.sql.reading import MAX_SECONDS, NOBODY, QueryRows, Readers, SlowQueryError
from semcast.sql.refusals import writes
from semcast.sql.restoring import STAGED
from semcast.sql.writer import MAX_ROWS, TransactionLostError, WriteConnection

_TABLES = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "CREATE TABLE IF NOT EXISTS _semcast_notes (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS _semcast_last (rowid INTEGER PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS _semcast_line (id INTEGER PRIMARY KEY CHECK (id = 0), "
    "position INTEGER NOT NULL, stamp INTEGER NOT NULL)",
    "INSERT OR IGNORE INTO _semcast_line VALUES (0, 0, 0)",
    STAGED,
)


DIRTY_SECONDS: Final = 1.0
"""That a dirty query may take where something is red: nothing else is written or answered meanwhile."""
_DIRTY_SLOW: Final = (
    f"the query took more than {DIRTY_SECONDS:g} s: what has no place yet is seen by the connection that "
    "writes, which cannot wait longer; ask at level weak"
)

Notes = Mapping[bytes, bytes | None]


class Ordered(NamedTuple):
    """An action as a server applies it: what it says, and the time and the seed it carries."""

    body: bytes
    stamp_ms: int
    seed: int


Actions = Sequence[tuple[bytes, int, int]]
"""Each as `Ordered` has it."""


class SqliteStore:
    """A SQLite file that applies ordered actions and answers queries.

    Args:
        path: the file; made if it is missing.

    Raises:
        DatabaseError: the file cannot be opened, or is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reds: list[tuple[bytes, int, int]] = []
        try:
            self._writer = WriteConnection(str(path))
        except sqlite3.Error as error:
            raise DatabaseError(f"{path}: {trouble(error) or error}") from error
        try:
            for statement in _TABLES:
                self._writer.ours(statement).fetchall()
            self.position, self._stamp = self._line()
        except (DatabaseError, sqlite3.Error) as error:
            self._writer.close()
            if isinstance(error, DatabaseError):
                raise
            raise DatabaseError(f"{path}: {trouble(error) or error}") from error
        self._readers = Readers(path)

    def _line(self) -> tuple[int, int]:
        row = self._writer.ours("SELECT position, stamp FROM _semcast_line").fetchone()
        return int(row[0]), int(row[1])

    def close(self) -> None:
        """Close all connections. What is red is forgotten: the log has it."""
        self._readers.close()
        self._writer.close()

    @property
    def reds(self) -> int:
        """How many red actions dirty reads show."""
        return len(self._reds)

    def apply(
        self,
        actions: Actions,
        notes: Notes | Callable[[list[SqlOutcome]], Notes] | None = None,
        upto: int | None = None,
        seconds: float | None = None,
    ) -> list[SqlOutcome]:
        """Do the next green actions and commit them, together with notes of the caller.

        Args:
            actions: in their order.
            notes: what to keep beside the tables, by key; None removes a key. Or what makes that of outcomes.
            upto: the position then; by default each action has one of its own.
            seconds: that they may take in this thread.

        Raises:
            SlowActionsError: they take longer. Nothing of the batch is done.
            DatabaseError: this server cannot go on. Nothing of the batch is done.
        """
        self.hide_red()
        self._writer.limit(seconds)
        position = self.position + len(actions) if upto is None else upto
        self._writer.ours("BEGIN IMMEDIATE")
        try:
            outcomes = self._done(actions)
            self._keep(notes(outcomes) if callable(notes) else notes or {})
            self._writer.ours("UPDATE _semcast_line SET position = ?, stamp = ?", (position, self._stamp))
            self._writer.ours("COMMIT")
        except (DatabaseError, SlowActionsError):
            self._writer.undo()
            self.position, self._stamp = self._line()
            raise
        self.position = position
        return outcomes

    def _done(self, actions: Actions) -> list[SqlOutcome]:
        """Do actions in the transaction that is open, and once more where one of them undid it."""
        care: dict[int, int] = {}
        while True:
            outcomes: list[SqlOutcome] = []
            try:
                return self._do(actions, outcomes, care)
            except TransactionLostError:
                care[len(outcomes)] = care.get(len(outcomes), 0) + 1
                self._writer.ours("BEGIN IMMEDIATE")

    def _do(self, actions: Actions, outcomes: list[SqlOutcome], care: Mapping[int, int]) -> list[SqlOutcome]:
        stamp, one = self._stamp, self._writer.apply
        for body, stamp_ms, seed in actions:
            stamp = max(stamp, stamp_ms)
            outcomes.append(one(body, stamp, seed, care.get(len(outcomes), 0) if care else 0))
        self._stamp = stamp
        return outcomes

    def _keep(self, notes: Mapping[bytes, bytes | None]) -> None:
        for key, value in notes.items():
            if value is None:
                self._writer.ours("DELETE FROM _semcast_notes WHERE key = ?", (key,))
            else:
                self._writer.ours("INSERT OR REPLACE INTO _semcast_notes VALUES (?, ?)", (key, value))

    def notes(self) -> Iterable[tuple[bytes, bytes]]:
        """What was kept beside the tables."""
        return [
            (bytes(key), bytes(value)) for key, value in self._writer.ours("SELECT * FROM _semcast_notes")
        ]

    @property
    def stamp(self) -> int:
        """The highest stamp of all that was done."""
        return self._stamp

    def show_red(self, actions: Actions) -> list[SqlOutcome]:
        """Do more red actions, for dirty reads only."""
        if not self._reds:
            self._writer.ours("BEGIN IMMEDIATE")
        self._writer.limit(None)
        before, stamp = len(self._reds), self._stamp
        self._reds += actions
        try:
            return self._do(actions, [], {})
        except TransactionLostError:
            self._writer.ours("BEGIN IMMEDIATE")
            return self._done(self._reds)[before:]
        finally:
            self._stamp = stamp

    def hide_red(self) -> None:
        """Forget what was shown of red actions."""
        if self._reds:
            self._writer.ours("ROLLBACK")
            self._reds = []

    def weak(
        self,
        sql: str,
        parameters: Sequence[Value] = (),
        seconds: float = MAX_SECONDS,
        given_up: threading.Event = NOBODY,
    ) -> QueryRows:
        """Answer a query from what is green, on the caller's thread.

        Raises:
            SlowQueryError: it takes longer than so many seconds.
            StatementError: it is no query, or a wrong one.
        """
        return self._readers.query(sql, parameters, seconds, given_up)

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """The same, without the names of the columns: what is asked most has to be quick."""
        return self._readers.rows(sql, parameters)

    def reader(self) -> sqlite3.Connection:
        """A connection that sees what is green, and cannot write; for this thread."""
        return self._readers.mine().connection

    def dirty(self, sql: str, parameters: Sequence[Value] = ()) -> QueryRows:
        """Answer a query from what is green and what is red here.

        Raises:
            StatementError: it is no query, or a wrong one.
        """
        if not self._reds:
            return self.weak(sql, parameters)
        if writes(sql):
            raise StatementError("only queries are answered here: send what writes as an action")
        self._writer.guard.why = ""
        self._writer.hurry(DIRTY_SECONDS)
        try:
            cursor = self._writer.connection.execute(sql, parameters)
            rows = cursor.fetchmany(MAX_ROWS + 1)
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
                raise SlowQueryError(_DIRTY_SLOW) from error
            raise StatementError(self._writer.guard.why or str(error)) from error
        if len(rows) > MAX_ROWS:
            raise StatementError(f"the result has more than {MAX_ROWS} rows: ask for fewer")
        return QueryRows(tuple(each[0] for each in cursor.description or ()), rows)
