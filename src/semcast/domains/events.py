"""What a program hears of its domain and of the groups in it."""

from collections.abc import Iterator
from itertools import count, repeat

import msgspec

from semcast.core.annotations import Item
from semcast.core.events import Left, Rejoining, Skipped, TransitionalView, ViewChange
from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Batch, Message, PrivateMessage
from semcast.protocols.lightweight.events import (
    Delivered,
    GroupTransitional,
    GroupView,
    PrivateDelivered,
)
from semcast.protocols.lightweight.ids import place_of, plain_view
from semcast.protocols.lightweight.written import list_of


class DomainMessage(Message, frozen=True, gc=False):
    """A message to groups. Its id is one in the whole domain, and `order` its place there.

    Where this program is in several of its groups, it is delivered once.
    """

    groups: tuple[str, ...] = ()
    """All that it was sent to."""


class DomainView(ViewChange, frozen=True):
    """A new view of a group, and why."""

    cause: str = ""
    """join, leave, gone (a program ended), flush (a group with sending view delivery), configuration (the
    network or a host failed, or is back)."""
    along: tuple[MemberId, ...] = ()
    """In a group with sending view delivery: who delivered the same in the view before."""


class Undeliverable(msgspec.Struct, frozen=True):
    """A private message has nobody to go to; in a causal domain its addressee may have failed with it."""

    id: MessageId
    to: MemberId


DomainEvent = (
    DomainMessage
    | PrivateMessage
    | DomainView
    | TransitionalView
    | Undeliverable
    | Left
    | Rejoining
    | Skipped
)
"""What happens in a group, or (with no group) to this program."""


DomainDelivery = Batch | DomainEvent
"""What it hears in lists: runs of messages to groups, and the rest."""


def batch_of(run: Delivered) -> Batch:
    """A run of messages as one."""
    order = None if run.position is None else place_of(run.position.epoch, run.position.index)
    items = run.items if run.items is not None and all(run.items) else None
    return Batch(run.sender, run.first, list_of(run.payloads), size=run.size, order=order, items=items)


def messages_of(run: Delivered) -> list[DomainMessage]:
    """The single messages of a run."""
    ids = map(MessageId, repeat(run.sender), count(run.first))
    orders: Iterator[int | None] = repeat(None)
    if run.position is not None:
        orders = count(place_of(run.position.epoch, run.position.index))
    notes = repeat(None) if run.items is None else [Item(item) if item else None for item in run.items]
    return list(map(DomainMessage, ids, run.payloads, notes, orders, repeat(run.groups)))


def private_of(event: PrivateDelivered) -> PrivateMessage:
    """A message to this program alone."""
    order = None if event.position is None else place_of(event.position.epoch, event.position.index)
    return PrivateMessage(MessageId(event.sender, event.seq), event.payload, order=order)


def view_of(event: GroupView) -> DomainView:
    """A new view of a group."""
    view = plain_view(event.id, event.members)
    return DomainView(view, event.joined, event.left, event.failed, event.cause.value, event.along)


def transitional_of(event: GroupTransitional) -> TransitionalView:
    """Only some are sure to get what still comes."""
    return TransitionalView(plain_view(event.id, event.members))
