"""A digest of all tables, by which servers compare what they have."""

import hashlib
import sqlite3

from semcast.sql.guard import PREFIX
from semcast.sql.names import quoted

_CHUNK = 1024


def digest(connection: sqlite3.Connection) -> bytes:
    """The digest of the schema and of every row, rowids included, but not of the server's own tables."""
    hashed = hashlib.blake2b(digest_size=16)
    tables = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE ? ESCAPE '\\' ORDER BY type, name",
        (PREFIX.replace("_", "\\_") + "%",),
    ).fetchall()
    for kind, name, sql in tables:
        hashed.update(repr((kind, name, sql)).encode())
        if kind == "table" and not str(sql or "").upper().startswith("CREATE VIRTUAL"):
            _rows(connection, str(name), hashed)
    return hashed.digest()


def _rows(connection: sqlite3.Connection, name: str, hashed: "hashlib.blake2b") -> None:
    keys = connection.execute(
        "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (name,)
    ).fetchall()
    (without,) = connection.execute(
        "SELECT wr FROM pragma_table_list WHERE name = ? AND schema = 'main'", (name,)
    ).fetchone()
    order = ", ".join(quoted(str(key)) for (key,) in keys) if without else "_rowid_"
    columns = "*" if without else "_rowid_, *"
    cursor = connection.execute(f"SELECT {columns} FROM {quoted(name)} ORDER BY {order}")  # noqa: S608
    while rows := cursor.fetchmany(_CHUNK):
        hashed.update(repr(rows).encode("utf-8", "surrogateescape"))
