"""What a logger says of itself: its log, its sessions, and how far they are."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import msgspec

from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.core.stack import Stack
from semcast.group import Group
from semcast.protocols.gossip import Logger
from semcast.protocols.gossip.books import Books

T = TypeVar("T")


class StreamStatus(msgspec.Struct, frozen=True):
    """What one incarnation of a sender sent."""

    sender: MemberId
    messages: int
    """In the log now."""
    replaced: int
    """That left for something that is in the log; those that every session is past are not counted."""
    first: int
    """The lowest number that is there; 0 for none."""
    logged: int
    """Everything up to this number is on disk, or left the log for a reason."""
    over: bool
    """Whether its sender will send no more."""


class SessionStatus(msgspec.Struct, frozen=True):
    """Somebody who is owed what is in the log."""

    member: MemberId
    through: dict[str, int]
    """By stream: it has acknowledged everything up to there."""
    lag: int
    """Messages in the log that it has not acknowledged."""
    silent: float | None
    """Seconds since it was heard; None where nobody listens."""


class LogStatus(msgspec.Struct, frozen=True):
    """One log."""

    log: int
    """Its identity."""
    messages: int
    streams: tuple[StreamStatus, ...]
    sessions: tuple[SessionStatus, ...]
    refused: int = 0
    """How often a sender or a session was refused for want of room, since the logger started."""


def status_of(books: Books, now: Nanos | None = None) -> LogStatus:
    """Of a log, in the thread that it belongs to."""
    streams = tuple(
        StreamStatus(
            sender,
            len(stream.messages),
            len(stream.receipts),
            min(stream.messages, default=0),
            stream.logged,
            stream.last is not None,
        )
        for sender, stream in sorted(books.streams.items())
    )
    sessions = tuple(
        SessionStatus(
            row.member,
            {str(sender): seq for sender, seq in sorted(row.through.items())},
            sum(_lag(books, sender, row.through.get(sender, 0)) for sender in books.streams),
            None if now is None else (now - row.heard_at) / SECOND,
        )
        for row in books.rows.all()
    )
    messages = sum(each.messages for each in streams)
    return LogStatus(books.log, messages, streams, sessions, books.refused)


def _lag(books: Books, sender: MemberId, through: int) -> int:
    stream = books.streams[sender]
    if through >= stream.logged:
        return 0
    if not through:
        return len(stream.messages)
    return sum(1 for seq in stream.messages if seq > through)


async def ask(group: Group) -> LogStatus:
    """A logger that runs in this process."""
    return await _ask(group, status_of)


async def refusals(group: Group) -> int:
    """How often a logger in this process has refused a sender: asked often, so it must cost little."""
    return await _ask(group, lambda books, _now: books.refused)


async def _ask(group: Group, about: Callable[[Books, Nanos], T]) -> T:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(found: T) -> None:
        if not answer.done():
            answer.set_result(found)

    def look(stack: Stack, now: Nanos) -> None:
        assert isinstance(stack, Logger)
        found = about(stack.books, now)
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(settle, found)

    group.command(look)
    return await answer
