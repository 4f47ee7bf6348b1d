"""What statements of clients may do: the authorizer of SQLite, asked when a statement is prepared.

Refused is everything that reaches outside of the replicated file, lives in one connection only, or cuts a
transaction of ours in two.
"""

import sqlite3
from typing import Final

PREFIX: Final = "_semcast_"
"""Tables of our own begin with this."""

PRAGMAS: Final = frozenset(
    (
        "table_info",
        "table_xinfo",
        "table_list",
        "index_list",
        "index_info",
        "index_xinfo",
        "foreign_key_list",
        "foreign_key_check",
        "integrity_check",
        "quick_check",
        "function_list",
        "collation_list",
        "user_version",
        "application_id",
        "data_version",
        "encoding",
    )
)
"""Pragmas that read, or write a number of the file itself."""

MODULES: Final = frozenset(("fts5", "rtree"))
"""Virtual tables whose contents are tables of the same file."""

FUNCTIONS: Final = frozenset(
    (
        "load_extension",
        "total_changes",
        "sqlite_version",
        "sqlite_source_id",
        "sqlite_compileoption_get",
        "sqlite_compileoption_used",
        "fts3_tokenizer",
        "sqlite_log",
        "fts5_source_id",
    )
)
"""Functions that tell of one connection or one build, or load code."""

_TEMPORARY: Final = frozenset(
    (
        sqlite3.SQLITE_CREATE_TEMP_INDEX,
        sqlite3.SQLITE_CREATE_TEMP_TABLE,
        sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
        sqlite3.SQLITE_CREATE_TEMP_VIEW,
        sqlite3.SQLITE_DROP_TEMP_INDEX,
        sqlite3.SQLITE_DROP_TEMP_TABLE,
        sqlite3.SQLITE_DROP_TEMP_TRIGGER,
        sqlite3.SQLITE_DROP_TEMP_VIEW,
    )
)
_OUTSIDE: Final = {
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_TRANSACTION: "BEGIN, COMMIT and ROLLBACK",
    sqlite3.SQLITE_SAVEPOINT: "SAVEPOINT",
}


class Guard:
    """Decides what a statement may do, and remembers why the last one was refused.

    Attributes:
        ours: whether the statement being prepared is one of ours, which may do anything.
        why: why the last statement was refused.
    """

    def __init__(self) -> None:
        self.ours = False
        self.why = ""

    def __call__(
        self, action: int, first: str | None, second: str | None, _database: str | None, _inner: str | None
    ) -> int:
        """The authorizer's question, as SQLite asks it."""
        why = "" if self.ours else _refusal(action, first or "", second or "")
        if not why:
            return sqlite3.SQLITE_OK
        self.why = why
        return sqlite3.SQLITE_DENY


def _refusal(action: int, first: str, second: str) -> str:
    if action in _OUTSIDE:
        return f"{_OUTSIDE[action]} is refused: the servers keep one file and one transaction for each action"
    if action in _TEMPORARY:
        return "temporary tables are refused: they would exist at one server only"
    if action == sqlite3.SQLITE_PRAGMA and first.lower() not in PRAGMAS:
        return f"PRAGMA {first} is refused: it would change one server only"
    if action in (sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE):
        return (
            ""
            if second.lower() in MODULES
            else f"virtual tables of {second} are refused: fts5 and rtree only"
        )
    if action == sqlite3.SQLITE_FUNCTION and second.lower() in FUNCTIONS:
        return f"the function {second} is refused: its result differs between servers"
    if first.lower().startswith(PREFIX):
        return f"tables that begin with {PREFIX} belong to the server"
    return ""
