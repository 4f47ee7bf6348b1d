"""Logs by position for programs without asyncio: `semcast.blocking.log`."""

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from semcast.blocking_group import BlockingGroup
from semcast.core.ids import Nanos
from semcast.group import Group
from semcast.group.logclient import Log
from semcast.group.logclient import log as log_async
from semcast.group.logpages import LogEnds, LogIdentity, LogPage, LogReceipt, LogRuns
from semcast.protocols.gossip.queries import PAGE_BYTES, PAGE_MESSAGES

T = TypeVar("T")


class _Seat(BlockingGroup):
    """Of a program that asks a logger."""

    def __init__(self, name: str, config: Path | None, how: Mapping[str, Any]) -> None:
        super().__init__(name, config, {})
        self._how = how
        self.log: Log

    async def _open(self) -> Group:
        self.log = log_async(self._name, config=self._config, **self._how)
        await self.log.__aenter__()
        return self.log.group

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have it done by the loop, and wait."""
        return self._call(work)


class BlockingLog:
    """As `Log`. Made by `log`; any thread may ask."""

    def __init__(self, name: str, config: Path | None, how: Mapping[str, Any]) -> None:
        self._seat = _Seat(name, config, how)

    def __enter__(self) -> "BlockingLog":
        self._seat.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop asking."""
        self._seat.close()

    @property
    def identity(self) -> LogIdentity:
        """Which log this is."""
        return self._seat.log.identity

    @property
    def loggers(self) -> frozenset[str]:
        """As `Log.loggers`."""
        return self._seat.log.loggers

    def ends(self) -> LogEnds:
        """As `Log.ends`."""
        return self._seat.run(self._seat.log.ends())

    def at_time(self, at: datetime | float | Nanos) -> int:
        """As `Log.at_time`."""
        return self._seat.run(self._seat.log.at_time(at))

    def read(
        self, lo: int, hi: int, *, most: int = PAGE_MESSAGES, size: int = PAGE_BYTES, prefix: str = ""
    ) -> LogPage:
        """As `Log.read`."""
        return self._seat.run(self._seat.log.read(lo, hi, most=most, size=size, prefix=prefix))

    def scan(self, lo: int, hi: int, *, prefix: str = "") -> Iterator[LogPage]:
        """As `Log.scan`."""
        hi = min(hi, self.ends().next)
        while lo < hi:
            page = self.read(lo, hi, prefix=prefix)
            yield page
            lo = page.next

    def scan_runs(self, lo: int, hi: int, *, prefix: str = "") -> Iterator[LogRuns]:
        """As `Log.scan_runs`."""
        pages = aiter(self._seat.log.scan_runs(lo, hi, prefix=prefix))

        async def following() -> LogRuns | None:
            return await anext(pages, None)

        while (page := self._seat.run(following())) is not None:
            yield page

    def publish(
        self, key: bytes, payloads: Sequence[bytes], items: Sequence[str | None] | None = None
    ) -> LogReceipt:
        """As `Log.publish`."""
        return self._seat.run(self._seat.log.publish(key, payloads, items))

    def stage(
        self,
        stage: str,
        payloads: Sequence[bytes],
        items: Sequence[str | None] | None = None,
        *,
        first: int = 0,
    ) -> int:
        """As `Log.stage`."""
        return self._seat.run(self._seat.log.stage(stage, payloads, items, first=first))

    def publish_staged(self, key: bytes, stages: Sequence[tuple[str, int]]) -> LogReceipt:
        """As `Log.publish_staged`."""
        return self._seat.run(self._seat.log.publish_staged(key, stages))

    def abandon(self, stages: Sequence[str]) -> None:
        """As `Log.abandon`."""
        self._seat.run(self._seat.log.abandon(stages))

    def forget(self, logger: str) -> None:
        """As `Log.forget`."""
        self._seat.run(self._seat.log.forget(logger))


def log(
    group: str,
    *,
    logger: str = "",
    timeout: float | None = None,
    config: Path | None = None,
    **settings: Any,
) -> BlockingLog:
    """Ask the logger of a group; everything as for `semcast.log`."""
    return BlockingLog(group, config, {"logger": logger, "timeout": timeout, **settings})
