"""Queries of a database in this process: quick ones in the thread of the event loop, others in threads."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from semcast.engine.replica import Replica
from semcast.engine.requesting import Seen
from semcast.engine.sqlstore import SqlStore
from semcast.engine.waiting import within
from semcast.group.errors import GroupClosedError
from semcast.sql.actions import Row, Value
from semcast.sql.reading import MAX_SECONDS, QueryRows, SlowQueryError

T = TypeVar("T")
QUICK = 0.02
"""Seconds that a query may take in the thread of the event loop; what takes longer begins anew in another."""
_READERS = 4
"""Threads that answer long queries, at most; more queries wait for these."""
_SLOW = 1000
"""Statements that are known to take long, at most."""

Shown = tuple[tuple[str, ...], list[Row], int, Seen]
"""Columns, rows, the position of what is green, and what was shown besides."""


class QueryReading:
    """Of one server.

    Args:
        replica: the server.
        store: its file.
    """

    def __init__(self, replica: Replica, store: SqlStore) -> None:
        self._replica = replica
        self._store = store
        self._readers = asyncio.Semaphore(_READERS)
        self._slow: set[str] = set()
        self._apart: dict[asyncio.Future[Any], threading.Event] = {}
        self._closing = False

    async def green(self, sql: str, parameters: Sequence[Value], seconds: float | None) -> QueryRows:
        """Of what is green: here, or, if it takes long, in a thread, so that it holds up nobody."""
        if sql not in self._slow:
            try:
                return self._store.sqlite.weak(sql, parameters, QUICK)
            except SlowQueryError:
                if len(self._slow) >= _SLOW:
                    self._slow.clear()
                self._slow.add(sql)
        async with self._readers:
            return await self._green_apart(sql, parameters, seconds)

    async def _green_apart(self, sql: str, parameters: Sequence[Value], seconds: float | None) -> QueryRows:
        """In a thread, which stops when nobody waits any more."""
        given_up = threading.Event()
        most = MAX_SECONDS if seconds is None else min(seconds, MAX_SECONDS)
        try:
            return await self._followed(
                asyncio.to_thread(self._store.sqlite.weak, sql, parameters, most, given_up), given_up
            )
        except SlowQueryError as error:
            if self._closing:
                raise GroupClosedError(f"{self._replica.name} is closed") from None
            if most < MAX_SECONDS:
                raise TimeoutError(str(error)) from None
            raise
        finally:
            given_up.set()

    async def dirty(self, sql: str, parameters: Sequence[Value], seconds: float | None) -> Shown:
        """Of what is green, and of what has no place yet: in a thread, and nothing is applied meanwhile."""
        reading = self._followed(self._dirty(sql, parameters), threading.Event())
        return await within(seconds, reading, "what has no place yet")

    async def _dirty(self, sql: str, parameters: Sequence[Value]) -> Shown:
        async with self._replica.dirty() as (reds, seen):
            position = self._store.position
            if reds:
                found = await asyncio.to_thread(self._store.shown, sql, parameters, reds)
                return found.columns, found.rows, position, seen
        found = await self.green(sql, parameters, None)
        return found.columns, found.rows, position, seen

    async def _followed(self, reading: Coroutine[Any, Any, T], given_up: threading.Event) -> T:
        """Goes on to its end, also where nobody waits for it any more: a thread cannot be left alone."""
        task = asyncio.ensure_future(reading)
        self._apart[task] = given_up
        task.add_done_callback(self._is_over)
        return await asyncio.shield(task)

    def _is_over(self, reading: "asyncio.Future[Any]") -> None:
        del self._apart[reading]
        if not reading.cancelled():
            reading.exception()  # nobody need ask for it

    async def end(self) -> None:
        """No thread may read any more when the file is closed."""
        self._closing = True
        for given_up in self._apart.values():
            given_up.set()
        while self._apart:
            await asyncio.wait(list(self._apart))
