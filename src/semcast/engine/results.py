"""What statements did, for who asked for them."""

import msgspec

from semcast.engine.outcomes import Outcome
from semcast.sql.actions import Row, decode_outcome


class SqlResult(msgspec.Struct, frozen=True):
    """What statements did."""

    position: int
    """Their place in the order of all."""
    changes: int = 0
    last_rowid: int = 0
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


def result_of(outcome: Outcome) -> SqlResult:
    """What the engine says, for a database."""
    found = decode_outcome(outcome.result)
    return SqlResult(outcome.position, found.changes, found.last_rowid, found.columns, found.rows)
