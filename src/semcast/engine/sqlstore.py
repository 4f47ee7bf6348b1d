"""A SQLite file as the replicated state of a server: tables, position and outcomes in one transaction."""

import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from semcast.engine.errors import ReplicaError
from semcast.engine.outcomes import KeptOutcome, Outcome, Outcomes
from semcast.engine.store import Done, Todo, TooSlowError
from semcast.replication.actions import Asked
from semcast.sql import SqliteStore, Statement
from semcast.sql import snapshot as copies
from semcast.sql.actions import SqlOutcome, Value, encode
from semcast.sql.errors import SlowActionsError
from semcast.sql.marks import Marks
from semcast.sql.reading import QueryRows

FILE = "database.sqlite"
_DONE, _FLOOR = b"d", b"f"


class AnswerRows(msgspec.Struct, frozen=True, array_like=True):
    """An answer, as it is given to who asked."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


_decode_statement = msgspec.msgpack.Decoder(Statement).decode
_decode_rows = msgspec.msgpack.Decoder(AnswerRows).decode


def question(sql: str, parameters: Sequence[object]) -> bytes:
    """A query, as the engine knows questions."""
    return encode(Statement(sql, tuple(parameters)))


def rows_of(result: bytes) -> AnswerRows:
    """What a query gave."""
    return _decode_rows(result)


class SqlStore:
    """The state of one server in a file.

    Args:
        path: the file; made if it is missing.
        fresh: forget what is there: the log has all of it.
        threaded: whether there are threads; a simulated world has none.
    """

    def __init__(self, path: Path, *, fresh: bool = False, threaded: bool = True) -> None:
        self._path = path
        self._writing = threading.Lock()  # whoever uses the connection that writes, in whatever thread
        self.marks = Marks(path, threaded=threaded)
        if fresh:
            copies.remove(path)
        self._open()

    def _open(self) -> None:
        self.sqlite = SqliteStore(self._path)
        self.position, self.stamp = self.sqlite.position, self.sqlite.stamp
        self.outcomes = Outcomes()
        self.outcomes.restore(_kept(self.sqlite))
        self._shown: list[Todo] = []

    def apply(self, actions: Sequence[Todo], upto: int, seconds: float | None = None) -> list[Done]:
        """In one transaction, in any thread."""
        found: list[Done] = []

        def notes(outcomes: list[SqlOutcome]) -> dict[bytes, bytes | None]:
            kept: dict[bytes, bytes | None] = {}
            for (_, context, token, _, asked), outcome in zip(actions, outcomes, strict=True):
                if token or asked is not None:
                    result = b"" if outcome.error else encode(outcome)
                    one = Outcome(context.position, result, outcome.error)
                    found.append((token, asked, one))
                    if asked is not None:
                        self._keep(kept, asked, one)
            return kept

        with self._writing:
            self._shown = []
            try:
                self.sqlite.apply(list(map(_ordered, actions)), notes, upto, seconds)
            except SlowActionsError as error:
                raise TooSlowError(str(error)) from error
            self.position = upto
        return found

    def _keep(self, kept: dict[bytes, bytes | None], asked: Asked, outcome: Outcome) -> None:
        """What is to be written beside the tables, so that a client may ask again."""
        gone = self.outcomes.add(asked, outcome)
        key = _key(asked.client, asked.number)
        kept[key] = encode((outcome.position, outcome.result, outcome.error))
        if floor := self.outcomes.floor(asked.client):
            kept[_key(asked.client)] = encode(floor)
        kept.update(dict.fromkeys([_key(*each) for each in gone]))

    def query(self, question: bytes) -> bytes:
        """Of what is green."""
        asked = _decode_statement(question)
        return _rows(self.sqlite.weak(asked.sql, asked.parameters))  # type: ignore[arg-type]

    def dirty(self, question: bytes, reds: Sequence[Todo]) -> bytes:
        """Of what is green and these behind it."""
        asked = _decode_statement(question)
        return _rows(self.shown(asked.sql, asked.parameters, reds))  # type: ignore[arg-type]

    def shown(self, sql: str, parameters: Sequence[Value], reds: Sequence[Todo]) -> QueryRows:
        """The same with a statement as it is, in any thread."""
        with self._writing:
            self._show(reds)
            return self.sqlite.dirty(sql, parameters)

    def _show(self, reds: Sequence[Todo]) -> None:
        """From now on, until there is something green, dirty reads show these."""
        if list(reds[: len(self._shown)]) != self._shown:
            self.sqlite.hide_red()
            self._shown = []
        new = reds[len(self._shown) :]
        if new:
            self.sqlite.show_red(list(map(_ordered, new)))
            self._shown += new

    def mark(self, position: int) -> None:
        """By digests of all tables."""
        self.marks.set(position)

    def snapshot(self) -> bytes:
        """The whole file, as it is committed."""
        with TemporaryDirectory(dir=self._path.parent) as folder:
            copy = Path(folder) / FILE
            copies.take(self._path, copy)
            return copy.read_bytes()

    def restore(self, state: bytes) -> None:
        """Another file, if it is further."""
        with TemporaryDirectory(dir=self._path.parent) as folder:
            copy = Path(folder) / FILE
            copy.write_bytes(state)
            if copies.position_of(copy) <= self.position:
                return
        with self._writing:
            self.sqlite.close()
            copies.put_in_place(state, self._path)
            self._open()

    def durable(self) -> int:
        """Have what is done outlive a crash of the machine; up to where it does, or 0 for not now."""
        position = self.position
        return position if copies.written_back(self._path) else 0

    def close(self) -> None:
        """Close the file."""
        self.marks.close()
        self.sqlite.close()


def _ordered(todo: Todo) -> tuple[bytes, int, int]:
    body, context, _, call, _ = todo
    if call is not None:
        raise ReplicaError("a database has no procedures: all its servers must be databases")
    return body, context.stamp, context.seed


def _rows(answer: QueryRows) -> bytes:
    return encode(AnswerRows(answer.columns, answer.rows))


def _key(client: str, number: int | None = None) -> bytes:
    """Where the outcome of a request is written beside the tables; without a number, the floor."""
    return _FLOOR + client.encode() if number is None else _DONE + number.to_bytes(8, "big") + client.encode()


def _kept(sqlite: SqliteStore) -> KeptOutcome:
    done: dict[str, dict[int, tuple[int, bytes, str]]] = {}
    floors: dict[str, int] = {}
    for key, value in sqlite.notes():
        if key[:1] == _FLOOR:
            floors[key[1:].decode()] = msgspec.msgpack.decode(value, type=int)
        else:
            client, number = key[9:].decode(), int.from_bytes(key[1:9], "big")
            done.setdefault(client, {})[number] = msgspec.msgpack.decode(value, type=tuple[int, bytes, str])
    return KeptOutcome(done, floors)
