"""A client's side of a session: numbers, credit, what has no place yet, and what a broken connection leaves.

Pure: whoever has the socket hands in bodies of frames, and sends what is in `out`.
"""

from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from semcast.core.ids import MemberId
from semcast.protocols.clients import frames
from semcast.protocols.clients.codec import Format, decode_reply, encode
from semcast.protocols.clients.frames import (
    VERSION,
    Answer,
    Credits,
    Deliver,
    Done,
    Error,
    Hello,
    Reply,
    Welcome,
)
from semcast.protocols.clients.guests import OVERHEAD
from semcast.protocols.lightweight import events
from semcast.protocols.lightweight.events import ClientEvent
from semcast.protocols.lightweight.ids import ViewId

_SHARE = 4
"""What was taken is said once it is this part of the window, or at the end of a turn."""


class Denial(msgspec.Struct, frozen=True):
    """The daemon refused a request; it has a number, and nothing comes of it."""

    seq: int
    count: int
    group: str
    """That it was to join or to leave; empty for anything else."""
    text: str


class Ended(msgspec.Struct, frozen=True):
    """The connection is of no use any more: why, and what kind of reason that is."""

    code: str
    text: str


Heard = ClientEvent | Denial


class Caller:
    """One session.

    Args:
        name: of the client; empty for one that the daemon makes up.
        token: who it is, where the connection does not tell.
        policy: what becomes of it if it is too slow.
        window: messages and other events that may be under way to it.
    """

    def __init__(self, name: str = "", token: str = "", policy: str = "purge", window: int = 1024) -> None:
        self._hello = Hello(VERSION, name, token, None, policy, window)
        self._window = window
        self.form = Format.MSGPACK
        self.out: list[bytes] = []
        """Bodies of frames to send."""
        self.heard: deque[Heard] = deque()
        """What the program is told."""
        self.welcome: Welcome | None = None
        """What the daemon said at the beginning of the session."""
        self.connected = False
        """Whether the daemon has answered on this connection."""
        self.ended: Ended | None = None
        self.answers: deque[Answer | Done | Error] = deque()
        """To `ask` and `ping`."""
        self.seq = 0
        """The number of the last request."""
        self.placed = 0
        """All requests up to this one have a place."""
        self.messages = self.bytes = 0
        """Credit."""
        self.purged = 0
        """Messages that were dropped because this client was slow."""
        self._told = self._taken = self._said = 0  # numbers of events: arrived, dealt with, said to be so
        self._open: deque[tuple[int, int, str, bytes]] = deque()  # requests that have no place

    # Connections

    def connect(self) -> None:
        """On a new connection: begin the session, or take it up again."""
        self.out.clear()
        self.connected, self.ended = False, None
        hello = self._hello
        if self.resumable:
            assert self.welcome is not None
            hello = msgspec.structs.replace(hello, resume=frames.Resume(self.welcome.resume, self._told))
        self._say(hello)

    @property
    def resumable(self) -> bool:
        """Whether the session outlives its connection."""
        return self.welcome is not None and bool(self.welcome.resume)

    @property
    def member(self) -> MemberId:
        """Who this is."""
        assert self.welcome is not None
        return self.welcome.member

    def receive(self, bodies: Sequence[bytes]) -> None:
        """Frames of the daemon. Raises Malformed."""
        for body in bodies:
            reply = decode_reply(body, self.form)
            if type(reply) is Deliver:
                self._told += 1
                self.heard.append(_delivered(reply, len(body)))
                continue
            event = _EVENTS.get(type(reply))
            if event is not None:
                self._tell(event(reply))
            else:
                self._hear(reply)

    def _tell(self, event: ClientEvent) -> None:
        self._told += 1
        if type(event) is events.Placed:
            self._place(event.upto)
        elif type(event) is events.Replaced:
            self.purged += event.count
        elif type(event) is events.Out:
            self.ended = Ended("out", event.cause)
        self.heard.append(event)

    def _hear(self, reply: Reply) -> None:
        if isinstance(reply, Credits):
            self.messages += reply.messages
            self.bytes += reply.bytes
        elif isinstance(reply, Welcome):
            self._on_welcome(reply)
        elif isinstance(reply, Error) and reply.seq is None:
            self.ended = Ended(reply.code, reply.text)
        elif isinstance(reply, Error) and (denial := self._denied(reply)) is not None:
            self.heard.append(denial)
        else:
            assert isinstance(reply, Answer | Done | Error)
            self.answers.append(reply)

    def _on_welcome(self, welcome: Welcome) -> None:
        """Send again what the daemon has not had."""
        self.welcome, self.connected = welcome, True
        self.messages, self.bytes = welcome.messages, welcome.bytes
        self._said = self._taken
        for first, count, _, body in self._open:
            if first > welcome.seq:
                self._spend(count, body)
                self.out.append(body)

    def _denied(self, error: Error) -> Denial | None:
        for place, (first, count, group, _) in enumerate(self._open):
            if first == error.seq:
                del self._open[place]
                return Denial(first, count, group, error.text)
        return None

    def _place(self, upto: int) -> None:
        self.placed = max(self.placed, upto)
        while self._open and self._open[0][0] + self._open[0][1] - 1 <= upto:
            self._open.popleft()

    # Requests

    def room_for(self, count: int) -> bool:
        """Whether so many messages may be sent now."""
        return self.messages >= count and self.bytes > 0

    def join(self, group: str, *, vs: bool = False) -> int:
        """Be in a group."""
        return self._request(frames.Join(self.seq + 1, group, "vs" if vs else "evs"), 1, group)

    def leave(self, group: str) -> int:
        """Be in it no more."""
        return self._request(frames.Leave(self.seq + 1, group), 1, group)

    def cast(
        self,
        groups: Sequence[str],
        payloads: Sequence[bytes],
        *,
        safe: bool = False,
        items: Sequence[str] | None = None,
    ) -> int:
        """Send messages to groups; returns the number of the first."""
        about = None if items is None else list(items)
        level = "safe" if safe else "agreed"
        cast_ = frames.Cast(self.seq + 1, tuple(groups), level, list(payloads), about)
        return self._request(cast_, len(payloads))

    def private(self, to: MemberId, payload: bytes) -> int:
        """Send a message to one session."""
        return self._request(frames.Private(self.seq + 1, to, payload), 1)

    def ready(self, group: str, view: ViewId) -> None:
        """Nothing more is sent in a view that ends."""
        self._say(frames.Ready(group, view))

    def ask(self, request: int, what: str, about: str = "") -> None:
        """About the daemon."""
        self._say(frames.Ask(request, what, about))

    def bye(self) -> None:
        """End the session."""
        self._say(frames.Bye())

    def _request(self, frame: frames.Request, count: int, group: str = "") -> int:
        first = self.seq + 1
        body = encode(frame, self.form)
        self.seq += count
        self._open.append((first, count, group, body))
        if self.connected:
            self._spend(count, body)
            self.out.append(body)
        return first

    def _spend(self, count: int, body: bytes) -> None:
        self.messages -= count
        self.bytes -= len(body) + OVERHEAD

    def _say(self, frame: frames.Request) -> None:
        self.out.append(encode(frame, self.form))

    # To the program

    def take(self) -> list[Heard]:
        """What it is told next, all of it."""
        taken = list(self.heard)
        self.heard.clear()
        self._taken = self._told
        if self.connected and (self._taken - self._said) * _SHARE >= self._window:
            self.say_taken()
        return taken

    def say_taken(self) -> None:
        """Give back the daemon's credit, if there is any to give back."""
        if self.connected and self._taken > self._said and self.ended is None:
            self._said = self._taken
            self._say(frames.Taken(self._taken))


def _delivered(f: Deliver, size: int) -> events.Delivered:
    return events.Delivered(f.sender, f.first, f.groups, f.position, f.payloads, size, f.items)


_EVENTS: dict[type, Callable[..., ClientEvent]] = {
    frames.DeliverPrivate: lambda f: events.PrivateDelivered(f.sender, f.seq, f.position, f.payload),
    frames.View: lambda f: events.GroupView(
        f.group, f.id, f.members, f.joined, f.left, f.failed, events.Cause(f.cause), f.vs, f.along
    ),
    frames.Transitional: lambda f: events.GroupTransitional(f.group, f.id, f.members),
    frames.Placed: lambda f: events.Placed(f.upto),
    frames.Block: lambda f: events.Block(f.group, f.view),
    frames.Purged: lambda f: events.Replaced(f.sender, f.groups, f.first, f.last, f.count, f.by),
    frames.OutOf: lambda f: events.LeftGroup(f.group),
    frames.Undeliverable: lambda f: events.Undeliverable(f.seq, f.to),
    frames.Left: lambda f: events.Out(f.cause),
}
