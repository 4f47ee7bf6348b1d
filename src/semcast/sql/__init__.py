"""SQLite as a replicated service: the same statements in the same order give the same tables everywhere."""

from semcast.sql.actions import SqlAction, SqlOutcome, Statement
from semcast.sql.errors import DatabaseError, StatementError
from semcast.sql.store import SqliteStore

__all__ = ["DatabaseError", "SqlAction", "SqlOutcome", "SqliteStore", "Statement", "StatementError"]
