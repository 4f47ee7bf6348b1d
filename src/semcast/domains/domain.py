"""`Domain`: one identity and one ordered stream over any number of groups."""

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from semcast.core.ids import MemberId
from semcast.core.views import View
from semcast.domains.calling import GroupCalls
from semcast.domains.checks import check_groups, check_style
from semcast.domains.desk import Desk
from semcast.domains.events import DomainDelivery, DomainEvent
from semcast.domains.light import Flavour, Kind, LightGroup, RoleName
from semcast.domains.link import JoinRequest, LeaveRequest, Link
from semcast.domains.sending import SendingSide
from semcast.domains.stream import Outlet
from semcast.domains.waiting import Waiting
from semcast.group.errors import ConfigurationError, GroupClosedError, GroupError
from semcast.group.signals import ENDING, SignalWatch
from semcast.protocols.lightweight.events import Replaced

if TYPE_CHECKING:
    from semcast.domains.recording import DomainRecording

T = TypeVar("T")
QUEUE = 1024
"""Messages that wait for who reads, before no more are taken from the daemon."""


class Domain(SendingSide):
    """This program in a domain. Made by `semcast.domain` or `semcast.connect`; `sending.py` is how it sends.

    Args:
        name: of the domain.
        link: to the daemon that it is a client of, in this process or elsewhere.
        queue: messages that wait for who reads.
        recording: where it writes what it hears, and its calls.
    """

    def __init__(
        self, name: str, link: Link, *, queue: int = QUEUE, recording: "DomainRecording | None" = None
    ) -> None:
        self.name = name
        self._recording = recording
        self._numbers = itertools.count(1)  # of calls in all groups
        if recording is not None:
            link = recording.of(link)
        self._application = asyncio.get_running_loop()
        self._waiting = Waiting(name, self._check_open)
        self._desk = self._waiting.desk = Desk(link, queue, self._waiting.wake, self.is_over)
        self._link = link
        self._signals = SignalWatch()
        self._over = asyncio.Event()  # nothing is left of it
        self._entered = self._opened = self._closed = False
        self.on_close: Callable[[], None] = _nothing
        """Called once, when it begins to close."""

    # Life

    def __await__(self) -> Generator[Any, None, "Domain"]:
        """`floor = await domain(...)`, where `async with` does not fit; then `close` is up to the program."""
        return self.__aenter__().__await__()

    async def __aenter__(self) -> "Domain":
        if self._entered or self._closed:
            raise GroupError(f"{self.name} was entered before: a domain is used once, make another")
        self._entered = True
        try:
            self._desk.begin(await self._link.open(self._desk.hear))
        except BaseException:
            await self.close()
            raise
        self._opened = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave all groups. Waits a few seconds until messages already sent have reached everybody."""
        if self._closed:
            await self._over.wait()  # somebody else has begun to
            return
        self._closed = True
        self._signals.stop()
        self.on_close()
        try:
            if self._opened:
                self._desk.end()
                self._waiting.wake()
            await self._link.close()
            if self._recording is not None:
                self._recording.close()
        finally:
            self._over.set()

    def leave_on_signals(self, *signals: signal.Signals) -> None:
        """Close the group on SIGINT and SIGTERM, or on the given signals: `async for` and `async with` end.

        Call it in the main thread. A second signal has its usual effect.
        """
        self._check_open()
        self._signals.start(signals or ENDING, lambda: self._application.create_task(self.close()))

    def is_over(self) -> bool:
        """Whether this program has closed the domain; raises where it ended otherwise."""
        if self._closed:
            return True
        self._check_open()
        return False

    def _check_open(self) -> None:
        if self._closed:
            raise GroupClosedError(f"{self.name} is closed")
        if not self._opened:
            raise GroupError(f"{self.name} is not open: `async with domain(...) as ...`, or await it first")
        if self._desk.failure is not None:
            raise GroupClosedError(str(self._desk.failure)) from self._desk.failure

    # About it

    @property
    def member(self) -> MemberId:
        """Who this program is, in all groups; another one after each `Rejoining`."""
        if not self._opened:
            self._check_open()
        return self._desk.books.member

    @property
    def link(self) -> Link:
        """How it is connected."""
        return self._link

    @property
    def outlet(self) -> Outlet:
        """What `async for` reads; for what is built on top of a domain."""
        return self._desk.stream.whole

    def called_by(self, caller: Callable[[], object]) -> None:
        """Tell who is calling by this; else it is the task. Who reads must not wait for itself."""
        self._desk.stream.caller = caller

    def receipts(self) -> list[Replaced]:
        """What this program was too slow for since the last call, and what it was given instead."""
        receipts = list(self._desk.receipts)
        self._desk.receipts.clear()
        return receipts

    def calls_of(self, group: LightGroup) -> GroupCalls:
        """The calls of a group that this program is in."""
        journal = None if self._recording is None else self._recording.calls(group.name)
        outsiders = group.kind != "peer"
        return GroupCalls(
            group.name, self.member, group.view, self._waiting, self._numbers, journal, outsiders=outsiders
        )

    async def outlast(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for something; if who waits is who reads, only as long as that can help."""
        task = self._application.create_task(work)
        task.add_done_callback(lambda _: self._waiting.wake())
        try:
            await self._waiting.until(task.done)
        finally:
            task.cancel()
        return await task

    def groups(self) -> Sequence[LightGroup]:
        """Those that this program is in, or asked to be in."""
        return tuple(self._desk.groups.values())

    # Groups

    async def join(
        self,
        group: str,
        *,
        flavour: Flavour = "evs",
        kind: Kind = "peer",
        role: RoleName = "",
        timeout: float | None = None,
    ) -> LightGroup:
        """Be in a group; returns once this program is in its first view.

        Args:
            group: its name.
            flavour: `vs` for sending view delivery: a message is delivered in the view that its sender was
                in, and sending waits while a view ends. The first member of a group decides for all.
            kind: in a causal domain, how the group is used, the same at all who are in it. `peer`: by its
                members. `client-server`: clients send to all servers, servers to each other and to single
                clients. `diffusion`: servers send to each other and to all clients, who only listen.
            role: in the latter two, `server` or `client`. Clients are in no view and cost no change of view.
            timeout: seconds, at most; then TimeoutError, and it is not in the group.
        """
        check_groups((group,))
        if flavour not in ("evs", "vs"):
            raise ConfigurationError(f"flavour {flavour!r}: choose evs or vs")
        self._check_open()
        check_style(kind, role, causal=self._desk.terms.closed)
        groups = self._desk.groups
        if group in groups:
            raise GroupError(f"{self.member} has joined {group!r} already, or is joining or leaving it")
        if len(groups) >= self._desk.terms.memberships:
            raise GroupError(f"{self.member} is in {len(groups)} groups: no more are allowed")
        outlet = self._desk.outlet(group)
        seat = groups[group] = LightGroup(self, group, outlet, vs=flavour == "vs", kind=kind, role=role)
        try:
            async with asyncio.timeout(timeout):
                await self._waiting.until(lambda: self._desk.room_for(1, 0))
                seat.asked = True
                self._desk.stream.add(group, outlet)
                self._desk.submit(JoinRequest(group, seat.wants_vs, kind, role))
                await self._waiting.until(lambda: seat.view is not None or bool(seat.over), on=seat.changed)
                if seat.view is None:
                    raise GroupError(f"{group!r} of {self.name}: {seat.over}")
        except BaseException:
            self._give_up(seat)
            raise
        finally:
            self._application.call_soon(seat.known)  # when the program has gone on, up to its next await
        return seat

    def _give_up(self, seat: LightGroup) -> None:
        """Who waited for a group does so no more."""
        if not seat.asked:
            self._desk.groups.pop(seat.name, None)
        elif not seat.over and not self._closed and self._desk.failure is None:
            seat.leaves()
            self._desk.submit(LeaveRequest(seat.name))

    async def leave(self, group: LightGroup) -> None:
        """Leave a group, behind everything that was sent there."""
        if group.over or self._closed or self._desk.failure is not None:
            return
        try:
            if not group.leaving:
                await self._waiting.until(lambda: self._desk.room_for(1, 0))
                if not group.leaving:
                    group.leaves()
                    self._desk.submit(LeaveRequest(group.name))
            await self._waiting.until(lambda: bool(group.over), on=group.changed)
        except GroupClosedError:
            if not self._closed:
                raise

    def check_member(self, group: LightGroup) -> None:
        """Raise where this program is in the group no more."""
        if group.over or group.leaving:
            raise GroupClosedError(f"{group.name} of {self.name}: {group.over or 'this program leaves it'}")

    async def wait_for(self, group: LightGroup, members: int, timeout: float | None = None) -> View:
        """Wait until a group has so many members; returns the view. TimeoutError says who is there."""

        def gathered() -> bool:
            self.check_member(group)
            return group.view is not None and len(group.view.members) >= members

        try:
            await self._waiting.until(gathered, timeout)
        except TimeoutError:
            there = ", ".join(map(str, group.members())) or "nobody"
            raise TimeoutError(f"{group.name} of {self.name}: {there} after {timeout} s") from None
        assert group.view is not None
        return group.view

    # Receiving

    def __aiter__(self) -> AsyncIterator[tuple[str, DomainEvent]]:
        """What happens, one by one, in the one order of the domain: `async for group, event in floor`.

        With each event comes the name of its group; of a message to several, the first that this program is
        in; "" for what happens to this program. A loop that was left can be taken up again: nothing is lost.
        Ends when this program closes the domain.
        """
        return self._desk.stream.whole.events()

    def batches(self) -> AsyncIterator[Sequence[tuple[str, DomainDelivery]]]:
        """The same in lists: runs of messages to groups (`Batch`), and what happens between them."""
        return self._desk.stream.whole.batches()


def _nothing() -> None:
    """Nobody wants to know."""
