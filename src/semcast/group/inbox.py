"""What a program reads of its group: lists of messages and changes of view, and who reads them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import chain
from typing import cast

from semcast.core.events import Rejoining, ViewChange
from semcast.core.handover import Handover
from semcast.core.messages import Batch
from semcast.core.views import View
from semcast.group.errors import ConfigurationError
from semcast.group.events import GroupDelivery, GroupEvent
from semcast.net.seat import Seat


class Inbox:
    """The reading side of a group. One task, or one thread, reads at a time.

    Args:
        name: of the group.
        handover: between the program and the stack.
        seat: whose deliveries are taken.
        wake_loop: has the loop look at what the program wants.
        is_over: whether the program has closed the group; raises where it ended otherwise.
        receives: whether anything is delivered at all.
    """

    def __init__(
        self,
        name: str,
        handover: Handover,
        seat: Seat,
        wake_loop: Callable[[], object],
        is_over: Callable[[], bool],
        *,
        receives: bool,
    ) -> None:
        self.view: View | None = None
        """The latest view that the program has seen."""
        self.arrived = asyncio.Event()
        """Set when there may be something, or when it is over."""
        self.caller: Callable[[], object] = asyncio.current_task
        """Tells who is calling: who reads must not wait in `send` for itself."""
        self._name = name
        self._handover = handover
        self._seat = seat
        self._wake_loop = wake_loop
        self._is_over = is_over
        self._receives = receives
        self._reader: object | None = None
        self._unread: Iterator[GroupEvent] = iter(())

    def reads(self) -> bool:
        """Whether who calls is who reads: while it waits, nobody takes anything."""
        return self._reader in (None, self.caller())

    async def batches(self) -> AsyncIterator[Sequence[GroupDelivery]]:
        """Lists, until the program closes the group."""
        while deliveries := await self._take():
            yield deliveries
            self.dealt_with()
            if self._handover:
                await asyncio.sleep(0)  # there may always be more, and others want to run, too

    async def events(self) -> AsyncIterator[GroupEvent]:
        """One by one. A loop that was left can be taken up again: nothing is lost."""
        self.begin()  # before others run: who reads is not skipped
        while True:
            for event in self._unread:
                yield event
            self.dealt_with()
            if self._handover:
                await asyncio.sleep(0)
            deliveries = await self._take()
            if not deliveries:
                return
            self._unread = chain.from_iterable(map(_events, deliveries))

    def poll(self) -> Sequence[GroupDelivery]:
        """The next list, if there is one yet."""
        self.begin()
        return self._next()

    def dealt_with(self) -> None:
        """The program has dealt with what it took, and comes back for more."""
        self._handover.dealt_with(time.monotonic_ns())

    async def _take(self) -> Sequence[GroupDelivery]:
        """The next list, as soon as there is one; nothing at the end."""
        self.begin()
        handover = self._handover
        while handover or await self._arrival():
            if deliveries := self._next():
                return deliveries
        return ()

    def begin(self) -> None:
        """Whoever calls reads from now on."""
        if not self._receives:
            raise ConfigurationError(f"{self._name} was joined with receive=False: nothing is delivered here")
        self._reader = self.caller()
        if self._handover.begin():
            self._wake_loop()

    def _next(self) -> Sequence[GroupDelivery]:
        handover = self._handover
        while handover:
            if deliveries := self._seat.take(time.monotonic_ns()):
                self._note_views(deliveries)
                return deliveries
        return ()

    async def _arrival(self) -> bool:
        """Wait until there is something; False where the program has closed the group."""
        handover = self._handover
        while not handover:
            if self._is_over():
                return False
            self.arrived.clear()
            if not handover:
                await self.arrived.wait()
        return True

    def _note_views(self, deliveries: Sequence[GroupDelivery]) -> None:
        for each in deliveries:
            if isinstance(each, ViewChange):
                self.view = each.view
            elif isinstance(each, Rejoining):
                self.view = None


def _events(each: GroupDelivery) -> Sequence[GroupEvent]:
    return each.messages() if isinstance(each, Batch) else cast("Sequence[GroupEvent]", (each,))
