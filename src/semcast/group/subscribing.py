"""`subscribe`: be given what a group logs, also what was sent while this program was not there.

A subscription is a member of a group with stack gossip that has a session at its loggers. It yields batches.
What was acknowledged is not given again; what was not is, to whoever subscribes by the same name next.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from semcast.core.annotations import Item
from semcast.core.events import Answered, Away, Back, Event, Lost, Purged, Rejoining
from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.core.messages import Batch, Message
from semcast.core.stack import Stack
from semcast.core.watchers import Onlooker
from semcast.group.errors import ConfigurationError, GroupClosedError, GroupError, UnconfirmedError
from semcast.group.events import GroupDelivery
from semcast.group.group import Group
from semcast.group.settings import check_group, resolve
from semcast.group.statistics import GroupStatistics
from semcast.protocols.gossip import Member

Start = Literal["new", "all", "compacted", "acknowledged"] | int | float | datetime
"""Where a subscription begins that is not known: with what comes; with what there is; with what there is and
nothing replaced; where it was, and nowhere else; at a position of the log; or at a time of day, as a datetime
or in seconds since 1970."""
Ack = Literal["auto", "explicit"]
"""Whether a batch is acknowledged when the program comes back for the next, or when it says so."""
_AGAIN = "not acknowledged, it comes again: another incarnation goes on in the place of this member"
_MODES = ("new", "all", "compacted", "acknowledged")


class Acknowledgements(Onlooker):
    """Acknowledgements that wait until a logger has them on disk. Told in the loop's thread."""

    def __init__(self) -> None:
        self.renewals = 0
        """How often another incarnation went on in the place of the member."""
        self._loop = asyncio.get_running_loop()
        self._next = 1
        self._waiting: dict[int, asyncio.Future[None]] = {}

    def open(self) -> "tuple[int, asyncio.Future[None]]":
        """A ticket, and what is done when it is answered."""
        ticket, self._next = self._next, self._next + 1
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting[ticket] = future
        future.add_done_callback(lambda _: self._waiting.pop(ticket, None))
        return ticket, future

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Look for answers."""
        for event in events:
            if type(event) is Answered:
                self.done(event.ticket)

    def on_renewal(self, now: Nanos, member: MemberId) -> None:  # noqa: ARG002
        """Who was asked is gone: at once, since a program that waits for an answer reads nothing."""
        self.renewals += 1
        self.end(UnconfirmedError(_AGAIN))

    def done(self, ticket: int) -> None:
        """It is on disk. In any thread."""
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            self._loop.call_soon_threadsafe(self.settle, ticket, None)

    def refuse(self, ticket: int, error: Exception) -> None:
        """It will not be. In any thread."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.settle, ticket, error)

    def settle(self, ticket: int, error: Exception | None) -> None:
        """In the program's thread: it is on disk, or it was refused."""
        future = self._waiting.get(ticket)
        if future is not None and not future.done():
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def end(self, error: Exception) -> None:
        """Nothing of what was said so far will be answered. In any thread."""
        for ticket in list(self._waiting):
            self.refuse(ticket, error)


class LogBatch:
    """Messages that came together, in order.

    Args:
        messages: those that the program wants.
        lost: what will not come, and nothing instead.
        upto: the last message of each stream that was given up to here.
        acknowledge: called with that, and with `renewals`; None where acknowledgements are automatic.
        renewals: how many incarnations there were before the one that was given it.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        lost: Sequence[Lost],
        upto: Mapping[MemberId, int],
        acknowledge: "Callable[[Mapping[MemberId, int], int], asyncio.Future[None]] | None",
        renewals: int = 0,
    ) -> None:
        self.messages = messages
        self.lost = lost
        self._upto = upto
        self._acknowledge = acknowledge
        self._renewals = renewals

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    async def ack(self) -> None:
        """Say that this batch and all before it are done with; returns when a logger has that on disk.

        Where acknowledgements are automatic there is nothing to say. Raises GroupClosedError if the
        subscription has ended, and UnconfirmedError if the batch comes again (`Rejoining`).
        """
        if self._acknowledge is not None:
            await self._acknowledge(self._upto, self._renewals)


class Subscription:
    """Made by `subscribe`. Enter it with `async with`, then iterate: `async for batch in subscription`.

    Args:
        group: whose member it is, not entered yet.
        answers: told of what loggers acknowledge; one of the group's watchers.
        explicit: whether the program acknowledges itself.
        wanted: whether a message is for the program.
    """

    def __init__(
        self,
        group: Group,
        answers: Acknowledgements,
        wanted: Callable[[Message], bool] | None,
        *,
        explicit: bool,
    ) -> None:
        self.group = group
        """The member behind it; it may send, too."""
        self.away = False
        """Whether no logger has heard this program for a while. What is sent meanwhile comes later."""
        self._answers = answers
        self._wanted = wanted
        self._explicit = explicit
        self._upto: dict[MemberId, int] = {}
        self._renewals = 0
        group.when_over(answers.end)

    async def __aenter__(self) -> "Subscription":
        await self.group.__aenter__()
        self.group.reads()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop reading. A durable session continues with the next program of its name."""
        await self.group.close()
        self._answers.end(GroupClosedError(f"{self.group.name} is closed"))

    @property
    def name(self) -> str:
        """Of the session."""
        return self.group.member.name

    def stats(self) -> GroupStatistics:
        """A snapshot."""
        return self.group.stats()

    def receipts(self) -> list[Purged]:
        """What was replaced before this program was given it, and by what, since the last call."""
        return self.group.receipts()

    async def __aiter__(self) -> AsyncIterator[LogBatch]:
        async for deliveries in self.group.batches():
            batch = self.batch_of(deliveries)
            if batch is not None:
                yield batch

    def batch_of(self, deliveries: Sequence[GroupDelivery]) -> LogBatch | None:
        """What is in a list for the program; None if nothing is."""
        messages: list[Message] = []
        lost: list[Lost] = []
        for each in deliveries:
            if isinstance(each, Batch):
                messages += each.messages()
                self._upto[each.sender] = each.last
            elif isinstance(each, Lost):
                lost.append(each)
            elif isinstance(each, Away | Back):
                self.away = isinstance(each, Away)
            elif isinstance(each, Rejoining):  # what was not acknowledged comes again
                self._upto.clear()
                self._renewals += 1
        if self._wanted is not None:
            messages = list(filter(self._wanted, messages))
        if not messages and not lost:
            return None
        upto = dict(self._upto)
        acknowledge = self.acknowledge if self._explicit else None
        return LogBatch(messages, lost, upto, acknowledge, self._renewals)

    def acknowledge(self, upto: Mapping[MemberId, int], renewals: int) -> "asyncio.Future[None]":
        """The program is through with these streams up to there; done when a logger has that on disk.

        Raises GroupError if there is nobody to be told.

        Args:
            upto: what it is through with.
            renewals: how many incarnations there were before the one that delivered that.
        """
        if self.group.is_over():
            raise GroupClosedError(f"{self.group.name} is closed")
        ticket, future = self._answers.open()
        answers = self._answers
        for stream, seq in upto.items():
            if self._upto.get(stream) == seq:
                del self._upto[stream]

        def tell(stack: Stack, now: Nanos) -> None:
            assert isinstance(stack, Member)
            if answers.renewals != renewals:
                answers.refuse(ticket, UnconfirmedError(_AGAIN))
                return
            known = {stream: seq for stream, seq in upto.items() if stream in stack.receiver.streams}
            if not known:  # they are over, and were acknowledged before
                answers.done(ticket)
                return
            try:
                stack.acknowledge(now, known, ticket)
            except ValueError as error:
                answers.refuse(ticket, GroupError(str(error)))

        self.group.command(tell)
        return future


def subscribe(
    group: str,
    *,
    durable: str = "",
    start: Start = "new",
    ack: Ack = "auto",
    filter: str | Sequence[str] | Callable[[Message], bool] | None = None,  # noqa: A002 (says it best)
    config: Path | None = None,
    **settings: Any,
) -> Subscription:
    """Read a logged group: `async with semcast.subscribe("prices", durable="desk") as prices: ...`.

    Args:
        group: its name. Its stack is gossip, and it needs a logger (`semcast logger`): this waits for one.
        durable: name of the session. Messages sent while no program uses it are kept for the next one. One
            process uses the name at a time. Without a name, the session ends with this program.
        start: where a new session starts. A session that the logger knows continues where it stopped.
        ack: a batch is acknowledged when the program asks for the next (`auto`), or by `ack` (`explicit`).
        filter: read only messages whose item starts with this, or with one of these; or a function that
            decides for each message.
        config: folder of `semcast.toml`.
        **settings: further ones, as for `join`.
    """
    check_group(group)
    if ack not in ("auto", "explicit"):
        raise ConfigurationError(f"ack {ack!r}: choose auto or explicit")
    for name in ("name", "stack", "receive", "logger", "protocol"):
        if name in settings:
            raise ConfigurationError(f"{name} is not for subscriptions; durable= names the session")
    given = {
        **settings,
        "stack": "gossip",
        "name": durable or None,
        "durable": True,
        "stays": bool(durable),
        "explicit": ack == "explicit",
        "filter": filter if isinstance(filter, str) else "",
        **_start(start),
    }
    answers = Acknowledgements()
    member = Group(group, resolve(given, config), watchers=[answers])
    return Subscription(member, answers, _wanted(filter), explicit=ack == "explicit")


def _start(start: Start) -> dict[str, Any]:
    """As settings have it."""
    if isinstance(start, str):
        if start not in _MODES:
            raise ConfigurationError(
                f"start {start!r}: choose {', '.join(_MODES)}, a position in the log, or a time"
            )
        return {"start": start}
    seconds = start.timestamp() if isinstance(start, datetime) else start
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise ConfigurationError(f"start {start!r}: a position is 0 or more, a time is a datetime or seconds")
    if isinstance(seconds, float):
        return {"start": "time", "start_at": math.floor(seconds * SECOND)}
    return {"start": "position", "start_at": seconds}


def _wanted(
    chosen: str | Sequence[str] | Callable[[Message], bool] | None,
) -> Callable[[Message], bool] | None:
    if chosen is None or callable(chosen):
        return chosen
    if isinstance(chosen, str):
        return None  # the logger sends no others
    if not isinstance(chosen, Sequence) or not all(isinstance(each, str) for each in chosen):
        raise ConfigurationError(f"filter {chosen!r}: a prefix, a list of prefixes, or a function")
    prefixes = tuple(chosen)

    def begins(message: Message) -> bool:
        note = message.annotation
        return not isinstance(note, Item) or note.item.startswith(prefixes)

    return begins
