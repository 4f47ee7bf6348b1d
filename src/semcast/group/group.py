"""`join` and `Group`: a live group for programs that use asyncio."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from random import Random
from secrets import token_hex
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from semcast.core.annotations import Annotation, Enumeration, Item
from semcast.core.events import Purged, Rejoining, StateRequested, ViewChange
from semcast.core.handover import Handover, Outgoing, StateHooks
from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Batch
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.group.errors import ConfigurationError, GroupClosedError, GroupError
from semcast.group.events import GroupDelivery, GroupEvent
from semcast.group.families import FAMILIES
from semcast.group.metrics import Metrics
from semcast.group.settings import GroupSettings, check_group, resolve
from semcast.group.stacks import Parts, build, next_incarnation
from semcast.group.state import CheckedHooks, checked_state
from semcast.group.watching import Receipts
from semcast.net.hub import Hub
from semcast.net.keyfile import SealingStatistics
from semcast.net.loop import Loop
from semcast.net.seat import Seat
from semcast.net.sockets import SocketStatistics
from semcast.obsolescence import ItemsTracker
from semcast.wire.limits import MAX_PAYLOAD, check_message

if TYPE_CHECKING:
    from semcast.group.recording import Recording

Order = Literal["agreed", "safe"]

_LEAVE_PATIENCE = 3.0
"""Seconds to wait for a graceful end."""


class GroupStatistics(msgspec.Struct, frozen=True):
    """A snapshot of what a member has done and what waits there."""

    member: MemberId
    view: View | None
    stack: Statistics
    network: SocketStatistics
    malformed: dict[str, int]
    waiting_to_send: int
    buffered: int
    sealing: SealingStatistics | None = None
    """Where datagrams are sealed."""
    phase: str = ""
    """What the stack is doing; `minority` where it is cut off from the majority, and nothing is sent."""


class Group:
    """A member of a live group. Made by `join`."""

    def __init__(self, name: str, settings: GroupSettings, state: StateHooks | None = None) -> None:
        family = FAMILIES.of(settings.stack)
        if state is not None and not family.transfers:
            able = " or ".join(each.name for each in FAMILIES if each.transfers)
            raise ConfigurationError(f"state is handed over with stack {able}, and this is {settings.stack}")
        self.name = name
        self.settings = settings
        self.view: View | None = None
        """The latest view that this program has seen; none where it comes back to its group."""
        self._application = asyncio.get_running_loop()
        parts = build(name, settings, state=state is not None)
        self.member = parts.member
        """Who this is; another incarnation where the group went on without it."""
        self._family, self._site, self._largest = family, parts.site, parts.largest
        self._keys = parts.keys
        self._recordings = _recordings(name, settings, parts)
        self._metrics = Metrics(name, settings.metrics)
        self._receipts = Receipts()
        self._handover = Handover(
            settings.send_messages, hooks=None if state is None else CheckedHooks(state)
        )
        self._seat = Seat(
            parts.member,
            parts.stack,
            self._handover,
            wake_application=self._wake_from_loop,
            watchers=[*self._recordings, self._receipts, *self._metrics.watchers],
            renew=self._renew,
        )
        self._hub = Hub(
            parts.member,
            parts.endpoint,
            parts.codec,
            parts.peers,
            datagram=settings.datagram,
            multicast=settings.fanout == "multicast",
            tend=None if parts.keys is None else parts.keys.tend,
        )
        self._hub.seat(self._seat)
        self._loop = Loop(str(parts.member), self._hub)
        self._seat.wake_loop = self._loop.wake
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._ended = asyncio.Event()
        self._settled = asyncio.Event()
        self._next_seq = 1
        self._items = ItemsTracker(parts.member)
        self._unread: Iterator[GroupEvent] = iter(())
        self._closed = False
        self._wake_pending = False
        self._reader: object | None = None
        self._caller: Callable[[], object] = asyncio.current_task

    # Life

    async def __aenter__(self) -> "Group":
        try:
            self._loop.start()
            await self._settled.wait()
            self._check_open()
            await self._metrics.start(self._seat, self._hub)
        except BaseException:  # cancelled, perhaps: nothing is left behind
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the group and stop. What was sent reaches everybody first, if that takes but seconds."""
        if self._closed:
            return
        self._closed = True
        self._room.set()
        self._arrived.set()
        try:
            await self._metrics.close()
            if not self._ended.is_set() and self._seat.failure is None:
                self._seat.leave()
                with suppress(TimeoutError):  # the others will notice
                    await asyncio.wait_for(self._ended.wait(), _LEAVE_PATIENCE)
        finally:  # cancelled, perhaps: nothing is left behind
            await asyncio.shield(asyncio.to_thread(self._stop))
        if self._seat.failure is not None:
            raise GroupError(f"the protocol of {self.member} failed") from self._seat.failure

    def _stop(self) -> None:
        self._loop.close()
        self._hub.close()
        for recording in self._recordings:
            recording.close()

    # Sending

    async def send(
        self,
        payload: bytes,
        *,
        item: str | None = None,
        items: Sequence[str] | None = None,
        obsoletes: Sequence[MessageId] | None = None,
        order: Order = "agreed",
    ) -> MessageId:
        """Multicast one message; waits only if flow control must.

        Args:
            payload: what to send.
            item: what it is about: it replaces earlier messages of this member about nothing else.
            items: it updates several items at once, and is replaced when all of them have been updated again.
            obsoletes: it replaces these earlier messages.
            order: `agreed`, or `safe`: delivered only once every member has it.
        """
        await self._wait_for_room(1)
        return self._send_one(payload, item, items, obsoletes, order)

    async def send_many(self, payloads: Sequence[bytes], *, order: Order = "agreed") -> MessageId:
        """Multicast several messages that never become obsolete; returns the id of the last."""
        if not payloads:
            raise ValueError("there is nothing to send")
        await self._wait_for_room(len(payloads))
        return self._send(payloads, None, order)

    async def send_items(self, updates: Sequence[tuple[str, bytes]], *, order: Order = "agreed") -> MessageId:
        """Multicast several updates, each of an item, in order; returns the id of the last."""
        if not updates:
            raise ValueError("there is nothing to send")
        await self._wait_for_room(len(updates))
        if self._family.takes_updates:
            return self._send_updates(updates, order)
        for item, payload in updates:
            last = self._send_one(payload, item, None, None, order)
        return last

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
        self._check_open()
        if not self._handover.room_for(1):
            return None
        return self._send_one(payload, item, items, obsoletes, order)

    def _send_one(
        self,
        payload: bytes,
        item: str | None,
        items: Sequence[str] | None,
        obsoletes: Sequence[MessageId] | None,
        order: Order,
    ) -> MessageId:
        if sum(each is not None for each in (item, items, obsoletes)) > 1:
            raise ValueError("a message has an item, or items, or names what it replaces")
        if obsoletes is not None:
            return self._send([payload], Enumeration(tuple(obsoletes)), order)
        if item is not None:
            items = (item,)
        if items is None:
            return self._send([payload], None, order)
        self._check_message([payload], None, order)  # what is refused must not count as an update
        for each in items:
            self._check_item(each)
        return self._send([payload], self._items.update(self._next_seq, items), order)

    def _send_updates(self, updates: Sequence[tuple[str, bytes]], order: Order) -> MessageId:
        """All together, for stacks that take them so."""
        items, payloads = zip(*updates, strict=True)
        self._check_message(payloads, None, order)  # what is refused must not count as an update
        for item in dict.fromkeys(items):
            self._check_item(item)
        notes = self._items.tags(self._next_seq, items)
        return self._hand_over(Outgoing(payloads, None, order == "safe", notes))

    async def _wait_for_room(self, count: int) -> None:
        """Let the stack take what was handed over before, if that is much already."""
        self._check_open()
        handover = self._handover
        if handover.room_for(count):
            return
        reading = self._reader in (None, self._caller())  # or nobody else would take anything
        handover.wait(reading=reading)
        try:
            while not handover.room_for(count):
                self._room.clear()
                self._loop.wake()  # what waits for the application may have to be delivered meanwhile
                if not handover.room_for(count):
                    await self._room.wait()
                self._check_open()
        finally:
            handover.waited(reading=reading)

    def _send(self, payloads: Sequence[bytes], annotation: Annotation | None, order: Order) -> MessageId:
        self._check_message(payloads, annotation, order)
        return self._hand_over(Outgoing(payloads, annotation, order == "safe"))

    def _hand_over(self, outgoing: Outgoing) -> MessageId:
        self._seat.send(outgoing)
        self._next_seq += len(outgoing.payloads)
        return MessageId(self.member, self._next_seq - 1)

    def _check_message(self, payloads: Sequence[bytes], annotation: Annotation | None, order: Order) -> None:
        """What the stack would refuse is refused here, where somebody can do something about it."""
        if order not in ("agreed", "safe"):
            raise ConfigurationError(f"order {order!r}: there are agreed and safe")
        if {*map(type, payloads)} != {bytes}:
            raise TypeError("payloads are bytes: encode text, copy what can change")
        family = self._family
        longest = max(map(len, payloads))
        if longest > self._largest:
            raise ValueError(f"payload of {longest} bytes: at most {self._largest} are allowed")
        if order == "safe" and not family.safe:
            raise ValueError(f"there is no safe order in {family.name}{family.instead_of_safe}")
        if annotation is not None:
            check_message(payloads[0][: MAX_PAYLOAD // 2] if family.splits else payloads[0], annotation)

    def _check_item(self, item: str) -> None:
        check_message(b"", Item(item))
        room = self._family.note_room
        if room is not None and (size := len(item.encode())) > (most := room(self._site.packet)):
            raise ValueError(f"item of {size} bytes: at most {most} fit beside a message")

    # Receiving

    async def batches(self) -> AsyncIterator[Sequence[GroupDelivery]]:
        """What happens, in lists: runs of messages (`Batch`), and changes of view between them."""
        while True:
            yield await self._take()
            self._handover.dealt_with(time.monotonic_ns())
            if self._handover:
                await asyncio.sleep(0)  # there may always be more, and others want to run, too

    async def __aiter__(self) -> AsyncIterator[GroupEvent]:
        """What happens, one by one. A loop that was left can be taken up again: nothing is lost."""
        while True:
            for event in self._unread:
                yield event
            self._handover.dealt_with(time.monotonic_ns())
            if self._handover:
                await asyncio.sleep(0)
            self._unread = chain.from_iterable(map(_events, await self._take()))

    async def _take(self) -> Sequence[GroupDelivery]:
        """The next list, as soon as there is one."""
        handover = self._handover
        deliveries: Sequence[GroupDelivery] = ()
        while not deliveries:
            while not handover:
                self._check_open()
                self._arrived.clear()
                if not handover:
                    await self._arrived.wait()
            deliveries = self._seat.take(time.monotonic_ns())
        self._reader = self._caller()
        self._note_views(deliveries)
        return deliveries

    def _note_views(self, deliveries: Sequence[GroupDelivery]) -> None:
        for each in deliveries:
            if isinstance(each, ViewChange):
                self.view = each.view
            elif isinstance(each, Rejoining):
                self.view = None

    @property
    def address(self) -> tuple[str, int]:
        """Where this member listens: an address that others may have among their `peers`."""
        return self._hub.endpoint.address

    @property
    def arrived(self) -> bool:
        """Whether this program has seen the view in which its member began to work."""
        return self.view is not None and self.view.id >= self._seat.first_view

    def called_by(self, caller: Callable[[], object]) -> None:
        """Tell who is calling by this; else it is the task. Who reads must not wait in `send` for itself."""
        self._caller = caller

    def leave_state_to_program(self) -> None:
        """Call no hooks: `StateRequested` and `StateReceived` come among the events, see `provide`."""
        self._handover.hooks = None

    def provide(self, asked: StateRequested, state: bytes) -> None:
        """The state at the point where a `StateRequested` came. May be called from any thread."""
        self._handover.provide(asked, checked_state(state))
        self._loop.wake()

    def receipts(self) -> list[Purged]:
        """What was purged here since the last call, and because of what."""
        return self._receipts.take()

    # About it

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Where metrics are served, if that was wanted."""
        return self._metrics.address

    def stats(self) -> GroupStatistics:
        """A snapshot."""
        seat, hub = self._seat, self._hub
        return GroupStatistics(
            member=self.member,
            view=self.view,
            stack=msgspec.structs.replace(seat.stack.stats),
            network=msgspec.structs.replace(hub.endpoint.stats),
            malformed={why.value: count for why, count in hub.stats.malformed.copy().items()},
            waiting_to_send=self._handover.unsent,
            buffered=seat.buffered(),
            sealing=None if self._keys is None else self._keys.stats(),
            phase=seat.stack.phase(),
        )

    # Between the threads

    def _wake_from_loop(self) -> None:
        """In the loop's thread."""
        if self._wake_pending:
            return
        self._wake_pending = True
        with suppress(RuntimeError):  # the loop has ended, and nobody is left to be woken
            self._application.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._wake_pending = False
        if self._handover.renewed:
            self._come_back()
        self._arrived.set()
        self._room.set()
        over = self._seat.failure is not None or self._seat.left is not None
        if self._seat.settled or over:
            self._settled.set()
        if over:
            self._ended.set()

    def _come_back(self) -> None:
        """As another incarnation: what has not left is numbered anew, and leaves."""
        self.member = self._seat.member
        self._next_seq = self._handover.unsent + 1
        self._items = ItemsTracker(self.member)
        self._seat.go_on()

    def _renew(self, former: MemberId) -> tuple[MemberId, Random] | None:
        """In the loop's thread: the group went on without this member, which may come back."""
        if not self.settings.rejoin or self._closed:
            return None
        return next_incarnation(former), Random(token_hex(8))

    def _check_open(self) -> None:
        if self._seat.failure is not None:
            raise GroupError(f"the protocol of {self.member} failed") from self._seat.failure
        if self._seat.left is not None:
            raise GroupClosedError(f"{self.member} left {self.name}: {self._seat.left.cause}")
        if self._closed or self._loop.finished:
            raise GroupClosedError(f"{self.name} is closed")


def _events(each: GroupDelivery) -> Sequence[GroupEvent]:
    return each.messages() if isinstance(each, Batch) else cast("Sequence[GroupEvent]", (each,))


def _recordings(group: str, settings: GroupSettings, parts: Parts) -> "list[Recording]":
    if not settings.record:
        return []
    from semcast.group.recording import open_recording  # noqa: PLC0415 (histories need pyarrow: slow to load)

    return [open_recording(group, settings, parts)]


def join(
    group: str, *, config: Path | None = None, state: StateHooks | None = None, **settings: Any
) -> Group:
    """Become a member of a group: `async with semcast.join("prices") as group: ...`.

    Settings are those of `GroupSettings`; what is not given comes from `SEMCAST_*`, then from `semcast.toml`
    in the working folder (or in `config`), then from defaults. With nothing set, the members on one host find
    each other. With `state` who joins is given the state of the application (stack vsync).
    """
    check_group(group)
    return Group(group, resolve(settings, config), state)
