"""What the tables were like at a position: digests, made by a thread while the server goes on.

A connection that reads keeps what was committed when it began, whatever is written later. So the digests are
those of that very position, and nobody waits for them but who asks.
"""

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from semcast.sql.digest import digests

KEPT: Final = 4
"""Positions, the last ones."""


class Marks:
    """Of one database.

    Args:
        path: the file.
        threaded: whether a thread makes digests. A simulated world has none: there they are made at once.
    """

    def __init__(self, path: Path, *, threaded: bool = True) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "semcast digests") if threaded else None
        self._found: dict[int, Future[dict[str, str]]] = {}

    def set(self, position: int) -> None:
        """All up to this position is committed, and nothing behind it."""
        address = f"{self._path.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # from here on it sees no news
        future = self._found[position] = self._submit(connection)
        future.add_done_callback(lambda _: connection.close())
        for old in sorted(self._found)[:-KEPT]:
            self._found.pop(old).cancel()

    def _submit(self, connection: sqlite3.Connection) -> "Future[dict[str, str]]":
        if self._thread is not None:
            return self._thread.submit(_digests, connection)
        done: Future[dict[str, str]] = Future()
        done.set_result(_digests(connection))
        return done

    def at(self, position: int) -> "Future[dict[str, str]] | None":
        """The digest of each table there, once it is made; None where nobody marked it."""
        return self._found.get(position)

    def close(self) -> None:
        """Wait for what is being read."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)


def _digests(connection: sqlite3.Connection) -> dict[str, str]:
    return {name: found.hex() for name, found in digests(connection).items()}
