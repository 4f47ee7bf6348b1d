"""What a program hears of its group, and what it may be asked for."""

from typing import Protocol

import msgspec

from semcast.core.events import Delivery, Minority, TransitionalView, ViewChange
from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Message


class Rejoining(msgspec.Struct, frozen=True):
    """The group went on without this member, which now comes back as another incarnation.

    The next view is the first of `member`. With state hooks the state is restored before it; without, what
    the others delivered in between is not heard of.
    """

    former: MemberId
    member: MemberId
    """Who this is from now on."""
    cause: str
    unsettled: tuple[MessageId, ...] = ()
    """Messages of `former`, by the ids that `send` returned, of which it is not known whether the others have
    them or ever will. Nobody sends them again. What was handed over after them had not left, and is sent by
    `member`."""


class StateHooks(Protocol):
    """The state of an application, for who joins; used between two events that the program takes."""

    def export(self) -> bytes:
        """Everything that the events up to here made of the state."""

    def restore(self, state: bytes) -> None:
        """Forget the state, and go on from this one."""


GroupEvent = Message | ViewChange | TransitionalView | Minority | Rejoining
"""What a program hears, one by one."""

GroupDelivery = Delivery | Minority | Rejoining
"""What it hears in lists: runs of messages, and the rest."""
