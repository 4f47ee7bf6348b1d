"""The frames of the client protocol: arrays that begin with a kind.

As msgpack or, for browsers, as JSON, where bytes are base64. Trailing elements that are not known are
ignored, so that either side may be newer.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from semcast.core.ids import MAX_NAME
from semcast.protocols.lightweight.ids import Number, Position, ViewId
from semcast.protocols.lightweight.messages import Client, GroupName, ItemName
from semcast.protocols.lightweight.settings import MAX_RUN, MAX_TARGETS

VERSION = 1
MAX_TOKEN = 256
"""Bytes of a secret."""
MAX_WINDOW = 1 << 16
"""Events that may be under way to a client."""
MAX_TEXT = 500
"""Characters of a reason."""

Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
Text = Annotated[str, msgspec.Meta(max_length=MAX_TOKEN)]
Groups = Annotated[tuple[GroupName, ...], msgspec.Meta(min_length=1, max_length=MAX_TARGETS)]


class Resume(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A session whose connection broke: its secret, and how much of what it was told has arrived."""

    token: Text
    told: Number


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """The first frame of a connection."""

    version: int
    name: Name = ""
    """Of the client; empty for one that the daemon makes up."""
    token: Text = ""
    """Who it is, where the connection does not tell."""
    resume: Resume | None = None
    policy: Annotated[str, msgspec.Meta(max_length=16)] = "purge"
    """What becomes of a client that is too slow: `purge`, `leave` or `block`."""
    window: Annotated[int, msgspec.Meta(ge=1, le=MAX_WINDOW)] = 1024
    """Messages and other events that are on their way to it and that it has not `taken`."""


class Join(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """It wants to be in a group."""

    seq: Number
    group: GroupName
    flavour: Annotated[str, msgspec.Meta(max_length=16)] = "evs"


class Leave(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """It wants to be in a group no more."""

    seq: Number
    group: GroupName


class Cast(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    """Messages to groups; the first has this number."""

    seq: Number
    groups: Groups
    level: Annotated[str, msgspec.Meta(max_length=16)]
    """`agreed` or `safe`."""
    payloads: Annotated[list[bytes], msgspec.Meta(min_length=1, max_length=MAX_RUN)]
    items: Annotated[list[ItemName], msgspec.Meta(max_length=MAX_RUN)] | None = None


class Private(msgspec.Struct, frozen=True, array_like=True, tag=9, gc=False):
    """A message to one session."""

    seq: Number
    to: Client
    payload: bytes


class Taken(msgspec.Struct, frozen=True, array_like=True, tag=13, gc=False):
    """It has dealt with so much of what it was told, since the session began."""

    told: Number


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=16, gc=False):
    """It sends nothing more in a view that ends."""

    group: GroupName
    view: ViewId


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=19, gc=False):
    """Are you there?"""

    request: Number = 0


class Bye(msgspec.Struct, frozen=True, array_like=True, tag=20, gc=False):
    """It is gone."""


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=27, gc=False):
    """Something about the daemon: `status`, `clients`, `groups`; or `drop` a client."""

    request: Number
    what: Annotated[str, msgspec.Meta(max_length=16)]
    about: Annotated[str, msgspec.Meta(max_length=200)] = ""


Request = Hello | Join | Leave | Cast | Private | Taken | Ready | Ping | Bye | Ask


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """The session is open, or open again."""

    version: int
    member: Client
    daemon: Client
    domain: str
    daemons: tuple[Client, ...]
    messages: int
    """Credit: messages and other requests that may be with the daemon and not with the ring."""
    bytes: int
    """And their bytes."""
    run_bytes: int
    """Of the messages in one frame, at most."""
    resume: str
    """A secret with which the session can be taken up again; empty where it ends with the connection."""
    seq: int = 0
    """The last request that the daemon has: after `resume`, send again what comes behind it."""
    grace: float = 0.0
    """Seconds in which a session waits for its client."""


class Done(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """The answer to `ping`."""

    request: int


class Error(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    """A request was refused. Without a number the connection ends."""

    seq: int | None
    code: str
    text: str


class Deliver(msgspec.Struct, frozen=True, array_like=True, tag=8, gc=False):
    """Messages of one sender to groups, in the order of the daemons."""

    groups: tuple[str, ...]
    sender: Client
    first: int
    position: Position
    payloads: Sequence[bytes]
    items: list[str] | None = None


class DeliverAny(msgspec.Struct, frozen=True, array_like=True, tag=8, gc=False):
    """The same, whatever the messages are."""

    groups: tuple[str, ...]
    sender: Client
    first: int
    position: Position
    payloads: msgspec.Raw
    items: list[str] | None = None


class View(msgspec.Struct, frozen=True, array_like=True, tag=11, gc=False):
    """A view of a group."""

    group: str
    id: ViewId
    members: tuple[Client, ...]
    joined: tuple[Client, ...]
    left: tuple[Client, ...]
    failed: tuple[Client, ...]
    cause: str
    vs: bool = False
    along: tuple[Client, ...] = ()


class Transitional(msgspec.Struct, frozen=True, array_like=True, tag=12, gc=False):
    """What still comes in this view is sure to be delivered by these members only."""

    group: str
    id: ViewId
    members: tuple[Client, ...]


class Placed(msgspec.Struct, frozen=True, array_like=True, tag=14, gc=False):
    """All requests up to this one have their place, and all daemons have them."""

    upto: int


class Credits(msgspec.Struct, frozen=True, array_like=True, tag=15, gc=False):
    """The ring has taken so many messages and bytes of this client: it may send as many more."""

    messages: int
    bytes: int


class Block(msgspec.Struct, frozen=True, array_like=True, tag=17, gc=False):
    """The view of a `vs` group ends: answer `ready`."""

    group: str
    view: ViewId


class Purged(msgspec.Struct, frozen=True, array_like=True, tag=18, gc=False):
    """Messages that this client was too slow for; later ones replace them."""

    groups: tuple[str, ...]
    sender: Client
    first: int
    last: int
    count: int
    by: int


class Left(msgspec.Struct, frozen=True, array_like=True, tag=23, gc=False):
    """The session is over: why, and whether the client may come back as another."""

    cause: str
    again: bool = True


class OutOf(msgspec.Struct, frozen=True, array_like=True, tag=24, gc=False):
    """This client is out of a group."""

    group: str


class Undeliverable(msgspec.Struct, frozen=True, array_like=True, tag=25, gc=False):
    """The session that a private message was for is not there."""

    seq: int
    to: Client


class DeliverPrivate(msgspec.Struct, frozen=True, array_like=True, tag=26, gc=False):
    """A message to this client alone."""

    sender: Client
    seq: int
    position: Position
    payload: bytes


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=28, gc=False):
    """What was asked about the daemon, as JSON."""

    request: int
    answer: str


Told = Deliver | DeliverPrivate | View | Transitional | Placed | Block | Purged | OutOf | Undeliverable | Left
"""What is numbered, from 1 in each session. The numbers are not in the frames: both sides count."""
Reply = Welcome | Done | Error | Credits | Answer | Told
