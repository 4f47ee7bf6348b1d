"""Files for `semcast sql NAME --load`: read piece by piece, as batches of statements."""

import csv
import hashlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from semcast.cli.errors import UsageError
from semcast.server.loading import Batch
from semcast.sql.actions import Value
from semcast.sql.names import quoted
from semcast.sql.writer import MAX_LENGTH

ROWS = 1000
"""Rows, or statements, of a batch at most."""
BYTES = 200_000
"""Characters of a batch, about: a row that is longer is one by itself."""
PARAMETERS = 30_000
"""Values of a batch, which is one statement: SQLite takes 32,766."""
_OURS = re.compile(r"(BEGIN|COMMIT|END|PRAGMA\s+foreign_keys)\b", re.IGNORECASE)
"""What `.dump` of SQLite writes around the statements: each batch is a transaction here anyway."""


class Form(NamedTuple):
    """How a file of rows is written."""

    table: str
    header: bool = True
    delimiter: str = ","
    null: str = ""


def label(path: Path, form: Form | None, name: str) -> str:
    """By which the servers know this load: the same file in the same way is loaded once."""
    with path.open("rb") as file:
        hashed = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=20))
    hashed.update(repr((form, name, ROWS, BYTES, PARAMETERS)).encode())
    return f"load {hashed.hexdigest()}"


def batches_of(path: Path, form: Form | None) -> Iterator[Batch]:
    """What is in a file: rows where it has a form, else statements."""
    try:
        with path.open(encoding="utf-8-sig", newline="" if form else None) as file:
            yield from _rows(file, form, path) if form else _statements(file, path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: {error}") from error


def _rows(file: IO[str], form: Form, path: Path) -> Iterator[Batch]:
    csv.field_size_limit(MAX_LENGTH)
    reader = csv.reader(file, delimiter=form.delimiter, strict=True)
    columns = [name.strip() for name in next(reader, [])] if form.header else None
    if columns is not None and (not columns or "" in columns):
        raise UsageError(f"{path}: its first line has to name the columns, or say --no-header")
    into = quoted(form.table) + (f" ({', '.join(map(quoted, columns))})" if columns else "")
    width = len(columns) if columns else 0
    some: list[list[str]] = []
    size = 0
    for row in reader:
        if not row:
            continue  # an empty line
        width = width or len(row)
        if len(row) != width:
            raise UsageError(f"{path}: line {reader.line_num} has {len(row)} fields, and not {width}")
        if some and (len(some) >= ROWS or size >= BYTES or (len(some) + 1) * width > PARAMETERS):
            yield _insert(into, some, form)
            some, size = [], 0
        some.append(row)
        size += sum(map(len, row))
    if some:
        yield _insert(into, some, form)


def _insert(into: str, rows: list[list[str]], form: Form) -> Batch:
    one = "(" + ", ".join("?" * len(rows[0])) + ")"
    values: list[Value] = [None if field == form.null else field for row in rows for field in row]
    sql = f"INSERT INTO {into} VALUES {', '.join([one] * len(rows))}"  # noqa: S608
    return Batch([(sql, values)], len(rows))


def _statements(file: IO[str], path: Path) -> Iterator[Batch]:
    some: list[tuple[str, list[Value]]] = []
    size = 0
    for sql in _split(file, path):
        if _OURS.match(sql):
            continue
        if some and (len(some) >= ROWS or size >= BYTES):
            yield Batch(some, len(some))
            some, size = [], 0
        some.append((sql, []))
        size += len(sql)
    if some:
        yield Batch(some, len(some))


def _split(file: IO[str], path: Path) -> Iterator[str]:
    """Statements, each up to its semicolon."""
    pending, begun = "", 0
    for number, line in enumerate(file, 1):
        if not pending.strip():
            pending, begun = "", number
            if line.lstrip().startswith("--"):
                continue
        for part in re.findall(r"[^;]*;|[^;]+\Z", line):
            pending += part
            if part.endswith(";") and sqlite3.complete_statement(pending):
                if pending.strip() != ";":
                    yield pending.strip()
                pending, begun = "", number
    if pending.strip():
        raise UsageError(f"{path}: the statement that begins in line {begun} does not end")
