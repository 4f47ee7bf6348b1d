"""What a program reads of its domain: one ordered stream, and filters of it for single groups."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import cast

from semcast.core.events import Left, Skipped
from semcast.core.messages import Message
from semcast.domains.events import DomainDelivery, DomainEvent, DomainView, batch_of, messages_of
from semcast.protocols.lightweight.events import Delivered

Told = DomainEvent | Delivered
"""What waits: events, and runs of messages that nobody has looked at yet."""

_RESERVE = 8
"""So many times the bound may wait while who reads waits for something else."""
_TURN = 256
"""Messages that are read one after the other before other tasks run."""


class Outlet:
    """What one iterator is given. One task reads it at a time.

    Args:
        bound: messages that wait here before who reads is waited for.
        took: called when there is room again.
        is_over: whether nothing more comes; raises where the end was not asked for.
        begun: called when somebody iterates for the first time.
        caller: tells who is calling.
    """

    def __init__(
        self,
        bound: int,
        took: Callable[[], None],
        is_over: Callable[[], bool],
        begun: "Callable[[Outlet], None]",
        caller: Callable[[], object],
    ) -> None:
        self.began = False
        """Whether somebody ever iterated."""
        self.reader: object | None = None
        """Who did so last."""
        self.held = 0
        """Messages, and other events, that wait here."""
        self.arrived = asyncio.Event()
        """Set when there may be something, or when it is over."""
        self._bound = bound
        self._took = took
        self._is_over = is_over
        self._begun = begun
        self._caller = caller
        self._waiting: deque[tuple[str, Told, int]] = deque()
        self._unread: deque[tuple[str, DomainEvent]] = deque()
        self._loops = 0  # that run
        self._skipping = False
        self._skipped = 0
        self._missed: dict[str, DomainView] = {}  # the last view of each group that was dropped
        self._since = 0  # messages since other tasks ran

    # By the domain

    def put(self, group: str, told: Told) -> None:
        """The next in order."""
        weight = len(told.payloads) if type(told) is Delivered else 1
        if self._skipping:
            self._drop(group, told)
            return
        self._waiting.append((group, told, weight))
        self.held += weight
        self.arrived.set()

    def full(self, *, reserve: bool) -> bool:
        """Whether the domain should wait for who reads here; with a reserve, not as soon."""
        return self.held > (self._bound * _RESERVE if reserve else self._bound)

    @property
    def idle(self) -> bool:
        """Whether nobody iterates: never did, or has left its loop."""
        return not self._loops

    def skip(self) -> None:
        """Keep nothing where nobody iterates."""
        if self.idle and not self._skipping:
            while self._waiting:
                self._drop(*self._waiting.popleft()[:2])
            self.held, self._skipping = 0, True

    def _drop(self, group: str, told: Told) -> None:
        if type(told) is Delivered:
            self._skipped += len(told.payloads)
        elif isinstance(told, DomainView):
            self._missed[group] = told
        elif isinstance(told, Message):
            self._skipped += 1
        elif isinstance(told, Left):
            self._missed.pop(group, None)

    # By the program

    def begin(self) -> None:
        """Whoever calls reads from now on; who was skipped is told so first, and where it is."""
        self.reader = self._caller()
        if not self.began:
            self.began = True
            self._begun(self)
        if self._skipping:
            self._skipping = False
            self._unread.append(("", Skipped(self._skipped)))
            for group, view in self._missed.items():
                self._unread.append((group, DomainView(view.view, view.view.members, cause=view.cause)))
            self._skipped = 0
            self._missed.clear()

    def poll(self) -> Sequence[tuple[str, DomainEvent]]:
        """The next events, if there are any yet: a run of messages, or one of another kind."""
        self.begin()
        if self._unread:
            found, self._unread = self._unread, deque()
            return tuple(found)
        if not self._waiting:
            return ()
        group, told, weight = self._waiting.popleft()
        self._free(weight)
        if type(told) is Delivered:
            return [(group, message) for message in messages_of(told)]
        return [(group, cast("DomainEvent", told))]

    def _free(self, weight: int) -> None:
        self.held -= weight
        if self.held <= self._bound < self.held + weight:
            self._took()

    def enter(self) -> None:
        """A loop begins."""
        self._loops += 1

    def leave(self) -> None:
        """It ends, or was left: it can be taken up again."""
        self._loops -= 1

    async def events(self) -> AsyncIterator[tuple[str, DomainEvent]]:
        """One by one. A loop that was left can be taken up again."""
        self.enter()
        try:
            while True:
                while self._unread:
                    yield self._unread.popleft()
                if not await self.fetch():
                    return
        finally:
            self.leave()

    async def fetch(self, timeout: float | None = None) -> bool:
        """Have something to read; False at the end, or if nothing has come for so many seconds."""
        try:
            async with asyncio.timeout(timeout):
                while not (more := self.poll()):
                    if self._is_over():
                        return False
                    await self._arrival()
        except TimeoutError:
            return False
        self._unread.extend(more)
        await self._let_others_run(len(more))
        return True

    def left_over(self) -> Iterator[tuple[str, DomainEvent]]:
        """What was fetched."""
        while self._unread:
            try:
                yield self._unread.popleft()
            except IndexError:
                return  # another thread was faster

    async def batches(self) -> AsyncIterator[list[tuple[str, DomainDelivery]]]:
        """In lists, with runs of messages to groups as one."""
        self.enter()
        try:
            self.begin()
            while True:
                if more := [*self._unread, *self._all()]:
                    self._unread.clear()
                    yield more
                    await asyncio.sleep(0)  # there may always be more, and others want to run, too
                elif self._is_over():
                    return
                else:
                    await self._arrival()
        finally:
            self.leave()

    def _all(self) -> list[tuple[str, DomainDelivery]]:
        """Everything that waits."""
        found: list[tuple[str, DomainDelivery]] = []
        weights = 0
        while self._waiting:
            group, told, weight = self._waiting.popleft()
            weights += weight
            found.append((group, batch_of(told) if type(told) is Delivered else cast("DomainEvent", told)))
        if weights:
            self._free(weights)
        return found

    async def _arrival(self) -> None:
        self.arrived.clear()
        if not self._waiting and not self._is_over():
            await self.arrived.wait()

    async def _let_others_run(self, count: int) -> None:
        self._since += count
        if self._since >= _TURN:
            self._since = 0
            await asyncio.sleep(0)


class Stream:
    """All outlets of a domain.

    Args:
        bound: messages that wait in each.
        took: called when there is room again.
        is_over: whether nothing more comes; raises where the end was not asked for.
    """

    def __init__(self, bound: int, took: Callable[[], None], is_over: Callable[[], bool]) -> None:
        self._bound = bound
        self._took = took
        self._filters: dict[str, Outlet] = {}
        self._read: list[Outlet] = []  # those that somebody iterates over
        self._filled: dict[Outlet, None] = {}  # those with more than their bound, and perhaps others
        self._stalled = 0  # calls of who reads that wait for something else
        self.caller: Callable[[], object] = asyncio.current_task
        """Tells who is calling."""
        self.whole = self.outlet(is_over)
        """What `async for` over the domain reads."""

    def outlet(self, is_over: Callable[[], bool]) -> Outlet:
        """One more."""
        return Outlet(self._bound, self._took, is_over, self._begun, self._who)

    def add(self, group: str, outlet: Outlet) -> None:
        """Of a group that this program is in."""
        self._filters[group] = outlet

    def remove(self, group: str) -> None:
        """It is in it no more. What was told of it may still be read."""
        outlet = self._filters.pop(group, None)
        if outlet is not None:
            self._filled.pop(outlet, None)
            if outlet in self._read:
                self._read.remove(outlet)

    def put(self, groups: Sequence[str], told: Told) -> None:
        """Something that happened in these groups: once in the stream, and in the filter of each."""
        self._put(self.whole, groups[0], told)
        for group in groups:
            outlet = self._filters.get(group)
            if outlet is not None:
                self._put(outlet, group, told)

    def put_everywhere(self, told: DomainEvent) -> None:
        """Something that happened to this program."""
        self._put(self.whole, "", told)
        for outlet in self._filters.values():
            self._put(outlet, "", told)

    def put_private(self, told: DomainEvent) -> None:
        """Something that concerns no group."""
        self._put(self.whole, "", told)

    def _put(self, outlet: Outlet, group: str, told: Told) -> None:
        if self.whole.began and not outlet.began:
            outlet.skip()  # the same is read as a whole
        outlet.put(group, told)
        if outlet.full(reserve=False):
            self._filled[outlet] = None

    def full(self) -> bool:
        """Whether no more should be taken from the daemon until this program reads."""
        for outlet in list(self._filled):
            if outlet.idle and not outlet.began and self._read:
                outlet.skip()
            if not outlet.full(reserve=False):
                del self._filled[outlet]
        return any(outlet.full(reserve=self._stalled > 0) for outlet in self._filled)

    def unread(self) -> bool:
        """Whether much waits where nobody iterates: not at all so far, or elsewhere now."""
        return any(self._neglected(outlet) for outlet in self._filled)

    def skip_unread(self) -> None:
        """Keep nothing more there: who only sends, or reads elsewhere, need not read this."""
        for outlet in self._filled:
            if self._neglected(outlet):
                outlet.skip()

    def _neglected(self, outlet: Outlet) -> bool:
        return outlet.idle and (not outlet.began or any(not each.idle for each in self._read))

    def _who(self) -> object:
        return self.caller()

    def _begun(self, outlet: Outlet) -> None:
        self._read.append(outlet)

    def read_here(self) -> bool:
        """Whether who calls is who reads: while it waits for something else, nobody takes anything."""
        caller = self.caller()
        return any(each.reader == caller for each in self._read)

    def stall(self, by: int) -> None:
        """Who reads begins (1) or ceases (-1) to wait for something else."""
        self._stalled += by

    def wake(self) -> None:
        """It may be over."""
        self.whole.arrived.set()
        for outlet in self._filters.values():
            outlet.arrived.set()
