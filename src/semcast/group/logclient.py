"""`log`: read the log of a group by position, and have batches logged, as a program that is no member.

A log has dense positions of its own. `ends` says which there are, `read` gives what is between two of them,
`at_time` finds where a time begins, and `publish` logs a batch, once for its key, however often it is asked.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import msgspec

from semcast.core.annotations import Annotation, Item
from semcast.core.ids import SECOND, Nanos
from semcast.core.messages import Message, batch_of
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError, GroupClosedError, GroupError
from semcast.group.group import Group
from semcast.group.settings import check_group, resolve
from semcast.protocols.gossip.client import LogClient, Page, Question, Result
from semcast.protocols.gossip.publishing import check_batch
from semcast.protocols.gossip.queries import (
    MAX_KEY,
    PAGE_BYTES,
    PAGE_MESSAGES,
    Ask,
    Denied,
    Line,
    Put,
    Read,
    Taken,
    Told,
)
from semcast.wire.annotations import from_wire, to_wire

_PART = 1 << 14
"""Bytes of messages in one part of a batch; a larger message is a part of its own."""


class LogError(GroupError):
    """A logger does not do what it was asked for, and why."""


class LogOffsetError(LogError):
    """A position beyond either end of the log."""


class OtherLogError(LogError):
    """The log is another one than before: a disk was lost, or a folder was removed."""


class LogIdentity(msgspec.Struct, frozen=True):
    """Positions belong to one log of one logger."""

    logger: str
    log: int


class LogEnds(msgspec.Struct, frozen=True):
    """The positions of a log: `first` up to, but not with, `next`."""

    first: int
    """What is before it was trimmed."""
    next: int
    """The position that the next message will have."""
    oldest: Nanos
    """The time of day when the first message that is there was logged; 0 in an empty log."""
    newest: Nanos


class LogEntry(msgspec.Struct, frozen=True):
    """A message of a log."""

    position: int
    at: Nanos
    """The time of day when it was logged."""
    message: Message


class LogPage(msgspec.Struct, frozen=True):
    """What was read."""

    entries: list[LogEntry]
    next: int
    """Where to go on."""
    trimmed: int
    """Positions between where it was read from and `next` whose messages are gone, and nothing replaced."""


class LogReceipt(msgspec.Struct, frozen=True):
    """A batch is on disk."""

    position: int
    """Of its first message."""
    known: bool
    """Whether it had been logged before, by this key."""


class Log:
    """Made by `log`. Enter it with `async with`: that waits for a logger.

    Args:
        group: the seat of this program, not entered yet.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._identity: LogIdentity | None = None

    async def __aenter__(self) -> "Log":
        await self._group.__aenter__()
        found: asyncio.Future[LogIdentity] = asyncio.get_running_loop().create_future()

        def look(client: LogClient, _now: Nanos) -> None:
            assert client.logger is not None
            _tell(found, LogIdentity(client.logger.name, client.log))

        self._call(look)
        self._identity = await found
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop asking."""
        await self._group.close()

    @property
    def group(self) -> Group:
        """The seat of this program: it is in no view with others."""
        return self._group

    @property
    def identity(self) -> LogIdentity:
        """Which log this is. If its logger has another one later, everything raises `OtherLogError`."""
        if self._identity is None:
            raise GroupClosedError("the log is not open: use `async with`")
        return self._identity

    async def ends(self) -> LogEnds:
        """What can be read."""
        told = await self._told(Ask(0, 0, "ends"))
        return LogEnds(told.first, told.next, told.oldest, told.newest)

    async def at_time(self, at: datetime | float | Nanos) -> int:
        """The first position that was given at a time of day or after it; the end if there is none.

        Args:
            at: a datetime, seconds since 1970 as a float, or nanoseconds as an int, as entries have it.
        """
        if not isinstance(at, int):
            at = math.floor((at.timestamp() if isinstance(at, datetime) else at) * SECOND)
        return (await self._told(Ask(0, 0, "time", max(0, at)))).first

    async def read(
        self, lo: int, hi: int, *, most: int = PAGE_MESSAGES, size: int = PAGE_BYTES, prefix: str = ""
    ) -> LogPage:
        """A page: messages at positions from `lo` to before `hi`, until one of the bounds is reached.

        What was replaced by a later message is left out. Read on from `next`.

        Args:
            lo: where to begin.
            hi: where to stop; beyond the end, at the end.
            most: messages, at most.
            size: bytes of these, at most; the last may exceed it.
            prefix: of messages about an item, only those whose item begins with it.

        Raises:
            LogOffsetError: `lo` is beyond the end, or was trimmed.
        """
        if lo < 0 or hi < lo:
            raise LogOffsetError(f"positions from {lo} to {hi}: there are none")
        bounded = max(1, min(most, PAGE_MESSAGES)), max(1, min(size, PAGE_BYTES))
        page = await self._ask(Read(0, 0, lo, hi, *bounded, prefix))
        assert isinstance(page, Page)
        return LogPage([_entry(line) for line in page.lines], page.next, page.trimmed)

    async def scan(self, lo: int, hi: int, *, prefix: str = "") -> AsyncIterator[LogPage]:
        """Pages from `lo` on, up to `hi` or the end, whichever comes first."""
        hi = min(hi, (await self.ends()).next)
        while lo < hi:
            page = await self.read(lo, hi, prefix=prefix)
            yield page
            lo = page.next

    async def publish(
        self, key: bytes, payloads: Sequence[bytes], items: Sequence[str | None] | None = None
    ) -> LogReceipt:
        """Log a batch, once for its key, and send it to all members; returns when it is on disk.

        Args:
            key: by which the logger knows the batch again (the last 4096 of them).
            payloads: of its messages, in order.
            items: what each is about, if anything.
        """
        notes: list[Annotation | None] = [
            None if item is None else Item(item) for item in items or [None] * len(payloads)
        ]
        if len(notes) != len(payloads):
            raise LogError(f"{len(payloads)} messages, and {len(notes)} items")
        try:
            check_batch(key, payloads, notes)
        except ValueError as error:
            raise LogError(str(error)) from error
        taken = await self._ask(_parts(key, payloads, notes))
        assert isinstance(taken, Taken)
        return LogReceipt(taken.position, taken.known)

    async def forget(self, logger: str) -> None:
        """Have the loggers go on without one that never comes back; returns when all have that on disk."""
        await self._told(Ask(0, 0, "forget", 0, logger))

    # Asking

    async def _told(self, question: Ask) -> Told:
        told = await self._ask(question)
        assert isinstance(told, Told)
        return told

    async def _ask(self, question: Question) -> Result:
        self._group.is_over()
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def ask(client: LogClient, now: Nanos) -> None:
            try:
                client.ask(now, question, lambda result: _tell(answer, result))
            except ValueError as error:
                _tell(answer, Denied(0, "invalid", str(error)))

        self._call(ask)
        result = await answer
        if isinstance(result, Denied):
            _refuse(result)
        return result

    def _call(self, what: Callable[[LogClient, Nanos], None]) -> None:
        def call(stack: Stack, now: Nanos) -> None:
            assert isinstance(stack, LogClient)
            what(stack, now)

        self._group.command(call)


def _tell(future: "asyncio.Future[Any]", what: object) -> None:
    """In the loop's thread: the program has an answer."""

    def settle() -> None:
        if not future.done():
            future.set_result(what)

    with suppress(RuntimeError):  # the loop has ended, and nobody waits
        future.get_loop().call_soon_threadsafe(settle)


def _refuse(denied: Denied) -> NoReturn:
    kinds: dict[str, type[LogError]] = {"offset": LogOffsetError, "log": OtherLogError}
    raise kinds.get(denied.trouble, LogError)(denied.why)


def _entry(line: Line) -> LogEntry:
    batch = batch_of(line.sender, line.seq, [line.payload], from_wire(line.annotation))
    [message] = batch.messages()
    return LogEntry(line.position, line.at, message)


def _parts(key: bytes, payloads: Sequence[bytes], notes: Sequence[Annotation | None]) -> list[Put]:
    """In the order of the messages, each part small enough for a datagram."""
    parts: list[list[Any]] = [[]]
    room = _PART
    for payload, note in zip(payloads, notes, strict=True):
        size = len(payload) + MAX_KEY
        if parts[-1] and size > room:
            parts.append([])
            room = _PART
        parts[-1].append((payload, to_wire(note)))
        room -= size
    return [Put(0, 0, key, number, len(parts), part) for number, part in enumerate(parts)]


def log(group: str, *, logger: str = "", config: Path | None = None, **settings: Any) -> Log:
    """Ask the logger of a group: `async with semcast.log("prices") as log: ends = await log.ends()`.

    Args:
        group: its name. Its stack is gossip, and it needs a logger (`semcast logger`): this waits for one.
        logger: the name of the logger to ask, where there are several; each has positions of its own.
        config: folder of `semcast.toml`.
        **settings: where the group is (`bind`, `peers`, `key_file`, ...), as for `join`.
    """
    check_group(group)
    for name in ("stack", "receive", "logger", "protocol", "data", "home", "client"):
        if name in settings:
            raise ConfigurationError(f"{name} is not for logs")
    given = {**settings, "stack": "gossip", "client": True, "home": logger, "receive": False}
    return Log(Group(group, resolve(given, config)))
