"""What a client of lightweight groups is told, in one stream over all its groups."""

import enum
from collections.abc import Sequence

import msgspec

from semcast.core.ids import MemberId
from semcast.protocols.lightweight.ids import Position, ViewId
from semcast.protocols.lightweight.messages import Client


class Cause(enum.Enum):
    """Why a view was installed."""

    JOIN = "join"
    LEAVE = "leave"
    GONE = "gone"
    FLUSH = "flush"
    """The view of a `vs` group, after whatever had changed."""
    CONFIGURATION = "configuration"
    """The daemons changed."""


class GroupView(msgspec.Struct, frozen=True):
    """A new view of a group, and how it differs from the one before. A member's first event is one."""

    group: str
    id: ViewId
    members: tuple[Client, ...]
    """In the order in which they joined."""
    joined: tuple[Client, ...]
    left: tuple[Client, ...]
    failed: tuple[Client, ...]
    cause: Cause
    vs: bool
    along: tuple[Client, ...] = ()
    """In a `vs` group: who comes from the same view and has delivered the same there."""


class GroupTransitional(msgspec.Struct, frozen=True):
    """What still comes in this view is sure to be delivered by these members only."""

    group: str
    id: ViewId
    members: tuple[Client, ...]


class Delivered(msgspec.Struct, frozen=True):
    """A run of messages; once, also for who is in several of its groups."""

    sender: Client
    first: int
    groups: tuple[str, ...]
    position: Position | None
    """None where groups have no common order."""
    payloads: Sequence[bytes]
    size: int
    """Bytes that they take, with how they are written where that is known."""
    items: list[str] | None = None
    """What each is about."""


class Replaced(msgspec.Struct, frozen=True):
    """Messages that this client was too slow for: later ones about the same items come in the same view."""

    sender: Client
    groups: tuple[str, ...]
    first: int
    last: int
    count: int
    """How many of the sender's messages from `first` to `last`."""
    by: int
    """The newest message that replaced one of them."""


class PrivateDelivered(msgspec.Struct, frozen=True):
    """A message to this client alone."""

    sender: Client
    seq: int
    position: Position | None
    """None where there is no order of all messages."""
    payload: bytes


class Undeliverable(msgspec.Struct, frozen=True):
    """The client that a private message was for is not there."""

    seq: int
    to: MemberId


class Block(msgspec.Struct, frozen=True):
    """The view of a `vs` group ends: send nothing more there as a member, and say `ready`."""

    group: str
    view: ViewId


class LeftGroup(msgspec.Struct, frozen=True):
    """This client is out of the group."""

    group: str
    cause: str = ""
    """Why, if it did not ask to."""


class Placed(msgspec.Struct, frozen=True):
    """All requests of this client up to this one have their place, and all daemons here have them."""

    upto: int


class Out(msgspec.Struct, frozen=True):
    """The session is over: this client was put out, and may come back as another."""

    cause: str


ClientEvent = (
    GroupView
    | GroupTransitional
    | Delivered
    | Replaced
    | PrivateDelivered
    | Undeliverable
    | Block
    | LeftGroup
    | Placed
    | Out
)
