"""What a program reads of its group: lists of messages and changes of view, and who reads them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import cast

from semcast.core.events import Rejoining, ViewChange
from semcast.core.handover import Handover
from semcast.core.ids import SECOND, MessageId, Nanos
from semcast.core.messages import Batch, PrivateMessage
from semcast.core.reading import LONG
from semcast.core.views import View
from semcast.group.ahead import Ahead, Portion
from semcast.group.bell import Bell
from semcast.group.calling import CallDesk, Heard
from semcast.group.errors import BacklogError, ConfigurationError, GroupError
from semcast.group.events import GroupDelivery, GroupEvent
from semcast.group.logs import GroupLog
from semcast.group.machine import Pace
from semcast.net.seat import Seat
from semcast.patterns.calls import Whisper, marked, read

_EMPTY: Portion = ((), ())
_UNREAD_LONG = 5 * SECOND // LONG
"""How often a joiner finds that this program has not read yet, before that is said."""


class Inbox:
    """The reading side of a group. One task, or one thread, reads at a time.

    Args:
        name: of the group.
        handover: between the program and the stack.
        seat: whose deliveries are taken.
        wake_loop: has the loop look at what the program wants.
        is_over: whether the program has closed the group; raises where it ended otherwise.
        come_back: numbers what the program sends as its new incarnation does.
        receives: whether anything is delivered at all.
        ahead: what is read before the program asks for it.
        clock: of the machine.
        pace: how much slower the program is there than it is, if it is.
        log: of the group.
    """

    def __init__(
        self,
        name: str,
        handover: Handover,
        seat: Seat,
        wake_loop: Callable[[], object],
        is_over: Callable[[], bool],
        come_back: Callable[[], object],
        *,
        receives: bool,
        ahead: Ahead,
        clock: Callable[[], Nanos],
        pace: Pace | None = None,
        log: GroupLog,
    ) -> None:
        self.view: View | None = None
        """The latest view that the program has seen."""
        self.arrived = Bell()
        """Rings when there may be something, or when it is over."""
        self.caller: Callable[[], object] = asyncio.current_task
        """Tells who is calling: who reads must not wait in `send` for itself."""
        self._name = name
        self._handover = handover
        handover.awaited = 0  # who waits says so
        self._seat = seat
        self._wake_loop = wake_loop
        self._is_over = is_over
        self._come_back = come_back
        self._receives = receives
        self._reader: object | None = None
        self._unread: Iterator[GroupEvent] = iter(())
        self._loops = 0  # of the program that iterate
        self._taken: Sequence[GroupDelivery] = ()  # what begins with a call that nobody has looked at
        self._ahead = ahead
        self._clock = clock
        self._pace = pace
        self._taking = threading.RLock()  # a program without asyncio reads in a thread of its own
        self._desk: CallDesk | None = None
        self._callers = 0  # who reads waits for so many answers
        self._pump: asyncio.Task[None] | None = None
        self._log = log
        self._raised: Exception | None = None  # by a hook, while nobody read
        self._unread_for = 0  # looks at a program that has to read before it can hand over its state
        self._misses = False  # it never iterated, and is not told everything, so it has no state

    def reads(self) -> bool:
        """Whether who calls is who reads: while it waits, nobody takes anything."""
        if self._reader is None:
            return self._pump is None
        return self._reader == self.caller()

    def __bool__(self) -> bool:
        """Whether there is something to look at."""
        return bool(self._taken) or bool(self._ahead) or bool(self._handover)

    async def batches(self) -> AsyncIterator[Sequence[GroupDelivery]]:
        """Lists, until the program closes the group."""
        self.begin()
        with self.loop():
            while deliveries := await self._take():
                yield deliveries
                self.dealt_with()
                if self:
                    await asyncio.sleep(0)  # there may always be more, and others want to run, too

    async def events(self) -> AsyncIterator[GroupEvent]:
        """One by one. A loop that was left can be taken up again: nothing is lost."""
        self.begin()  # before others run: who reads is not skipped
        with self.loop():
            while True:
                for event in self._unread:
                    yield event
                self.dealt_with()
                if self:
                    await asyncio.sleep(0)
                deliveries = await self._take()
                if not deliveries:
                    return
                self._unread = chain.from_iterable(map(_events, deliveries))

    @contextmanager
    def loop(self) -> Iterator[None]:
        """The program iterates for as long."""
        with self._taking:
            self._loops += 1
        try:
            yield
        finally:
            with self._taking:
                self._loops -= 1
            self._let_read()

    def poll(self) -> Sequence[GroupDelivery]:
        """The next list, if there is one yet."""
        self.begin()
        while self:
            if deliveries := self._next():
                return deliveries
        return ()

    def dealt_with(self) -> None:
        """The program has dealt with what it took, and comes back for more."""
        self._handover.dealt_with(self._clock())

    async def _take(self) -> Sequence[GroupDelivery]:
        """The next list, as soon as there is one; nothing at the end."""
        self.begin()
        while self or await self._arrival():
            if deliveries := self._next():
                if self._pace is not None:
                    await asyncio.sleep(self._pace(deliveries))
                return deliveries
            await asyncio.sleep(0)  # there were only calls: who answers them wants to run, too
        return ()

    def begin(self) -> None:
        """Whoever calls reads from now on."""
        if not self._receives:
            raise ConfigurationError(f"{self._name} was joined with receive=False: nothing is delivered here")
        self._reader = self.caller()
        if self._misses:
            self._see_all()
        if self._handover.begin():
            self._wake_loop()

    def _next(self) -> Sequence[GroupDelivery]:
        """One list; nothing where there were only calls in it."""
        with self._taking:
            if self._raised is not None and not self._ahead:
                raised, self._raised = self._raised, None
                raise raised
            deliveries, news = self._ahead.take() if self._ahead else self._advance()
        if news:
            self._note_views(news)
        return deliveries

    def _advance(self) -> Portion:
        """Look at what comes next: calls, or what the program is given, up to the next call.

        So a request is answered when the program has dealt with all that comes before it.
        """
        taken = self._taken
        if not taken:
            if not self._handover:
                return _EMPTY
            taken = self._seat.take(self._clock())
            if self._handover.renewed:
                self._come_back()  # who reads of it sends as the new one
        news: list[GroupDelivery] = []
        for place, each in enumerate(taken):
            if type(each) is not Batch:
                news.append(each)
            elif each.annotation is not None and marked(each):
                if not place:
                    return self._look_at_calls(taken)
                taken, self._taken = taken[:place], taken[place:]
                break
        else:
            self._taken = ()
        if self._desk is not None:
            recorded = self._desk.journal is not None  # with what comes between calls
            if heard := taken if recorded else news:
                self._desk.hear(heard)
        return taken, news

    def _look_at_calls(self, taken: Sequence[GroupDelivery]) -> Portion:
        """The list begins with calls, or private messages. Only those for this member reach the program."""
        heard: list[Heard] = []
        private: list[GroupDelivery] = []
        upto = 0
        for each in taken:
            if type(each) is not Batch or each.annotation is None or not marked(each):
                break
            upto += 1
            for place, payload in enumerate(each.payloads):
                envelope = read(payload)
                if isinstance(envelope, Whisper):
                    if envelope.to == self._seat.member:
                        name = MessageId(each.sender, each.first + place)
                        private.append(PrivateMessage(name, envelope.body, order=each.order))
                else:
                    order = None if each.order is None else each.order + place
                    heard.append((each.sender, envelope, order))
            if private:
                break
        self._taken = taken[upto:]
        if heard and self._desk is not None:
            self._desk.hear(heard)
        return private, ()

    # Somebody must read for calls and for joiners, also where the program waits or never iterates

    def attach(self, desk: CallDesk) -> None:
        """Calls are looked at there."""
        self._desk = desk
        desk.when_active = self.read_meanwhile

    def _let_read(self) -> None:
        """See to it that calls are looked at. In the thread of the program's loop, or told there."""
        desk = self._desk
        if desk is not None and desk.active:
            desk.soon(self.read_meanwhile)

    def read_meanwhile(self) -> None:
        """Read ahead as long as that is needed, beside everything else."""
        if self._pump is None and self._must_read():
            self._pump = asyncio.get_running_loop().create_task(self._read_on(), name=f"reads {self._name}")

    def _must_read(self) -> bool:
        """Whether there may be calls to answer, or joiners that wait for the state of an idle program.

        The state of a program with threads is left alone: its hooks are called in the thread that reads.
        """
        if self._for_calls:
            return not self._loops or self._callers > 0
        return self._reader is None and self._handover.hooks is not None and not self._threaded

    @property
    def _threaded(self) -> bool:
        return self.caller is not asyncio.current_task

    @property
    def _for_calls(self) -> bool:
        return self._desk is not None and self._desk.active

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Who calls now waits for an answer; if that is who reads, somebody else must read meanwhile."""
        reading = self._reader is not None and self._reader == self.caller()
        if reading and self._handover.hooks is not None:
            raise BacklogError(
                f"{self._name}: the task that reads events cannot wait for replies in a group with state=:"
                " joiners would wait, too; call from another task or thread"
            )
        self._callers += reading
        try:
            yield
        finally:
            self._callers -= reading

    async def _read_on(self) -> None:
        try:
            with suppress(GroupError):  # it is over, and who waits is told elsewhere
                await self._read_while_needed()
        except (
            Exception
        ) as error:  # of a hook: the program gets it when it reads, and the hook is called again
            self._log.failed(error)
            self._raised = error
        self._pump = None

    def keep(self) -> None:
        """Nothing is dropped from now on for a program that never iterates: there may be calls in it.

        At once, in whatever thread: until somebody reads, more may come than there is room for.
        """
        if self._handover.begin():
            self._wake_loop()

    async def _read_while_needed(self) -> None:
        while self._must_read() and not self._is_over():
            if not self._read_ahead():
                if self._reader is not None:
                    return
                if self._for_calls or self._ahead.full:
                    await self._do_without_state()
                else:
                    await self._wait_for_reader()
                continue
            if self._taken or self._handover:
                await asyncio.sleep(0)
                continue
            with self._awaiting():
                if not self._handover:
                    await self.arrived.wait()

    def _read_ahead(self) -> bool:
        """Take what there is, as far as it can be kept; returns whether that may go on."""
        with self._taking:
            if self._ahead.full or (self._ahead.messages and self._handover.at_state(self._clock())):
                return self._make_room()
            portion = self._advance()
            if portion[0]:
                self._ahead.put(portion)
            if self._reader is None and portion[1]:
                self._note_views(portion[1])
        self.dealt_with()
        return True

    def _make_room(self) -> bool:
        """A program that never iterated misses what it has no room for; for others nothing is dropped."""
        if self._reader is None:
            if self._handover.hooks is not None and not self._misses:
                return False
            self._handover.skipped += self._ahead.drop()
            return True
        assert self._desk is not None
        waits = self._ahead.messages
        self._desk.fail_calls(
            BacklogError(
                f"{self._name}: {waits} messages wait to be read here while this program waits for answers,"
                " and there is room for no more of them: read in another task, or raise `queue_messages`"
            )
        )
        return False

    async def _do_without_state(self) -> None:
        """A program that never iterates has not dealt with what was read for it: it gives nobody its state.

        Not at once: the task that reads may be about to start.
        """
        await asyncio.sleep(LONG / SECOND)
        with self._taking:
            if self._reader is None and not self._misses:
                self._misses = True
                self._handover.do_without_state()
        self._wake_loop()

    async def _wait_for_reader(self) -> None:
        """Somebody waits for the state, which this program has once it has read what it was sent."""
        self._unread_for += 1
        if self._unread_for == _UNREAD_LONG:
            self._log.unread()
        await asyncio.sleep(LONG / SECOND)

    def _see_all(self) -> None:
        """It iterates at last: what was kept for it is older than the state that it gets now."""
        with self._taking:
            self._misses = False
            self._handover.skipped += self._ahead.drop()
            self._handover.follow()
        self._wake_loop()

    async def _arrival(self) -> bool:
        """Wait until there is something; False where the program has closed the group."""
        while not self:
            if self._is_over():
                return False
            with self._awaiting():
                if not self:
                    await self.arrived.wait()
        return True

    @contextmanager
    def _awaiting(self) -> Iterator[None]:
        """A task looks whether there is something, and waits if not: it has to be woken."""
        self.arrived.clear()
        self._handover.awaited += 1  # before it looks: what comes from now on wakes it
        try:
            yield
        finally:
            self._handover.awaited -= 1

    def _note_views(self, deliveries: Sequence[GroupDelivery]) -> None:
        for each in deliveries:
            if isinstance(each, ViewChange):
                self.view = each.view
            elif isinstance(each, Rejoining):
                self.view = None


def _events(each: GroupDelivery) -> Sequence[GroupEvent]:
    return each.messages() if isinstance(each, Batch) else cast("Sequence[GroupEvent]", (each,))
