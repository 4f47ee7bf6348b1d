"""What a client is told, as frames. What many are told is encoded once."""

from collections.abc import Callable

from semcast.protocols.clients.codec import Format, encode
from semcast.protocols.clients.frames import (
    Block,
    Deliver,
    DeliverPrivate,
    Left,
    OutOf,
    Placed,
    Purged,
    Told,
    Transitional,
    Undeliverable,
    View,
)
from semcast.protocols.lightweight import events
from semcast.protocols.lightweight.events import ClientEvent


def frame_of(event: ClientEvent) -> Told:
    """The frame that tells of an event."""
    return _FRAMES[type(event)](event)


_FRAMES: dict[type, Callable[..., Told]] = {
    events.Delivered: lambda e: Deliver(e.groups, e.sender, e.first, e.position, e.payloads, e.items),
    events.PrivateDelivered: lambda e: DeliverPrivate(e.sender, e.seq, e.position, e.payload),
    events.GroupView: lambda e: View(
        e.group, e.id, e.members, e.joined, e.left, e.failed, e.cause.value, e.vs, e.along
    ),
    events.GroupTransitional: lambda e: Transitional(e.group, e.id, e.members),
    events.Placed: lambda e: Placed(e.upto),
    events.Block: lambda e: Block(e.group, e.view),
    events.Replaced: lambda e: Purged(e.groups, e.sender, e.first, e.last, e.count, e.by),
    events.LeftGroup: lambda e: OutOf(e.group),
    events.Undeliverable: lambda e: Undeliverable(e.seq, e.to),
    events.Out: lambda e: Left(e.cause),
}


class Encoder:
    """Remembers what it has encoded since the last `forget`: a message goes to many clients at a time."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Format], tuple[ClientEvent, bytes]] = {}

    def body(self, event: ClientEvent, form: Format) -> bytes:
        """The frame that tells of an event."""
        key = id(event), form
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = event, encode(frame_of(event), form)
        return found[1]

    def forget(self) -> None:
        """The turn is over."""
        self._known.clear()
