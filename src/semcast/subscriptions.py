"""Subscriptions for programs without asyncio: `semcast.blocking.subscribe`."""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from semcast.blocking_group import BlockingGroup
from semcast.core.events import Lost, Purged
from semcast.core.messages import Message
from semcast.group import Group, GroupStatistics, LogBatch, Subscription
from semcast.group import subscribe as subscribe_async
from semcast.group.subscribing import Ack, Start


class _Member(BlockingGroup):
    """The member of a subscription."""

    def __init__(self, name: str, config: Path | None, how: Mapping[str, Any]) -> None:
        super().__init__(name, config, {})
        self._how = how
        self.subscription: Subscription | None = None

    async def _begin(self) -> Group:
        self.subscription = subscribe_async(self._name, config=self._config, **self._how)
        return self.subscription.group

    async def _open(self) -> Group:
        group = await super()._open()
        group.reads()
        return group

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Have it done by the loop, and wait."""
        self._call(work)


class BlockingBatch:
    """As `LogBatch`."""

    def __init__(self, batch: LogBatch, member: _Member) -> None:
        self._batch, self._member = batch, member

    @property
    def messages(self) -> Sequence[Message]:
        """Those that the program wants."""
        return self._batch.messages

    @property
    def lost(self) -> Sequence[Lost]:
        """What will not come, and nothing instead."""
        return self._batch.lost

    def __len__(self) -> int:
        return len(self._batch)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._batch)

    def ack(self) -> None:
        """As `LogBatch.ack`."""
        self._member.run(self._batch.ack())


class BlockingSubscription:
    """As `Subscription`. Made by `subscribe`; one thread iterates."""

    def __init__(self, name: str, config: Path | None, how: Mapping[str, Any]) -> None:
        self._member = _Member(name, config, how)

    def __enter__(self) -> "BlockingSubscription":
        self._member.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading. A durable session continues with the next program of its name."""
        self._member.close()

    @property
    def group(self) -> BlockingGroup:
        """The member behind it; it may send, too."""
        return self._member

    @property
    def away(self) -> bool:
        """Whether no logger has heard this program for a while."""
        return self._member.subscription is not None and self._member.subscription.away

    def stats(self) -> GroupStatistics:
        """A snapshot."""
        return self._member.stats()

    def receipts(self) -> list[Purged]:
        """What was replaced before this program was given it, and by what, since the last call."""
        return self._member.receipts()

    def __iter__(self) -> Iterator[BlockingBatch]:
        return self.batches()

    def batches(self, timeout: float | None = None) -> Iterator[BlockingBatch]:
        """What comes; ends when nothing has come for `timeout` seconds, or when it is closed."""
        assert self._member.subscription is not None
        for deliveries in self._member.batches(timeout):
            batch = self._member.subscription.batch_of(deliveries)
            if batch is not None:
                yield BlockingBatch(batch, self._member)


def subscribe(
    group: str,
    *,
    durable: str = "",
    start: Start = "new",
    ack: Ack = "auto",
    filter: str | Sequence[str] | Callable[[Message], bool] | None = None,  # noqa: A002 (says it best)
    config: Path | None = None,
    **settings: Any,
) -> BlockingSubscription:
    """Be given what a group logs; everything as for `semcast.subscribe`."""
    how = {"durable": durable, "start": start, "ack": ack, "filter": filter, **settings}
    return BlockingSubscription(group, config, how)
