"""How a program sends in its group: one message, many, or several items at once."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import overload

from semcast.core.events import Confirmed
from semcast.core.handover import Handover
from semcast.core.ids import SECOND, MessageId, Nanos
from semcast.group.confirming import Confirm, Confirmation, Confirmations, check_confirm
from semcast.group.drafts import Drafts, Order, portions
from semcast.group.errors import GroupError
from semcast.group.inbox import Inbox
from semcast.group.registry import Family
from semcast.group.settings import GroupSettings
from semcast.group.transaction import payload_of
from semcast.group.waiting import Room


class SendingSide(ABC):
    """The part of a `Group` that sends: a base class, so that no message costs another call."""

    settings: GroupSettings
    _clock: Callable[[], Nanos]
    _confirmations: Confirmations
    _drafts: Drafts
    _family: Family
    _handover: Handover
    _inbox: Inbox
    _room: Room
    _send_bytes: int

    @abstractmethod
    def _check_open(self) -> None:
        """Raise where the group is not open."""

    @overload
    async def send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        items: Sequence[str] | None = None,
        obsoletes: Sequence[MessageId] | None = None,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: None = None,
        logged: bool = False,
    ) -> MessageId: ...

    @overload
    async def send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        items: Sequence[str] | None = None,
        obsoletes: Sequence[MessageId] | None = None,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: Confirm,
        logged: bool = False,
    ) -> Confirmation: ...

    async def send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        items: Sequence[str] | None = None,
        obsoletes: Sequence[MessageId] | None = None,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: Confirm | None = None,
        logged: bool = False,
    ) -> MessageId | Confirmation:
        """Multicast one message; waits only if flow control must.

        Args:
            payload: what to send.
            item: what it is about: it replaces earlier messages of this member about nothing else.
            items: it updates several items at once, and is replaced when all of them have been updated again.
            obsoletes: it replaces these earlier messages.
            order: `agreed`, or `safe`: delivered only once every member has it.
            timeout: seconds to wait for room, at most, and for loggers; then `SendTimeoutError` says what is
                in the way.
            confirm: wait until it is `delivered`, in its place in the view, or `safe`: until every member of
                the view has it, too. What is returned says in which view. The answer comes from the protocol,
                so a program may wait for it while it handles what it reads. UnconfirmedError if the view in
                which the message left ended before. `logged` (gossip): until as many loggers have it on disk
                as `log_acks` says; UnconfirmedError where there is no logger.
            logged: the same as `confirm="logged"`, but what is returned is the id.

        Raises `BacklogError` where this program must read before it can send.
        """
        if (
            item is None
            and items is None
            and obsoletes is None
            and confirm is None
            and order == "agreed"
            and not logged
            and self._room.open_for_one(payload)
        ):
            return self._drafts.plain(payload)
        asked: Confirm | None = "logged" if logged else confirm
        check_confirm(asked, self._family)
        began = self._clock()
        if not self._room.open_for(1):
            await self._wait_for_room(1, timeout)
        if asked is None:
            return self._drafts.one(payload, item, items, obsoletes, order)
        ticket, answer = self._confirmations.open(asked)
        try:
            sent = self._drafts.one(payload, item, items, obsoletes, order, ticket)
        except BaseException:
            answer.cancel()  # it was refused: there will be none
            raise
        left = None
        if timeout is not None and asked == "logged":
            left = timeout - (self._clock() - began) / SECOND
        confirmation = await self._confirmation(sent, answer, left)
        return confirmation if confirm is not None else sent

    async def _confirmation(
        self, sent: MessageId, answer: "asyncio.Future[Confirmed]", timeout: float | None = None
    ) -> Confirmation:
        """Wait for an answer; if who reads does so, nothing is taken meanwhile."""
        confirmed = await self._room.outlast(answer, reading=self._inbox.reads(), timeout=timeout)
        return Confirmation(sent, confirmed.view, confirmed.position)

    @asynccontextmanager
    async def transaction(self, *, order: Order = "agreed") -> AsyncIterator[dict[str, bytes]]:
        """Assign to several items at once: `async with group.transaction() as t: t["bid"] = b"159"`.

        All of it is one message, sent when the block ends; nothing, if it raises. It is replaced when all its
        items have been updated again. Who receives it finds in `semcast.assignments(message.payload)` what it
        says.
        """
        values: dict[str, bytes] = {}
        yield values
        if values:
            await self.send(payload_of(values), items=list(values), order=order)

    @overload
    async def send_many(
        self,
        payloads: Sequence[bytes],
        *,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: None = None,
    ) -> MessageId: ...

    @overload
    async def send_many(
        self,
        payloads: Sequence[bytes],
        *,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: Confirm,
    ) -> Confirmation: ...

    async def send_many(
        self,
        payloads: Sequence[bytes],
        *,
        order: Order = "agreed",
        timeout: float | None = None,
        confirm: Confirm | None = None,
    ) -> MessageId | Confirmation:
        """Multicast several messages that never become obsolete; returns the id of the last.

        With `confirm` it waits until the last is `delivered` or `safe`, as `send` does; so are those before.

        They are handed over in portions of at most `send_messages` and about `send_bytes`, so those of other
        tasks may come between.
        If waiting for room fails in the middle, `accepted` of the error says how many were handed over: these
        are sent, and the rest is not.
        """
        check_confirm(confirm, self._family)
        size = self._drafts.check(payloads, None, order)
        if confirm is None and self._open_for(len(payloads), size):
            return self._drafts.many(payloads[:], order, size)
        answers: list[asyncio.Future[Confirmed]] = []

        def hand_over(start: int, stop: int, some: int) -> MessageId:
            ticket = None
            if confirm is not None and stop == len(payloads):
                ticket, answer = self._confirmations.open(confirm)
                answers.append(answer)
            return self._drafts.many(payloads[start:stop], order, some, ticket)

        cuts = self._portions(map(len, payloads), len(payloads), size)
        last = await self._in_portions(cuts, timeout, hand_over)
        left = timeout if confirm == "logged" else None
        return await self._confirmation(last, answers[0], left) if answers else last

    async def send_items(
        self,
        updates: Sequence[tuple[str, bytes]],
        *,
        order: Order = "agreed",
        timeout: float | None = None,
    ) -> MessageId:
        """Multicast several updates, each of an item, in order; returns the id of the last.

        In portions, as `send_many`.
        """
        size = self._drafts.check_updates(updates, order)
        if self._open_for(len(updates), size):
            return self._drafts.updates(updates, order, size)
        cuts = self._portions((len(payload) for _, payload in updates), len(updates), size)
        return await self._in_portions(
            cuts, timeout, lambda start, stop, some: self._drafts.updates(updates[start:stop], order, some)
        )

    def try_send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        items: Sequence[str] | None = None,
        obsoletes: Sequence[MessageId] | None = None,
        order: Order = "agreed",
    ) -> MessageId | None:
        """Like `send`, but None where `send` would wait."""
        if not self._room.try_now(1, reading=self._inbox.reads()):
            return None
        return self._drafts.one(payload, item, items, obsoletes, order)

    def _open_for(self, count: int, size: int) -> bool:
        """Whether so many messages are one portion, and need not wait."""
        one = count <= self.settings.send_messages and size <= self._send_bytes
        return one and self._room.open_for(count)

    def _portions(self, sizes: Iterable[int], count: int, size: int) -> list[tuple[int, int, int]]:
        return portions(sizes, count, size, self.settings.send_messages, self._send_bytes)

    async def _in_portions(
        self,
        cuts: Sequence[tuple[int, int, int]],
        timeout: float | None,
        hand_over: Callable[[int, int, int], MessageId],
    ) -> MessageId:
        """Hand over messages cut like this, as there is room."""
        deadline = None if timeout is None else self._clock() + timeout * SECOND
        for start, stop, size in cuts:
            left = None if deadline is None else max(0.0, deadline - self._clock()) / SECOND
            try:
                await self._wait_for_room(stop - start, left)
            except GroupError as error:
                error.accepted = start
                raise
            last = hand_over(start, stop, size)
        return last

    async def _wait_for_room(self, count: int, timeout: float | None) -> None:
        """Let the stack take what was handed over before, if that is much already."""
        await self._room.wait(count, reading=self._inbox.reads(), timeout=timeout)

    def has_room(self, count: int) -> bool:
        """Whether so many messages can be sent without waiting."""
        self._check_open()
        return self._handover.room_for(count, reading=self._inbox.reads())
