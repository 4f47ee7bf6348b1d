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
        """Multicast one message. Waits only for flow control, or for `confirm`.

        Args:
            payload: the message.
            item: item key. Obsoletes this member's earlier messages with the same single item.
            items: the message updates several items, and is obsolete once all of them are updated again.
            obsoletes: ids of earlier messages that this one replaces.
            order: `agreed` (total order), or `safe`: delivered only once every member has it.
            timeout: seconds to wait for flow control and for loggers; then `SendTimeoutError` says why.
            confirm: `delivered`: wait until the message is delivered in a view. `safe`: until every member of
                the view has it. `logged` (gossip): until `log_acks` loggers have it on disk. Returns a
                `Confirmation`. May be awaited inside the loop that reads. UnconfirmedError if the view ends
                before, or without a logger.
            logged: like `confirm="logged"`, but returns the id.

        Raises `BacklogError` if this program must read before it can send.
        """
        if (
            items is None
            and obsoletes is None
            and confirm is None
            and order == "agreed"
            and not logged
            and self._room.open_for_one(payload)
        ):
            return self._drafts.plain(payload) if item is None else self._drafts.update(payload, item)
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
        """Update several items in one message: `async with group.transaction() as t: t["bid"] = b"159"`.

        The message is sent when the block ends, and not if it raises. It is obsolete once all its items are
        updated again. Receivers decode it with `semcast.assignments(message.payload)`.
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

        With `confirm` it waits until all of them are `delivered` or `safe`, as `send` does.

        Messages are queued in portions of at most `send_messages` and about `send_bytes`, so those of other
        tasks may come between. If waiting fails in the middle, `accepted` of the error is the number of
        messages that are sent; the others are not.
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
        """Like `send`, but returns None instead of waiting."""
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
        """Whether this many messages can be sent without waiting."""
        self._check_open()
        return self._handover.room_for(count, reading=self._inbox.reads())
