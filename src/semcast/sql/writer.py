"""The one connection that writes: applies actions, one at a time, in the order it is told."""

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from semcast.sql import restoring
from semcast.sql.actions import (
    Deed,
    Expectation,
    Restore,
    Row,
    SqlAction,
    SqlOutcome,
    Statement,
    decode_action,
)
from semcast.sql.errors import DatabaseError, SlowActionsError
from semcast.sql.failures import trouble
from semcast.sql.functions import Moment
from semcast.sql.guard import Guard
from semcast.sql.refusals import OURS
from semcast.sql.remembered import remembered

STEP: Final = 100_000
MAX_STEPS: Final = 400_000_000
"""Instructions of SQLite that an action may take, some seconds. They are counted: all servers stop at the
same one. See `WriteConnection._exactly`."""
TOO_LONG: Final = f"the action took too many steps of SQLite, more than {MAX_STEPS:,}: divide it"
MAX_ROWS: Final = 100_000
MAX_LENGTH: Final = 1 << 26
"""Bytes of a row, and of each value in it: `zeroblob(1e9)` would take the memory of every server."""
CACHED: Final = 512

OUTCOMES: Final = (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError, TypeError)


class TransactionLostError(Exception):
    """An action took too long, and SQLite has undone all that was in its transaction."""


@remembered
def _asks_last(sql: str) -> bool:
    """Whether a statement may ask what the statement before it did."""
    words = sql.lower()
    return "last_insert_rowid" in words or "changes" in words


class WriteConnection:
    """Applies actions on a connection of its own.

    Args:
        path: the database file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._steps = 0
        self._most = MAX_STEPS
        self._deadline = 0.0  # of a query that is no action; 0 for none
        self._until = 0.0  # of the actions that are being done; 0 for none
        self._late = False
        self._again = 0  # actions that were done once more
        self._suffix = ""
        self._state_words = False
        self.guard = Guard()
        self.moment = Moment()
        self.connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=CACHED
        )
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LENGTH)
        self.moment.install(self.connection)
        self.connection.set_authorizer(self.guard)
        self.connection.set_progress_handler(self._stepped, STEP)

    def close(self) -> None:
        """Close the connection; a transaction that is open is undone."""
        self.connection.close()
        self.moment.close()

    def ours(self, sql: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        """Do a statement of our own.

        Raises:
            DatabaseError: the file cannot be used.
        """
        self.guard.ours = True
        try:
            return self.connection.execute(OURS + sql, parameters)
        except sqlite3.Error as error:
            raise DatabaseError(f"{self._path}: {trouble(error) or error}") from error
        finally:
            self.guard.ours = False

    def undo(self) -> None:
        """Undo the transaction that is open, if SQLite has not done so itself."""
        if self.connection.in_transaction:
            self.ours("ROLLBACK")

    def apply(self, body: bytes, stamp_ms: int, seed: int, care: int = 0) -> SqlOutcome:
        """Do one action, in the transaction that is open: wholly, or not at all.

        Args:
            body: the action.
            stamp_ms: its time.
            seed: its chance.
            care: how often the transaction was lost with it.

        Raises:
            TransactionLostError: with it all of the transaction was undone.
            SlowActionsError: there is no time for it (see `limit`).
            DatabaseError: this server cannot go on.
        """
        try:
            action = decode_action(body)
        except msgspec.MsgspecError as error:
            return SqlOutcome(error=f"malformed action: {error}")
        self.moment.set(stamp_ms, seed)
        self._steps, self._deadline = 0, 0.0
        self.guard.why = self.moment.why = ""
        if action.deed is not None:
            if self._until and isinstance(action.deed, Restore):
                raise SlowActionsError("a whole database is put in the place of this one")
            return self._deed(action.deed, stamp_ms)
        if care:
            return SqlOutcome(error=TOO_LONG) if care > 1 else self._exactly(action, stamp_ms, seed)
        alone = len(action.statements) == 1 and not action.expect
        self._most = MAX_STEPS - (2 if alone else 1 + len(action.statements) + len(action.expect)) * STEP
        outcome = self._alone(action.statements[0]) if alone else self._together(action)
        return outcome if self._steps <= self._most else self._exactly(action, stamp_ms, seed)

    def _exactly(self, action: SqlAction, stamp_ms: int, seed: int) -> SqlOutcome:
        """An action came near to the limit and was undone: do it once more, and count to the very same step.

        SQLite counts the steps of a statement on from its last use, which is another one at each server: so
        the first time the limit is a little lower, and now the statements are new ones.
        """
        self._again += 1
        self._suffix = f"/*{self._again}*/"
        self.moment.set(stamp_ms, seed)
        self._steps, self._most = 0, MAX_STEPS
        try:
            return self._together(action)
        finally:
            self._suffix = ""

    def _check_transaction(self, error: Exception) -> None:
        """SQLite undoes all of a transaction where it interrupts a statement that writes."""
        if self._late:
            raise SlowActionsError("they take longer than they may here") from error
        if not self.connection.in_transaction:
            self._state_words = self._triggers_ask()
            raise TransactionLostError from error

    def _alone(self, statement: Statement) -> SqlOutcome:
        """A statement that fails undoes itself."""
        try:
            if self._state_words or _asks_last(statement.sql):
                self._forget_last()
            return self._outcome(self.connection.execute(statement.sql, statement.parameters))
        except OUTCOMES as error:
            self._check_transaction(error)
            return SqlOutcome(error=self._why(error))

    def _together(self, action: SqlAction) -> SqlOutcome:
        self.ours("SAVEPOINT action")
        try:
            self._forget_last()
            outcome = self._all(action)
        except OUTCOMES as error:
            self._check_transaction(error)
            outcome = SqlOutcome(error=self._why(error))
        if outcome.error:
            self.ours("ROLLBACK TO action")
        self.ours("RELEASE action")
        return outcome

    def _deed(self, deed: Deed, stamp_ms: int) -> SqlOutcome:
        self.ours("SAVEPOINT deed")
        self.guard.ours = True  # and it takes as long as it takes: the administrator asked for it
        try:
            outcome = restoring.do(self.connection, Path(self._path), deed, stamp_ms)
        except OSError as error:
            raise DatabaseError(f"{self._path}: {error.strerror or error}") from error
        except OUTCOMES as error:
            outcome = SqlOutcome(error=self._why(error))
        finally:
            self.guard.ours = False
        if outcome.error:
            self.ours("ROLLBACK TO deed")
        self.ours("RELEASE deed")
        if isinstance(deed, Restore):
            self.ours(restoring.FORGET, (deed.upload,))
            self._state_words = self._triggers_ask()
        return outcome

    def _all(self, action: SqlAction) -> SqlOutcome:
        for expected in action.expect:
            if self._found(expected) != [tuple(row) for row in expected.rows]:
                return SqlOutcome(error=f"expectation failed: {expected.sql}")
        changes = last_rowid = 0
        columns: tuple[str, ...] = ()
        rows: tuple[Row, ...] = ()
        execute, suffix = self.connection.execute, self._suffix
        for statement in action.statements:
            cursor = execute(statement.sql + suffix if suffix else statement.sql, statement.parameters)
            if cursor.description is None and cursor.rowcount >= 0:  # nearly all: worth a way of its own
                changes += cursor.rowcount
                last_rowid = cursor.lastrowid or last_rowid
                continue
            one = self._outcome(cursor)
            changes += one.changes
            last_rowid = one.last_rowid or last_rowid
            if one.columns:
                columns, rows = one.columns, one.rows
        return SqlOutcome(changes, last_rowid, columns, rows)

    def _found(self, expected: Expectation) -> list[Row]:
        found = self.connection.execute(expected.sql + self._suffix, expected.parameters)
        return found.fetchmany(len(expected.rows) + 1)

    def _outcome(self, cursor: sqlite3.Cursor) -> SqlOutcome:
        """Of a statement that was executed."""
        if cursor.description is None:
            if cursor.rowcount < 0:  # a change of the schema: it may have made a trigger
                self._state_words = self._triggers_ask()
                return SqlOutcome()
            return SqlOutcome(cursor.rowcount, cursor.lastrowid or 0)
        rows = cursor.fetchmany(MAX_ROWS + 1)
        if len(rows) > MAX_ROWS:
            raise ValueError(f"the result has more than {MAX_ROWS} rows")
        columns = tuple(each[0] for each in cursor.description)
        return SqlOutcome(max(cursor.rowcount, 0), cursor.lastrowid or 0, columns, tuple(rows))

    def _forget_last(self) -> None:
        """`changes()` and `last_insert_rowid()` must not tell of the action before."""
        self.ours("INSERT OR REPLACE INTO _semcast_last(rowid) VALUES (0)")
        self.ours("UPDATE _semcast_last SET rowid = 0 WHERE 0")

    def _triggers_ask(self) -> bool:
        found = self.ours(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' "
            "AND (sql LIKE '%changes%' OR sql LIKE '%last_insert_rowid%')"
        ).fetchone()
        return bool(found[0])

    def _why(self, error: Exception) -> str:
        bad = trouble(error)
        if bad:
            raise DatabaseError(f"{self._path}: {bad}: {error}") from error
        if self.guard.why:
            return f"refused: {self.guard.why}"
        if self.moment.why:
            return self.moment.why
        if self._steps > self._most:
            return TOO_LONG
        return str(error)

    def limit(self, seconds: float | None) -> None:
        """The actions that come next may take so long together, by the clock: `SlowActionsError` then.

        Unlike the limit of steps it is no outcome: whoever does them undoes all, and does them elsewhere.
        """
        self._until, self._late = 0.0 if seconds is None else time.monotonic() + seconds, False

    def hurry(self, seconds: float) -> None:
        """What comes next is a query that may take so long, up to the next action."""
        self._deadline = time.monotonic() + seconds

    def _stepped(self) -> int:
        if self.guard.ours:
            return 0
        if self._deadline:
            return int(time.monotonic() > self._deadline)
        if self._until and time.monotonic() > self._until:
            self._late = True
            return 1
        self._steps += STEP
        return int(self._steps > self._most)
