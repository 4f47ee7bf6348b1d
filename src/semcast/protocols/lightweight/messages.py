"""What daemons say to each other in the total order of their ring.

Every message begins with a tag: the *generation* of its daemon when it was handed to the ring, that is the
last configuration with a census; of a census, its own configuration. An operation with another tag than the
one in force is void, which needs no decoding.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from semcast.core.ids import MemberId
from semcast.protocols.lightweight.ids import Change, Epoch, Number, ViewId
from semcast.protocols.lightweight.settings import (
    MAX_CENSUS,
    MAX_GROUP,
    MAX_ITEM,
    MAX_PARTS,
    MAX_RUN,
    MAX_TARGETS,
)
from semcast.protocols.lightweight.written import run_of

Client = MemberId
"""`alice@d`, with the session in the place of the incarnation."""
GroupName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_GROUP)]
ItemName = Annotated[str, msgspec.Meta(max_length=MAX_ITEM)]
Part = Annotated[int, msgspec.Meta(ge=1, le=MAX_PARTS)]
Index = Annotated[int, msgspec.Meta(ge=0, lt=MAX_CENSUS * MAX_PARTS)]
Membership = tuple[Index, Index, Change, bool]
"""The number of the group, that of the epoch in which the client joined, where in it, and whether it was told
of no view yet."""
Memberships = Annotated[list[Membership], msgspec.Meta(max_length=MAX_CENSUS)]
Targets = Annotated[tuple[GroupName, ...], msgspec.Meta(min_length=1, max_length=MAX_TARGETS)]
Items = Annotated[list[ItemName], msgspec.Meta(max_length=MAX_RUN)]


class Came(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A client is connected."""

    client: Client


class Gone(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """It is no more: it leaves all its groups at this position."""

    client: Client
    cause: Annotated[str, msgspec.Meta(max_length=200)]


class Join(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """It wants to be in a group; the first who is there says whether that blocks (`vs`)."""

    client: Client
    seq: Number
    group: GroupName
    vs: bool


class Leave(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """It wants to be in a group no more."""

    client: Client
    seq: Number
    group: GroupName


class Cast(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """A run of messages to the members of one or several groups; `view` is the one its sender was in (vs)."""

    client: Client
    seq: Number
    groups: Targets
    view: ViewId | None
    safe: bool
    """Whether it is delivered only once every daemon has it."""
    payloads: Sequence[bytes]
    """A list; of several messages `Written` where they were received."""
    items: Items | None = None
    """What each message is about, "" for nothing: it replaces those that this client sent to the same groups,
    in the same views, about the same item."""


class ReceivedCast(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """The same as it arrives: nobody looks at single messages."""

    client: Client
    seq: Number
    groups: Targets
    view: ViewId | None
    safe: bool
    payloads: msgspec.Raw
    items: Items | None = None


class Private(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    """A message to one session."""

    client: Client
    seq: Number
    to: Client
    payload: bytes


class Flushed(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    """All that local members sent in this view, which ends, comes before."""

    group: GroupName
    view: ViewId


class Listed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A group as one daemon sees it at the beginning of a configuration."""

    name: GroupName
    vs: bool
    view: ViewId | None
    """The view that its clients are in."""
    size: Number
    """Of that view."""
    changed: bool
    """Whether members of that view were lost."""
    pending: bool
    flushed: bool
    """Whether its `Flushed` for that view was handled."""


class Census(msgspec.Struct, frozen=True, array_like=True, tag=8, gc=False):
    """A part of what a daemon knows of its own clients. One with many groups is in several parts.

    Groups and epochs are said once, and then have numbers, which go on from part to part.
    """

    part: Part
    parts: Part
    groups: Annotated[list[Listed], msgspec.Meta(max_length=MAX_CENSUS)]
    epochs: Annotated[list[Epoch], msgspec.Meta(max_length=MAX_CENSUS)]
    clients: Annotated[list[tuple[Client, Memberships]], msgspec.Meta(max_length=MAX_CENSUS)]


Operation = Came | Gone | Join | Leave | Cast | Private | Flushed
Said = Operation | Census

Received = Came | Gone | Join | Leave | ReceivedCast | Private | Flushed | Census

_decoder: "msgspec.msgpack.Decoder[Received]" = msgspec.msgpack.Decoder(Received)
_encoder = msgspec.msgpack.Encoder()


def tag_of(epoch: Epoch) -> bytes:
    """How messages begin that were handed over in this generation."""
    name = _encoder.encode(epoch)
    return bytes((len(name),)) + name


def encode(message: Said) -> bytes:
    """As it is multicast, behind a tag."""
    return _encoder.encode(message)


def body_of(payload: bytes) -> memoryview:
    """What comes behind the tag, whatever that is."""
    return memoryview(payload)[payload[0] + 1 :] if payload else memoryview(b"")


def decode(body: bytes | memoryview) -> Said | None:
    """What was multicast; None where no daemon says such a thing. All daemons come to the same."""
    try:
        said = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):  # msgspec leaves the latter to us
        return None
    return _cast_of(said) if isinstance(said, ReceivedCast) else said


def _cast_of(said: ReceivedCast) -> Cast | None:
    try:
        run = run_of(said.payloads)
    except ValueError:
        return None
    if not 1 <= len(run) <= MAX_RUN or (said.items is not None and len(said.items) != len(run)):
        return None
    return Cast(said.client, said.seq, said.groups, said.view, said.safe, run, said.items)
