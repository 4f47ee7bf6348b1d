"""A link that does as it is told."""

from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from semcast.core.ids import MemberId
from semcast.domains.link import CastRequest, Request, Terms, numbers_of
from semcast.group.errors import GroupError
from semcast.protocols.lightweight.events import Cause, ClientEvent, Delivered, GroupView, Out
from semcast.protocols.lightweight.ids import Epoch, Position, ViewId

RING = MemberId("d")
OTHER = MemberId("other")


def view_id(change: int) -> ViewId:
    return ViewId(Epoch(1, False, RING), change)


def installed(group: str, change: int, *members: MemberId, vs: bool = False) -> GroupView:
    return GroupView(group, view_id(change), members, members, (), (), Cause.JOIN, vs)


def message(group: str, number: int, count: int = 1) -> Delivered:
    payloads = [b"%d" % each for each in range(number, number + count)]
    size = sum(map(len, payloads))
    return Delivered(OTHER, number, (group,), Position(Epoch(1, False, RING), number), payloads, size)


class FakeLink:
    """Keeps what is submitted, and hands out what it was given."""

    def __init__(self, *, room: int = 1000) -> None:
        self.submitted: list[Request] = []
        self.room = room
        self.over = False
        self.sessions = 0
        self.refuses = False
        self.holds = False
        self.closed = False
        self._events: deque[Sequence[ClientEvent]] = deque()
        self._heard: Callable[[], None] = lambda: None

    async def open(self, heard: Callable[[], None]) -> Terms:
        self._heard = heard
        return await self.renew()

    async def renew(self) -> Terms:
        if self.refuses:
            raise GroupError("nobody lets this program in")
        self.sessions += 1
        self.over = False
        return Terms(MemberId("me", self.sessions), 100, 1000, 10, holds=self.holds)

    async def close(self) -> None:
        self.closed = True

    def room_for(self, messages: int, size: int) -> bool:
        return messages <= self.room and not self.over

    def submit(self, request: Request) -> None:
        self.room -= numbers_of(request)
        if isinstance(request, CastRequest) and request.counted is not None:
            assert request.counted == sum(map(len, request.payloads))
            request = msgspec.structs.replace(request, counted=None)
        self.submitted.append(request)

    def take(self) -> Sequence[ClientEvent]:
        return self._events.popleft() if self._events else ()

    # For tests

    @property
    def untaken(self) -> int:
        return len(self._events)

    def tell(self, *events: ClientEvent) -> None:
        """Each in a list of its own, so that it shows where the domain stops taking."""
        self._events += ([event] for event in events)
        self._heard()

    def put_out(self, cause: str = "too slow") -> None:
        self.over = True
        self.tell(Out(cause))

    def give_room(self, room: int) -> None:
        self.room = room
        self._heard()
