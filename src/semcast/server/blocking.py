"""A client for programs without asyncio: the same calls, which block."""

from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from semcast.engine.database import SqlAnswer, Step
from semcast.engine.loopthread import LoopThread
from semcast.engine.results import SqlResult
from semcast.server.client import RESTORE_TIMEOUT, Client, Expected, Promise
from semcast.server.verifying import Verified
from semcast.sql.actions import Value

T = TypeVar("T")


class BlockingPromise:
    """As `Promise`."""

    def __init__(self, client: "BlockingClient", promise: Promise) -> None:
        self._client, self._promise = client, promise

    def ordered(self, timeout: float | None = None) -> SqlResult:
        """Wait until it has its place; what it did there."""
        return self._client._call(self._promise.ordered(timeout))


class BlockingClient:
    """As `Client`. Made by `semcast.blocking.database`; any thread may use it."""

    def __init__(self, name: str, servers: Sequence[str], settings: Mapping[str, Any]) -> None:
        self._loop = LoopThread(f"client of {name}")
        try:
            self._client = self._loop.call(_opened(name, servers, settings))
        except BaseException:
            self._loop.stop()
            raise

    def __enter__(self) -> "BlockingClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        try:
            self._call(self._client.close())
        finally:
            self._loop.stop()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.call(work)

    def _updated(self, work: Coroutine[Any, Any, SqlResult | Promise]) -> SqlResult | BlockingPromise:
        done = self._call(work)
        return BlockingPromise(self, done) if isinstance(done, Promise) else done

    def execute(
        self,
        sql: str,
        parameters: Sequence[Value] = (),
        *,
        level: str = "strict",
        number: int = 0,
        timeout: float | None = None,
    ) -> SqlResult | BlockingPromise:
        """As `Client.execute`."""
        return self._updated(
            self._client.execute(sql, parameters, level=level, number=number, timeout=timeout)
        )

    def transaction(
        self,
        steps: Sequence[Step],
        *,
        expect: Sequence[Expected] = (),
        level: str = "strict",
        number: int = 0,
        timeout: float | None = None,
    ) -> SqlResult | BlockingPromise:
        """As `Client.transaction`."""
        return self._updated(
            self._client.transaction(steps, expect=expect, level=level, number=number, timeout=timeout)
        )

    def put(
        self,
        table: str,
        key: Mapping[str, Value],
        values: Mapping[str, Value],
        *,
        at: int,
        column: str = "at",
        timeout: float | None = None,
    ) -> BlockingPromise:
        """As `Client.put`."""
        return BlockingPromise(
            self, self._call(self._client.put(table, key, values, at=at, column=column, timeout=timeout))
        )

    def add(
        self,
        table: str,
        key: Mapping[str, Value],
        column: str,
        delta: int | float,
        *,
        timeout: float | None = None,
    ) -> BlockingPromise:
        """As `Client.add`."""
        return BlockingPromise(self, self._call(self._client.add(table, key, column, delta, timeout=timeout)))

    def query(
        self,
        sql: str,
        parameters: Sequence[Value] = (),
        *,
        level: str = "session",
        timeout: float | None = None,
    ) -> SqlAnswer:
        """As `Client.query`."""
        return self._call(self._client.query(sql, parameters, level=level, timeout=timeout))

    def status(self) -> Mapping[str, Any]:
        """As `Client.status`."""
        return self._call(self._client.status())

    def members(self) -> Mapping[str, Any]:
        """As `Client.members`."""
        return self._call(self._client.members())

    def add_server(self, server: str, *, weight: int = 1, timeout: float | None = None) -> int:
        """As `Client.add_server`."""
        return self._call(self._client.add_server(server, weight=weight, timeout=timeout))

    def remove_server(self, server: str, *, timeout: float | None = None) -> int:
        """As `Client.remove_server`."""
        return self._call(self._client.remove_server(server, timeout=timeout))

    def weigh_server(self, server: str, weight: int, *, timeout: float | None = None) -> int:
        """As `Client.weigh_server`."""
        return self._call(self._client.weigh_server(server, weight, timeout=timeout))

    def verify(self, *, timeout: float | None = None) -> Verified:
        """As `Client.verify`."""
        return self._call(self._client.verify(timeout=timeout))

    def backup(self, target: Path) -> int:
        """As `Client.backup`."""
        return self._call(self._client.backup(target))

    def restore(self, source: Path, *, replace: bool = False, timeout: float = RESTORE_TIMEOUT) -> SqlResult:
        """As `Client.restore`."""
        return self._call(self._client.restore(source, replace=replace, timeout=timeout))


async def _opened(name: str, servers: Sequence[str], settings: Mapping[str, Any]) -> Client:
    return await Client(name, servers, **settings)
