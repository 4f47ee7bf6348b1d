"""Between a `Domain` and the daemon that its program is a client of: in this process, or at a socket.

A link has one session at a time. The domain numbers requests as the daemon does, from 1 in each session, so
nothing is answered one by one: `Placed` says how far they have come. Everything here is called in the event
loop of the program, and nothing waits but `open`, `renew` and `close`.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from semcast.core.ids import MemberId
from semcast.protocols.lightweight.events import ClientEvent
from semcast.protocols.lightweight.ids import ViewId


class JoinRequest(msgspec.Struct, frozen=True, gc=False):
    """To be in a group; whoever is the first there says whether it has sending view delivery (`vs`)."""

    group: str
    vs: bool = False
    kind: str = "peer"
    """In a causal domain: whether the group has clients, and how they are served."""
    role: str = ""
    """Where it has: server or client."""


class LeaveRequest(msgspec.Struct, frozen=True, gc=False):
    """To be in a group no more."""

    group: str


class CastRequest(msgspec.Struct, frozen=True, gc=False):
    """A run of messages to one or several groups; `view` where this is a member of a `vs` group."""

    groups: tuple[str, ...]
    payloads: Sequence[bytes]
    view: ViewId | None = None
    safe: bool = False
    items: Sequence[str] | None = None
    """What each is about: it replaces earlier ones of this program to the same groups about the same."""
    ordered: bool = False
    """In a causal domain: whether they have a place in the one order of all such messages."""
    counted: int | None = None
    """Bytes of the messages, where somebody has counted them."""
    to: MemberId | None = None
    """In a causal domain: the client that they are for, besides the servers."""

    @property
    def size(self) -> int:
        """Bytes of the messages."""
        return sum(map(len, self.payloads)) if self.counted is None else self.counted

    def alike(self, other: "CastRequest") -> bool:
        """Whether both may travel as one run."""
        mine, its = self, other
        same = (mine.groups, mine.view, mine.safe) == (its.groups, its.view, its.safe)
        same = same and mine.to == its.to
        return same and mine.ordered == its.ordered and (mine.items is None) == (its.items is None)


class PrivateRequest(msgspec.Struct, frozen=True, gc=False):
    """A message to one session."""

    to: MemberId
    payload: bytes
    call: str = ""
    """In a causal domain: the group whose calls it belongs to, if it does."""


class ReadyRequest(msgspec.Struct, frozen=True, gc=False):
    """Nothing more is sent in this view of a `vs` group. It has no number."""

    group: str
    view: ViewId


class FlushRequest(msgspec.Struct, frozen=True, gc=False):
    """In a causal domain: to be placed once all that the program sent or heard is given to all members."""


Request = JoinRequest | LeaveRequest | CastRequest | PrivateRequest | ReadyRequest | FlushRequest


def numbers_of(request: Request) -> int:
    """How many numbers a request takes.

    >>> numbers_of(CastRequest(("a",), [b"1", b"2"])), numbers_of(LeaveRequest("a"))
    (2, 1)
    """
    if type(request) is CastRequest:
        return len(request.payloads)
    return 0 if type(request) is ReadyRequest else 1


class Refusal(msgspec.Struct, frozen=True):
    """The daemon does not allow a request: it has a number, and nothing comes of it."""

    seq: int
    count: int
    group: str
    """That it was to join or to leave; empty for anything else."""
    text: str


class Terms(msgspec.Struct, frozen=True):
    """What holds in a session."""

    client: MemberId
    """Who this program is now."""
    run_messages: int
    """Messages of one `CastRequest`, at most."""
    run_bytes: int
    """And their bytes; so a message has no more."""
    memberships: int
    """Groups that it may be in."""
    domain: str = ""
    """The name of the domain."""
    closed: bool = False
    """Whether only members send to a group, and to one at a time."""
    holds: bool = False
    """Whether all others wait while this program does not read: then it has no room to send, either."""


class Link(Protocol):
    """One session, and another one after it where that ends."""

    async def open(self, heard: Callable[[], None]) -> Terms:
        """Begin the first session.

        `heard` is called, in the loop of the program, when `take` may have something, when there may be room
        again, or when the session is over. It may be called for nothing.
        """

    async def renew(self) -> Terms:
        """Begin another session, after `take` gave an `Out`. Raises GroupError where that can never be."""

    async def close(self) -> None:
        """End the session, behind everything that it submitted, and let go of everything. Called once."""

    @property
    def over(self) -> bool:
        """Whether the session has ended, though `Out` may not have been taken yet."""

    def room_for(self, messages: int, size: int) -> bool:
        """Whether requests with so many numbers, and so many bytes in them, may be submitted now.

        Where nothing waits, there is room for one request of any size within the terms.
        """

    def submit(self, request: Request) -> None:
        """Ask for something, in order. After the end of a session it is ignored: it stays unsettled."""

    def take(self) -> "Sequence[ClientEvent | Refusal]":
        """The next events, in the order of the daemons; empty where there are none yet.

        What is not taken waits in the daemon, and a program that takes too little is put out. The last event
        of a session that ends against the program's will is an `Out`, however it ended.
        """
