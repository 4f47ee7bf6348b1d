"""The local clients of a daemon: what waits for each, and what each wants to say.

Nobody waits for a client. What it does not take is bounded: beyond that, obsolete messages are dropped, and
one that has too much for too long is put out. What it asks for is bounded by its credit, and clients take
turns by bytes.
"""

from collections import deque
from typing import ClassVar

import msgspec

from semcast.core.ids import Nanos
from semcast.protocols.lightweight.events import Block, ClientEvent, Delivered, Out, Placed, PrivateDelivered
from semcast.protocols.lightweight.ids import ViewId
from semcast.protocols.lightweight.messages import Client
from semcast.protocols.lightweight.purging import Pass
from semcast.protocols.lightweight.settings import BURST, LightweightSettings

_PASSES = 4
"""A queue is looked through again once it has grown by this part of its bound."""


class Refused(ValueError):  # noqa: N818 (it is an answer, not a fault)
    """A request that a client may not make, and why."""


class Wish(msgspec.Struct, frozen=True, gc=False):
    """Something that a client asked for, as it goes to the ring; without a body it is a `ready`."""

    body: bytes
    count: int = 1
    safe: bool = False
    ready: tuple[str, ViewId] | None = None

    @property
    def cost(self) -> int:
        """Bytes, with something for what it takes besides."""
        return len(self.body) + 32


class Session:
    """One client, from when it connects until it is gone."""

    pass_kind: ClassVar[type[Pass]] = Pass

    def __init__(self, client: Client, settings: LightweightSettings, overfull: "list[Session]") -> None:
        self.client = client
        self.last = 0
        """The number of its last request."""
        self.asked: set[str] = set()
        """Groups that it is in, or will be."""
        self.ready: dict[str, ViewId] = {}
        """The last view of each `vs` group that it said it is ready to leave."""
        self.blocked: dict[str, tuple[ViewId, Nanos]] = {}
        """Where it has yet to say so, and since when."""
        self.flushed: dict[str, ViewId] = {}
        """The same as `ready`, once all that it sent before is with the ring."""
        self.closed = ""
        """Why it is over, if it is."""
        self.patient = True
        """Whether it stays for `leave_after` when it has too much to take; else it is put out at once."""
        self.purged = 0
        """Messages that were dropped for it."""
        self.holds = False
        """Whether everybody waits for it instead."""
        self.news: dict[Client, Session] | None = None
        """Where it is noted that something waits for it, if anybody wants to know."""
        self.waiting: deque[Wish] = deque()
        """What it asked for, and the ring was not given."""
        self._settings = settings
        self._overfull = overfull  # where those go who have too much to take
        self._over = False  # it is one of them
        self._over_since: Nanos | None = None  # it has had too much to take since then
        self._purgeable = 0  # messages about items that came since the last look through the queue
        self._length = 0  # of the queue, after that look
        self._events: deque[ClientEvent] = deque()
        self._bytes = 0  # of messages that wait for it
        self._sends = self._send_bytes = 0  # of what waits for the ring

    def __len__(self) -> int:
        """Events that wait for it."""
        return len(self._events)

    @property
    def queued_bytes(self) -> int:
        """Bytes of messages that wait for it."""
        return self._bytes

    # To the client

    def put(self, event: ClientEvent) -> None:
        """The next thing that it is told, in the order of the daemons."""
        if self.closed:
            return
        if not self._events and self.news is not None:
            self.news[self.client] = self
        if type(event) is Placed and self._events and type(self._events[-1]) is Placed:
            self._events[-1] = event  # it says all that the one before says
            return
        self._events.append(event)
        if type(event) is Delivered:
            self._bytes += event.size
            self._purgeable += event.items is not None
        else:
            self._bytes += _size(event)
        if not self._over and self._exceeds(1):
            self._over = True
            self._overfull.append(self)

    def _exceeds(self, times: int) -> bool:
        settings = self._settings
        return (
            len(self._events) > times * settings.queue_messages or self._bytes > times * settings.queue_bytes
        )

    def relieve(self, now: Nanos) -> Nanos | None:
        """It had too much: drop what is obsolete. Returns until when it may stay; None if all is well."""
        if self.closed:
            return None
        least = 0 if self._over_since is None else self._settings.queue_messages // _PASSES
        if self._purgeable and len(self._events) - self._length >= least:
            self._purge()
        if not self._exceeds(1):
            self._over, self._over_since, self._length = False, None, 0
            return None
        if self._over_since is None:
            self._over_since = now
        if self.holds:
            return now + self._settings.leave_after  # whenever; it stays
        if not self.patient or self._exceeds(BURST):
            return now
        return self._over_since + self._settings.leave_after

    def _purge(self) -> None:
        look = self.pass_kind()
        self._events = deque(look.over(self._events))
        self.purged += look.dropped
        self._bytes = sum(map(_size, self._events))
        self._purgeable, self._length = 0, len(self._events)

    def take(self, most: int | None = None) -> list[ClientEvent]:
        """What it is told next, at most so many events."""
        events, count = self._events, len(self._events) if most is None else min(most, len(self._events))
        taken = [events.popleft() for _ in range(count)]
        self._bytes -= sum(map(_size, taken))
        return taken

    def take_some(self, messages: int, size: int) -> list[ClientEvent]:
        """The same, until there are so many messages or bytes of them; the last may exceed it."""
        events, taken = self._events, []
        while events and messages > 0 and size > 0:
            event = events.popleft()
            taken.append(event)
            if type(event) is Delivered:
                messages -= len(event.payloads)
                size -= event.size
                self._bytes -= event.size
            else:
                messages -= 1
                self._bytes -= _size(event)
        return taken

    def close(self, cause: str, *, out: bool) -> None:
        """Nothing more happens here; what waits for it is of no use to anybody. Who is put out is told."""
        self._events.clear()
        self._bytes = 0
        if out:
            self._events.append(Out(cause))
            if self.news is not None:
                self.news[self.client] = self
        self.closed = cause
        self.blocked.clear()

    # From the client

    @property
    def credit(self) -> int:
        """Messages that it may still send."""
        settings = self._settings
        return 0 if self._send_bytes >= settings.send_bytes else settings.send_messages - self._sends

    @property
    def unsent(self) -> tuple[int, int]:
        """Messages that wait for the ring, and bytes."""
        return self._sends, self._send_bytes

    def number(self, count: int) -> int:
        """Numbers for its next requests; returns the first."""
        if self.closed:
            raise Refused(f"the session of {self.client} is over: {self.closed}")
        if count > self.credit:
            raise Refused(f"{count} messages, {self.client} has credit for {self.credit}")
        first = self.last + 1
        self.last += count
        return first

    def wish(self, wish: Wish) -> None:
        """One more; what is no request of its own takes no credit."""
        self.waiting.append(wish)
        self._sends += wish.count
        self._send_bytes += len(wish.body)

    def next_wish(self) -> Wish:
        """The oldest, which goes to the ring."""
        wish = self.waiting.popleft()
        self._sends -= wish.count
        self._send_bytes -= len(wish.body)
        return wish


class Turns:
    """Who is next to say something: round robin by bytes, among those who have something to say."""

    def __init__(self, quantum: int) -> None:
        self._quantum = quantum
        self._sessions: dict[Client, Session] = {}  # in the order of their turns
        self._left = quantum  # bytes of the first

    def __bool__(self) -> bool:
        return bool(self._sessions)

    def add(self, session: Session) -> None:
        """It has something to say."""
        self._sessions.setdefault(session.client, session)

    def next(self) -> tuple[Session, Wish]:
        """The next wish of all."""
        session = next(iter(self._sessions.values()))
        wish = session.next_wish()
        self._left -= wish.cost
        if not session.waiting or self._left <= 0:
            del self._sessions[session.client]
            self._left = self._quantum
            if session.waiting:
                self._sessions[session.client] = session
        return session, wish


def _size(event: ClientEvent) -> int:
    if isinstance(event, Delivered):
        return event.size
    return len(event.payload) if isinstance(event, PrivateDelivered) else 0


def blocks(session: Session, block: Block, now: Nanos) -> bool:
    """Tell a client that a view ends, unless it was told; returns whether it was told now."""
    told = session.blocked.get(block.group)
    if session.closed or session.ready.get(block.group) == block.view or (told and told[0] == block.view):
        return False
    session.blocked[block.group] = block.view, now
    session.put(block)
    return True
