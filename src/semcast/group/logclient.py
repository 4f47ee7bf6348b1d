"""`log`: read the log of a group by position, and have batches logged, as a program that is no member.

A log has dense positions of its own. `ends` says which there are, `read` gives what is between two of them,
`at_time` finds where a time begins, and `publish` logs a batch, once for its key, however often it is asked.
"""

import asyncio
import math
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import msgspec

from semcast.core.annotations import Annotation, Item
from semcast.core.ids import SECOND, Nanos
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError, GroupClosedError, GroupError
from semcast.group.group import Group
from semcast.group.logpages import LogEnds, LogIdentity, LogPage, LogReceipt, LogRuns, run_of
from semcast.group.settings import check_group, resolve
from semcast.protocols.gossip.client import LogClient, Page, Question, Result
from semcast.protocols.gossip.publishing import MAX_BATCH, MAX_MESSAGES, check_batch, check_key
from semcast.protocols.gossip.queries import (
    PAGE_BYTES,
    PAGE_MESSAGES,
    Ask,
    Denied,
    Put,
    Read,
    Release,
    Taken,
    Told,
)
from semcast.protocols.gossip.streamruns import item_bytes
from semcast.wire.annotations import to_wire
from semcast.wire.limits import MAX_SEQ

_AHEAD = 4
"""Pages that are on their way at a time: what they hold must fit into the buffer of a socket."""
_PIECE = 1 << 18
"""Bytes of a piece of a large batch: a few of them must fit into the buffer of a socket."""
_BESIDE = 8
"""Bytes that a message takes on the wire besides what it says."""
_PART = 1 << 14
"""Bytes of messages in one part of a batch; a larger message is a part of its own."""


class LogError(GroupError):
    """A logger does not do what it was asked for, and why."""


class LogAwayError(LogError):
    """No logger answered for as long as the program was ready to wait."""


class LogOffsetError(LogError):
    """A position beyond either end of the log."""


class LogStageError(LogError):
    """Pieces of a batch are not there: it was given up, or never came."""


class LogFullError(LogError):
    """The logger has no room for more pieces of batches that are not published."""


class OtherLogError(LogError):
    """The log is another one than before: a disk was lost, or a folder was removed."""


class Log:
    """Made by `log`. Enter it with `async with`: that waits for a logger.

    Args:
        group: the seat of this program, not entered yet.
        timeout: seconds to wait for an answer; None for as long as it takes.
    """

    def __init__(self, group: Group, timeout: float | None = None) -> None:
        self._group = group
        self._timeout = timeout
        self._identity: LogIdentity | None = None

    async def __aenter__(self) -> "Log":
        async with self._patience():
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

    @property
    def loggers(self) -> frozenset[str]:
        """The names of all loggers of the group that have answered so far: each has a log of its own."""
        stack = self._group.stack
        assert isinstance(stack, LogClient)
        return frozenset(stack.heard)

    async def ends(self) -> LogEnds:
        """What can be read."""
        told = await self._told(Ask(0, 0, "ends"))
        return LogEnds(told.first, told.next, told.oldest, told.newest, told.settled)

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
        page = await self.read_runs(lo, hi, most=most, size=size, prefix=prefix)
        return LogPage([entry for run in page.runs for entry in run.entries()], page.next, page.trimmed)

    async def read_runs(
        self, lo: int, hi: int, *, most: int = PAGE_MESSAGES, size: int = PAGE_BYTES, prefix: str = ""
    ) -> LogRuns:
        """As `read`, without an object for each message."""
        if lo < 0 or hi < lo:
            raise LogOffsetError(f"positions from {lo} to {hi}: the range is empty")
        bounded = max(1, min(most, PAGE_MESSAGES)), max(1, min(size, PAGE_BYTES))
        page = await self._ask(Read(0, 0, lo, min(hi, MAX_SEQ), *bounded, prefix))
        assert isinstance(page, Page)
        try:
            return LogRuns([run_of(lines) for lines in page.lines], page.next, page.trimmed)
        except ValueError as error:
            raise LogError(str(error)) from error

    async def scan_runs(self, lo: int, hi: int, *, prefix: str = "") -> AsyncIterator[LogRuns]:
        """As `scan`, without an object for each message, and several pages are on their way at a time."""
        hi = min(hi, (await self.ends()).next)
        starts = iter(range(lo, hi, PAGE_MESSAGES))
        coming = deque[asyncio.Task[list[LogRuns]]]()
        try:
            while True:
                for start in islice(starts, _AHEAD - len(coming)):
                    pages = self._pages(start, min(hi, start + PAGE_MESSAGES), prefix)
                    coming.append(asyncio.create_task(pages))
                if not coming:
                    return
                for page in await coming.popleft():
                    yield page
        finally:
            for task in coming:
                task.cancel()

    async def _pages(self, lo: int, hi: int, prefix: str) -> list[LogRuns]:
        """All that is between two positions, which is little."""
        found: list[LogRuns] = []
        while lo < hi:
            found.append(await self.read_runs(lo, hi, prefix=prefix))
            lo = found[-1].next
        return found

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

        A large batch goes to the logger in pieces first, and is in the log whole or not at all.

        Args:
            key: by which the logger knows the batch again (the last 4096 of them, and the last one of each
                owner, `owner/batch`).
            payloads: of its messages, in order.
            items: what each is about, if anything.
        """
        _check_bytes("key", key)
        notes = _notes(payloads, items)
        if len(payloads) <= MAX_MESSAGES and sum(map(len, payloads)) <= MAX_BATCH:
            return await self._put(_checked(key, payloads, notes))
        stage = uuid.uuid4().hex
        pieces = await self.stage(stage, payloads, items)
        return await self.publish_staged(key, [(stage, pieces)])

    async def stage(
        self,
        stage: str,
        payloads: Sequence[bytes],
        items: Sequence[str | None] | None = None,
        *,
        first: int = 0,
    ) -> int:
        """Give the logger messages for a batch that is logged later, by `publish_staged`.

        Returns how many pieces it has then; the next ones begin with that number. What is never published is
        given up after ten minutes.

        Args:
            stage: a name that nobody else uses.
            payloads: in order.
            items: what each is about, if anything.
            first: the number of the first piece.

        Raises:
            LogFullError: too much is staged.
        """
        if not isinstance(stage, str):
            raise TypeError(f"stage {stage!r}: must be a string")
        notes = _notes(payloads, items)
        under_way: set[asyncio.Task[LogReceipt]] = set()
        number = first
        try:
            for start, end in _cuts(payloads):
                if len(under_way) >= _AHEAD:
                    done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                    for each in done:
                        each.result()
                parts = _checked(b"-", payloads[start:end], notes[start:end])
                piece = [msgspec.structs.replace(part, stage=stage, number=number) for part in parts]
                under_way.add(asyncio.create_task(self._put(piece)))
                number += 1
            for each in under_way:
                await each
        finally:
            for each in under_way:
                each.cancel()
        return number

    async def publish_staged(self, key: bytes, stages: Sequence[tuple[str, int]]) -> LogReceipt:
        """Log what was staged as one batch, once for its key; returns when it is on disk.

        Args:
            key: as for `publish`.
            stages: with how many pieces each has; in this order.

        Raises:
            LogStageError: pieces are not there; nothing was logged.
        """
        _check_bytes("key", key)
        try:
            check_key(key)
        except ValueError as error:
            raise LogError(str(error)) from error
        return await self._put(Release(0, 0, key, list(stages)))

    async def abandon(self, stages: Sequence[str]) -> None:
        """What was staged is not wanted."""
        await self._put(Release(0, 0, b"", [(stage, 0) for stage in stages]))

    async def _put(self, question: Release | list[Put]) -> LogReceipt:
        taken = await self._ask(question)
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
        if not isinstance(question, list):
            _check_sense(question)
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def done(result: Result) -> None:
            _tell(answer, result)

        def ask(client: LogClient, now: Nanos) -> None:
            try:
                client.ask(now, question, done)
            except ValueError as error:
                _tell(answer, Denied(0, "invalid", str(error)))

        self._call(ask)
        try:
            async with self._patience():
                result = await answer
        except BaseException:
            self._call(lambda client, _now: client.drop(done))
            raise
        if isinstance(result, Denied):
            _refuse(result)
        return result

    @asynccontextmanager
    async def _patience(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except TimeoutError as error:
            name, seconds = self._group.name, self._timeout
            raise LogAwayError(
                f"no logger of {name} answered for {seconds:g} s: does `semcast logger` run?"
            ) from error

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
    kinds: dict[str, type[LogError]] = {
        "offset": LogOffsetError,
        "log": OtherLogError,
        "stage": LogStageError,
        "full": LogFullError,
    }
    raise kinds.get(denied.trouble, LogError)(denied.why)


def _check_bytes(what: str, *found: bytes) -> None:
    for each in found:
        if not isinstance(each, bytes | bytearray):  # of Spark come bytearrays
            raise TypeError(f"{what} of type {type(each).__name__}: must be bytes, so encode text")


def _check_sense(question: Ask | Read | Release) -> None:
    """A logger drops what makes no sense, and the program would wait for ever."""
    try:
        msgspec.msgpack.decode(msgspec.msgpack.encode(question), type=type(question))
    except (msgspec.MsgspecError, OverflowError, TypeError) as error:
        raise LogError(f"{type(question).__name__.lower()}: {error}") from error


def _notes(payloads: Sequence[bytes], items: Sequence[str | None] | None) -> list[Annotation | None]:
    _check_bytes("payload", *payloads)
    found: list[Annotation | None] = [
        None if item is None else Item(item) for item in items or [None] * len(payloads)
    ]
    if len(found) != len(payloads):
        raise LogError(f"{len(payloads)} messages, and {len(found)} items")
    return found


def _cuts(payloads: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Where a large batch is cut into pieces."""
    start, room = 0, _PIECE
    for place, payload in enumerate(payloads):
        if place > start and (len(payload) > room or place - start >= MAX_MESSAGES):
            yield start, place
            start, room = place, _PIECE
        room -= len(payload)
    yield start, len(payloads)


def _checked(key: bytes, payloads: Sequence[bytes], notes: Sequence[Annotation | None]) -> list[Put]:
    """Messages that can be logged, in their order, in parts that are each small enough for a datagram."""
    try:
        check_batch(key, payloads, notes)
    except ValueError as error:
        raise LogError(str(error)) from error
    parts: list[list[Any]] = [[]]
    room = _PART
    for payload, note in zip(payloads, notes, strict=True):
        size = len(payload) + _BESIDE + (item_bytes(note.item) if isinstance(note, Item) else 0)
        if parts[-1] and size > room:
            parts.append([])
            room = _PART
        parts[-1].append((payload, to_wire(note)))
        room -= size
    return [Put(0, 0, key, number, len(parts), part) for number, part in enumerate(parts)]


def log(
    group: str,
    *,
    logger: str = "",
    timeout: float | None = None,
    config: Path | None = None,
    **settings: Any,
) -> Log:
    """Ask the logger of a group: `async with semcast.log("prices") as log: ends = await log.ends()`.

    Args:
        group: its name. Its stack is gossip, and it needs a logger (`semcast logger`): this waits for one.
        logger: the name of the logger to ask, where there are several; each has positions of its own.
        timeout: seconds to wait for a logger, and for each answer; then `LogAwayError` says so.
        config: folder of `semcast.toml`.
        **settings: where the group is (`bind`, `peers`, `key_file`, ...), as for `join`.
    """
    check_group(group)
    for name in ("stack", "receive", "logger", "protocol", "data", "home", "client"):
        if name in settings:
            raise ConfigurationError(f"{name} is not a setting of semcast.log")
    given = {**settings, "stack": "gossip", "client": True, "home": logger, "receive": False}
    return Log(Group(group, resolve(given, config)), timeout)
