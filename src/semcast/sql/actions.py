"""What clients send to the servers of a database, and what comes back: statements and outcomes."""

from typing import TypeAlias

import msgspec

Value: TypeAlias = int | float | str | bytes | None
"""What SQLite keeps in a column."""

Row: TypeAlias = tuple[object, ...]
"""Values of one row. A decoder cannot tell `str` and `bytes` of one column beforehand, hence the type."""


class Statement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One SQL statement with its parameters, by position."""

    sql: str
    parameters: Row = ()


class Expectation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A query and the rows it must give, in order; otherwise the action that expects them changes nothing."""

    sql: str
    parameters: Row
    rows: tuple[Row, ...]


class Stage(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A piece of a SQLite file that is to be restored: kept beside the tables until all are there."""

    upload: str
    number: int
    data: bytes


class Restore(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """All tables are replaced by those of the file whose pieces were staged.

    Args:
        upload: of these pieces.
        pieces: how many.
        digest: of the file.
        replace: whether the database may have tables already, which are lost.
    """

    upload: str
    pieces: int
    digest: bytes
    replace: bool = False


Deed: TypeAlias = Stage | Restore
"""What a server does that is no statement."""


class SqlAction(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Statements that are done together or not at all, at one position of the order.

    Args:
        statements: done in this order.
        expect: what the client read before; if anything differs now, nothing is done.
        deed: what is done in the place of statements.
    """

    statements: tuple[Statement, ...]
    expect: tuple[Expectation, ...] = ()
    deed: Deed | None = None


class SqlOutcome(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an action did: the same at every server.

    Args:
        changes: rows that were inserted, updated or deleted.
        last_rowid: the row that the last insert made, 0 where there was none.
        columns: names of the columns of the last statement that gave rows.
        rows: the rows it gave.
        error: why nothing was done, empty if it was.
    """

    changes: int = 0
    last_rowid: int = 0
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    error: str = ""


_encoder = msgspec.msgpack.Encoder()
_actions = msgspec.msgpack.Decoder(SqlAction)
_outcomes = msgspec.msgpack.Decoder(SqlOutcome)

encode = _encoder.encode


def decode_action(body: bytes) -> SqlAction:
    """The action in the body of a request.

    Raises:
        msgspec.DecodeError: the bytes are no action.
    """
    return _actions.decode(body)


def decode_outcome(reply: bytes) -> SqlOutcome:
    """The outcome in a reply."""
    return _outcomes.decode(reply)
