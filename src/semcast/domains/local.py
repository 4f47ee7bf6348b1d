"""A domain without a daemon: the program is one itself (`engine="ordered"`).

The stack lives in the thread of the group below, the program in another. Requests and lists of events go from
one to the other through queues, each with one side that puts and one that takes.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from semcast.core.ids import MemberId, Nanos
from semcast.core.stack import Stack
from semcast.domains.link import (
    CastRequest,
    JoinRequest,
    LeaveRequest,
    PrivateRequest,
    ReadyRequest,
    Refusal,
    Request,
    Terms,
    numbers_of,
)
from semcast.group.families.lightweight import lightweight_settings
from semcast.group.group import Group
from semcast.group.machine import MACHINE
from semcast.group.settings import GroupSettings
from semcast.protocols.isis import Isis
from semcast.protocols.isis.program import Program
from semcast.protocols.lightweight import Lightweight, Session
from semcast.protocols.lightweight.events import ClientEvent
from semcast.protocols.lightweight.requests import Requests

_LISTS = 4
"""Lists of events that wait for the program; what comes after them waits in its session, and is bounded."""
_LIST = 1024
"""Events of a list, at most."""
_RUN_BYTES = 64 << 10
"""Single messages to the same groups are sent as one run, up to so many bytes."""
PATIENCE = 3.0
"""Seconds to wait until what was sent is on its way, at the end."""
_PAUSE = 0.01
"""Seconds until the next try, where the stack is about to be replaced."""


class LocalLink:
    """Of a program that has its stack in its own process: for ordered groups it is its own daemon.

    Args:
        name: of the domain.
        settings: of its member.
    """

    closed_groups = False
    """Whether only members send, and to one group at a time."""

    def __init__(self, name: str, settings: GroupSettings) -> None:
        self._name = name
        self._settings = settings
        self._limits_of(settings)
        self._heard: Callable[[], None] = _nobody
        self.group: Group | None = None
        """The ring of daemons, once it is open."""
        self._application = asyncio.get_running_loop()
        self._list = min(_LIST, settings.queue_messages)
        self._wall = MACHINE.get().wall
        self._last = 0  # the number of the last session
        # Written by the program:
        self._asked: deque[Request] = deque()
        self._submitted = self._submitted_bytes = 0
        self._wanted = 0  # room that somebody waits for
        self._closing = False
        # Written by the thread of the stack:
        self._session: Session | Program | None = None
        self._requests: Requests | None = None
        self._told: deque[Sequence[ClientEvent | Refusal]] = deque()
        self._applied = self._applied_bytes = 0
        self._waking = False
        self.over = False
        """Whether the session has ended."""

    def _limits_of(self, settings: GroupSettings) -> None:
        limits = lightweight_settings(settings)
        self._send_messages, self._send_bytes = limits.send_messages, limits.send_bytes
        self._run_bytes, self._memberships = limits.run_bytes, limits.memberships

    # Life

    async def open(self, heard: Callable[[], None]) -> Terms:
        """Find the others, and begin."""
        self._heard = heard
        self.group = Group(self._name, self._settings)
        stack = self.group.stack
        assert isinstance(stack, Lightweight | Isis)
        stack.heed = self._heed
        await self.group
        return await self._connect()

    async def renew(self) -> Terms:
        """Begin another session: of the same daemon, or of the one in its place."""
        return await self._connect()

    async def close(self) -> None:
        """End the session, behind everything that was asked for, and leave the ring."""
        group, self._closing = self.group, True
        if group is None:
            return
        try:
            if self._session is not None and not self.over:
                await self._disconnect(group)
        finally:
            await group.close()

    async def _connect(self) -> Terms:
        group = self.group
        assert group is not None
        while True:
            group.is_over()  # raises where it has ended
            done: asyncio.Future[MemberId | None] = self._application.create_future()

            def connect(stack: Stack, now: Nanos, done: "asyncio.Future[MemberId | None]" = done) -> None:
                self._tell(done, self._begin(stack, now))

            group.command(connect)
            if (client := await done) is not None:
                return Terms(
                    client,
                    max(1, self._send_messages // 4),
                    self._run_bytes,
                    self._memberships,
                    self._name,
                    closed=self.closed_groups,
                )
            await asyncio.sleep(_PAUSE)

    async def _disconnect(self, group: Group) -> None:
        gone: asyncio.Future[None] = self._application.create_future()

        def disconnect(stack: Stack, now: Nanos) -> None:
            self._apply(stack, now)
            session, requests = self._session, self._requests
            assert isinstance(session, Session)
            assert requests is not None
            assert isinstance(stack, Lightweight)

            def heed() -> None:
                if session.client not in requests.sessions:
                    self._tell(gone, None)

            requests.disconnect(session, "asked to")
            stack.heed = heed
            stack.settle(now)

        group.command(disconnect)
        with suppress(TimeoutError):  # the others will notice
            await asyncio.wait_for(gone, PATIENCE)

    # By the program

    def room_for(self, messages: int, size: int) -> bool:  # noqa: ARG002 (the last may exceed the bound)
        """Whether so much may wait for the ring."""
        self._wanted = min(self._wanted, messages) if self._wanted else messages  # first: see `_heed`
        if self._has_room(messages):
            self._wanted = 0
            return True
        return False

    def _has_room(self, messages: int) -> bool:
        applied, session = self._applied, self._session  # in this order: what is counted twice is harmless
        if session is None or self.over:
            return False
        if self._submitted_bytes - self._applied_bytes >= self._send_bytes:
            return False
        return session.credit - (self._submitted - applied) >= messages

    def submit(self, request: Request) -> None:
        """Leave it for the next turn."""
        group = self.group
        assert group is not None
        self._submitted += numbers_of(request)
        self._submitted_bytes += _size(request)
        self._asked.append(request)
        if len(self._asked) == 1:
            group.command(self._apply)

    def take(self) -> Sequence[ClientEvent | Refusal]:
        """The next list."""
        if not self._told:
            return ()
        taken = self._told.popleft()
        session = self._session
        if session is not None and len(session) and self.group is not None:
            self.group.command(self._go_on)
        return taken

    # By the thread of the stack

    def _begin(self, stack: Stack, now: Nanos) -> MemberId | None:
        """Begin a session; None where the stack is about to be replaced."""
        assert isinstance(stack, Lightweight)
        if stack.inner.phase() == "left":
            return None
        requests = stack.machine.requests
        self._last = max(self._last + 1, self._wall() // 1_000_000)
        self._forget_requests()
        self._session, self._requests, self.over = requests.connect_host(self._last), requests, False
        stack.settle(now)
        return self._session.client

    def _forget_requests(self) -> None:
        """Another session begins: what was asked for in the one before is of no use."""
        self._asked.clear()
        self._applied, self._applied_bytes = self._submitted, self._submitted_bytes

    def _apply(self, stack: Stack, now: Nanos) -> None:
        """Do what the program asked for. What comes after the end of a session is of no use."""
        assert isinstance(stack, Lightweight | Isis)
        asked = self._asked
        while asked:
            request = asked.popleft()
            if type(request) is CastRequest and asked:
                request = self._together(request)
            self._do(stack, now, request)
            self._applied += numbers_of(request)
            self._applied_bytes += _size(request)
        stack.settle(now)

    def _do(self, stack: Stack, now: Nanos, request: Request) -> None:  # noqa: ARG002
        session, requests = self._session, self._requests
        if isinstance(session, Session) and requests is not None and not session.closed:
            _ask(requests, session, request)

    def _together(self, first: CastRequest) -> CastRequest:
        """With those that follow and go the same way, as one run: their numbers are consecutive."""
        asked, payloads, size = self._asked, list(first.payloads), first.size
        items = None if first.items is None else list(first.items)
        most = self._send_messages // 4
        while asked:
            more = asked[0]
            if type(more) is not CastRequest or len(payloads) + len(more.payloads) > most:
                break
            if size + more.size > _RUN_BYTES or not first.alike(more):
                break
            size += more.size
            payloads += more.payloads
            if items is not None and more.items is not None:
                items += more.items
            asked.popleft()
        return CastRequest(
            first.groups, payloads, first.view, first.safe, items, first.ordered, size, first.to
        )

    def _go_on(self, stack: Stack, now: Nanos) -> None:  # noqa: ARG002
        """The program took a list."""
        self._heed()

    def _heed(self) -> None:
        """After every input: leave for the program what there is."""
        session = self._session
        if session is None:
            return
        stirred = False
        while len(session) and len(self._told) < _LISTS:
            self._told.append(session.take(self._list))
            stirred = True
        if session.closed and not self.over:
            self.over = stirred = True
        if self._wanted and session.credit >= max(self._wanted, self._send_messages // 4):
            stirred = True
        if stirred and not self._waking:
            self._waking = True
            with suppress(RuntimeError):  # the loop has ended, and nobody is left to be woken
                self._application.call_soon_threadsafe(self._wake)

    def _tell(self, future: "asyncio.Future[MemberId | None] | asyncio.Future[None]", what: object) -> None:
        def tell() -> None:
            if not future.done():
                future.set_result(what)  # type: ignore[arg-type]

        with suppress(RuntimeError):
            self._application.call_soon_threadsafe(tell)

    def _wake(self) -> None:
        """In the program's loop."""
        self._waking = False
        self._wanted = 0  # who still waits asks again
        if not self._closing:
            self._heard()


def _ask(requests: Requests, session: Session, request: Request) -> None:
    if type(request) is CastRequest:
        requests.cast(
            session,
            request.groups,
            request.payloads,
            view=request.view,
            safe=request.safe,
            items=request.items,
            at_most=request.size,
        )
    elif type(request) is JoinRequest:
        requests.join(session, request.group, vs=request.vs)
    elif type(request) is LeaveRequest:
        requests.leave(session, request.group)
    elif type(request) is PrivateRequest:
        requests.private(session, request.to, request.payload)
    else:
        assert type(request) is ReadyRequest
        requests.ready(session, request.group, request.view)


def _size(request: Request) -> int:
    if type(request) is CastRequest:
        return request.size
    return len(request.payload) if type(request) is PrivateRequest else 0


def _nobody() -> None:
    """Nobody listens yet."""
