"""Digests of tables, by which servers compare what they have."""

import hashlib
import sqlite3

from semcast.sql.guard import PREFIX
from semcast.sql.names import quoted

_CHUNK = 1024
OTHERS = "(schema)"
"""Stands for all that is no table: indexes, views, triggers."""


def digest(connection: sqlite3.Connection) -> bytes:
    """One of everything: of the schema and of every row, but not of the server's own tables."""
    hashed = hashlib.blake2b(digest_size=16)
    for name, one in sorted(digests(connection).items()):
        hashed.update(repr((name, one)).encode())
    return hashed.digest()


def digests(connection: sqlite3.Connection) -> dict[str, bytes]:
    """One of each table, with how it was made and all its rows, rowids included; and one of the rest."""
    things = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE ? ESCAPE '\\' ORDER BY type, name",
        (PREFIX.replace("_", "\\_") + "%",),
    ).fetchall()
    others = hashlib.blake2b(digest_size=16)
    found: dict[str, bytes] = {}
    for kind, name, sql in things:
        if kind == "table":
            found[str(name)] = _table(connection, str(name), str(sql or ""))
        else:
            others.update(repr((kind, name, sql)).encode())
    return {**found, OTHERS: others.digest()}


def _table(connection: sqlite3.Connection, name: str, sql: str) -> bytes:
    try:
        return _hashed(connection, name, sql)
    except sqlite3.OperationalError:  # a text that is not UTF-8: SQLite keeps what it is given
        connection.text_factory = _any_text
        try:
            return _hashed(connection, name, sql)
        finally:
            connection.text_factory = str


def _any_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _hashed(connection: sqlite3.Connection, name: str, sql: str) -> bytes:
    hashed = hashlib.blake2b(repr((name, sql)).encode(), digest_size=16)
    if not sql.upper().startswith("CREATE VIRTUAL"):  # the rows of such a one are in tables of their own
        _rows(connection, name, hashed)
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
