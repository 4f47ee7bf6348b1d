"""Which errors of SQLite are outcomes, the same at every server, and which are troubles of one server."""

import sqlite3
from typing import Final

TROUBLES: Final = {
    sqlite3.SQLITE_PERM: "no permission",
    sqlite3.SQLITE_BUSY: "somebody else writes this file",
    sqlite3.SQLITE_LOCKED: "the file is locked",
    sqlite3.SQLITE_NOMEM: "out of memory",
    sqlite3.SQLITE_READONLY: "the file cannot be written",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_PROTOCOL: "the lock of the file cannot be had",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database",
    sqlite3.SQLITE_INTERNAL: "SQLite met a bug of its own",
}
"""What stops a server: the outcome of an action must not depend on one disk."""


def trouble(error: Exception) -> str:
    """What is wrong with this server, or nothing if the error is an outcome."""
    code = getattr(error, "sqlite_errorcode", None)
    return "" if code is None else TROUBLES.get(code & 0xFF, "")


def is_damage(error: BaseException | None) -> bool:
    """Whether the file itself is wrong, and another one in its place would help."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
