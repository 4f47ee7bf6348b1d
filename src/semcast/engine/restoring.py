"""Sends a SQLite file through the order of all, piece by piece, and has it put in the place of all tables."""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from semcast.engine.outcomes import Outcome
from semcast.engine.replica import Replica
from semcast.engine.results import SqlResult, result_of
from semcast.engine.service import ActionError
from semcast.sql import SqlAction, restoring, snapshot
from semcast.sql.actions import Restore, Stage, encode
from semcast.sql.errors import DatabaseError, StatementError

_AT_A_TIME = 16
"""Pieces that are under way."""


async def restored(
    replica: Replica, reader: Callable[[], sqlite3.Connection], path: Path, *, replace: bool
) -> SqlResult:
    """Have it done.

    Args:
        replica: the server that asks the others.
        reader: a connection that sees what is green here.
        path: the file.
        replace: whether the database may have tables already.

    Raises:
        StatementError: the file cannot be restored.
        ActionError: the database is not empty.
    """
    with TemporaryDirectory(prefix="semcast-restore-") as folder:
        copy = Path(folder) / "copy.sqlite"
        await asyncio.to_thread(prepared, path, copy)
        wrong = "" if replace else restoring.in_the_way(reader())
        if wrong:
            raise ActionError(wrong)  # it need not be sent for that
        upload = os.urandom(12).hex()
        sent = await _send(replica, upload, restoring.pieces_of(copy))
        deed = Restore(upload, sent, await asyncio.to_thread(restoring.digest_of, copy), replace)
    outcome = await _do(replica, deed, upload, sent + 1, sent + 1)
    return result_of(outcome)


def prepared(path: Path, copy: Path) -> None:
    """Make a copy of one moment, with all that is still in the journal of the file."""
    if not path.is_file():
        raise StatementError(f"{path}: there is no such file")
    try:
        snapshot.copy(path, copy)
    except DatabaseError as error:
        raise StatementError(str(error)) from error
    restoring.check(copy, path)


async def _send(replica: Replica, upload: str, pieces: Iterator[bytes]) -> int:
    """All pieces, some at a time; returns how many. Each is done once, whatever happens."""
    sent = 0
    while some := [piece for _, piece in zip(range(_AT_A_TIME), pieces, strict=False)]:
        staged = [
            _do(replica, Stage(upload, number, piece), upload, number + 1, sent + 1)
            for number, piece in enumerate(some, sent)
        ]
        await asyncio.gather(*staged)
        sent += len(some)
    return sent


async def _do(replica: Replica, deed: Stage | Restore, upload: str, number: int, floor: int) -> Outcome:
    return await replica.update(
        encode(SqlAction((), (), deed)), client=f"restore {upload}", number=number, floor=floor
    )
