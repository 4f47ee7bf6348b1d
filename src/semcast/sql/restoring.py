"""A whole SQLite file in the place of all tables, as actions in the order of all.

The file travels in pieces, each an action, which every server keeps beside its tables. The action after the
last of them replaces the tables at every server, at one place in the order; or nothing happens.
Rows are copied, not pages: then it is part of a transaction like any other action, and can be undone.
"""

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from semcast.sql.actions import Deed, Restore, SqlOutcome, Stage
from semcast.sql.errors import StatementError
from semcast.sql.guard import MODULES, PREFIX
from semcast.sql.names import quoted
from semcast.sql.refusals import OURS

PIECE: Final = 40_000
"""Bytes of a piece: about what the servers send at once."""
STALE: Final = 3_600_000
"""Milliseconds after which pieces are dropped that nobody went on with."""

STAGED: Final = (
    "CREATE TABLE IF NOT EXISTS _semcast_staged (upload TEXT, number INTEGER, stamp INTEGER NOT NULL, "
    "data BLOB NOT NULL, PRIMARY KEY (upload, number)) WITHOUT ROWID"
)
FORGET: Final = "DELETE FROM _semcast_staged WHERE upload = ?"
_VIRTUAL: Final = re.compile(r"CREATE\s+VIRTUAL\s+TABLE\s.*?\sUSING\s+\W?(\w+)", re.IGNORECASE | re.DOTALL)
_NAMES: Final = ("_rowid_", "rowid", "oid")


class Thing(NamedTuple):
    """A line of the schema."""

    kind: str
    name: str
    sql: str

    @property
    def module(self) -> str:
        """Of a virtual table: what keeps it."""
        found = _VIRTUAL.match(self.sql)
        return "" if found is None else found[1].lower()


def digest_of(path: Path) -> bytes:
    """By which the servers know that they have all of the file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def pieces_of(path: Path) -> Iterator[bytes]:
    """The file, in pieces."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def in_the_way(connection: sqlite3.Connection) -> str:
    """Why nothing is restored unless that is said: there is something already."""
    names = [thing.name for thing in _things(connection) if thing.kind in ("table", "view")]
    if not names:
        return ""
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"the database is not empty, it has {shown}: say that all of it is to be replaced"


def check(copy: Path, path: Path) -> None:
    """Look whether a file can be restored.

    Args:
        copy: of the file.
        path: what it is called.

    Raises:
        StatementError: it is no database, it is damaged, or it has something that a replicated one has not.
    """
    try:
        source = sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro", uri=True)
        try:
            (found,) = source.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise StatementError(f"{path}: the file is damaged: {found}")
            _check_things(source)
        finally:
            source.close()
    except sqlite3.Error as error:
        raise StatementError(f"{path}: this cannot be restored: {error}") from error
    except ValueError as error:
        raise StatementError(f"{path}: {error}") from error


def _check_things(source: sqlite3.Connection) -> None:
    for thing in _things(source):
        if thing.module and thing.module not in MODULES:
            raise ValueError(
                f"{thing.name}: virtual tables of {thing.module} are refused: fts5 and rtree only"
            )
    broken = source.execute("PRAGMA foreign_key_check").fetchone()
    if broken is not None:
        raise ValueError(f"the table {broken[0]} refers to rows of {broken[2]} that are not there")


def do(connection: sqlite3.Connection, path: Path, deed: Deed, stamp: int) -> SqlOutcome:
    """What an action asks for, inside of a savepoint of the writer.

    Args:
        connection: of the writer, which may do anything meanwhile.
        path: of its file: what is staged is put together beside it.
        deed: of the action.
        stamp: of the action.
    """
    if isinstance(deed, Stage):
        return _stage(connection, deed, stamp)
    wrong = "" if deed.replace else in_the_way(connection)
    if wrong:
        return SqlOutcome(error=wrong)
    with TemporaryDirectory(dir=path.parent, prefix="restore-") as folder:
        whole = Path(folder) / "whole.sqlite"
        wrong = _put_together(connection, deed, whole)
        if wrong:
            return SqlOutcome(error=wrong)
        source = sqlite3.connect(whole, isolation_level=None)
        try:
            return _replace(connection, source)
        finally:
            source.close()


def _stage(connection: sqlite3.Connection, deed: Stage, stamp: int) -> SqlOutcome:
    if deed.number == 0:
        _run(connection, "DELETE FROM _semcast_staged WHERE stamp < ?", (stamp - STALE,))
    _run(
        connection,
        "INSERT OR REPLACE INTO _semcast_staged VALUES (?, ?, ?, ?)",
        (deed.upload, deed.number, stamp, deed.data),
    )
    return SqlOutcome()


def _put_together(connection: sqlite3.Connection, deed: Restore, target: Path) -> str:
    pieces = _run(
        connection, "SELECT data FROM _semcast_staged WHERE upload = ? ORDER BY number", (deed.upload,)
    )
    count = 0
    with target.open("wb") as file:
        for (data,) in pieces:
            file.write(data)
            count += 1
    if count != deed.pieces or digest_of(target) != deed.digest:
        return f"of {deed.pieces} pieces of the file {count} are here: send it again"
    return ""


def _replace(connection: sqlite3.Connection, source: sqlite3.Connection) -> SqlOutcome:
    _check_things(source)
    _run(connection, "PRAGMA defer_foreign_keys = ON")  # until the new tables are there
    try:
        return _copy(connection, source)
    finally:
        _run(connection, "PRAGMA defer_foreign_keys = OFF")


def _copy(connection: sqlite3.Connection, source: sqlite3.Connection) -> SqlOutcome:
    _drop_all(connection)
    things = _things(source)
    changes, tables = 0, []
    for thing in things:
        if thing.kind == "table" and not thing.module:
            _run(connection, thing.sql)
            rows = _copy_rows(connection, source, thing.name)
            changes += rows
            tables.append((thing.name, rows))
    _copy_sequences(connection, source)
    _add_virtual(connection, [thing for thing in things if thing.module])
    for kind in ("index", "view", "trigger"):
        for thing in things:
            if thing.kind == kind:
                _run(connection, thing.sql)
    for name in ("user_version", "application_id"):
        (value,) = source.execute(f"PRAGMA {name}").fetchone()
        _run(connection, f"PRAGMA {name} = {int(value)}")
    if _run(connection, "PRAGMA foreign_key_check").fetchone() is not None:
        raise ValueError("rows refer to others that are not there")
    return SqlOutcome(changes, 0, ("table", "rows"), tuple(tables))


def _things(connection: sqlite3.Connection) -> list[Thing]:
    """What users made, as they made it; what belongs to SQLite or to us is left out."""
    found = _run(connection, "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    return [
        Thing(str(kind), str(name), str(sql))
        for kind, name, sql in found
        if not str(name).lower().startswith(("sqlite_", PREFIX))
    ]


def _drop_all(connection: sqlite3.Connection) -> None:
    """Triggers and views first; a virtual table takes its own tables with it."""
    things = _things(connection)
    virtual = [thing for thing in things if thing.module]
    for thing in [*(each for each in things if each.kind in ("trigger", "view")), *virtual]:
        _run(connection, f"DROP {'TABLE' if thing.module else thing.kind} {quoted(thing.name)}")
    for thing in _things(connection):
        if thing.kind == "table":
            _run(connection, f"DROP TABLE {quoted(thing.name)}")
    for (name,) in _run(
        connection, "SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'"
    ).fetchall():
        _run(connection, f"DROP TABLE {quoted(str(name))}")


def _copy_rows(connection: sqlite3.Connection, source: sqlite3.Connection, name: str) -> int:
    """All rows, under their rowids; returns how many."""
    columns = [str(row[1]) for row in source.execute(f"PRAGMA table_xinfo({quoted(name)})") if row[6] == 0]
    (without,) = source.execute(
        "SELECT wr FROM pragma_table_list WHERE name = ? AND schema = 'main'", (name,)
    ).fetchone()
    taken = {column.lower() for column in columns}
    rowid = next((each for each in _NAMES if not without and each not in taken), None)
    listed = ", ".join([*([rowid] if rowid else []), *map(quoted, columns)])
    marks = ", ".join("?" * (len(columns) + (rowid is not None)))
    rows = source.execute(f"SELECT {listed} FROM {quoted(name)}")  # noqa: S608
    done = connection.executemany(f"{OURS}INSERT INTO {quoted(name)} ({listed}) VALUES ({marks})", rows)  # noqa: S608
    return max(done.rowcount, 0)


def _copy_sequences(connection: sqlite3.Connection, source: sqlite3.Connection) -> None:
    """How far AUTOINCREMENT has counted."""
    if source.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").fetchone() is None:
        return
    _run(connection, "DELETE FROM sqlite_sequence")
    rows = source.execute("SELECT name, seq FROM sqlite_sequence ORDER BY rowid")
    for row in rows:
        _run(connection, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", row)


def _add_virtual(connection: sqlite3.Connection, virtual: list[Thing]) -> None:
    """Their contents are there already, in tables of their own: only the schema has to name them."""
    if not virtual:
        return
    _run(connection, "PRAGMA writable_schema = ON")
    try:
        for thing in virtual:
            row = (thing.name, thing.name, thing.sql)
            _run(connection, "INSERT INTO sqlite_schema VALUES ('table', ?, ?, 0, ?)", row)
    finally:
        _run(connection, "PRAGMA writable_schema = RESET")


def _run(connection: sqlite3.Connection, sql: str, parameters: tuple[object, ...] = ()) -> sqlite3.Cursor:
    return connection.execute(OURS + sql, parameters)
