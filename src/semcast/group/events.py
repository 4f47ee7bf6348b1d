"""What a program hears of its group."""

from semcast.core.events import (
    Away,
    Back,
    Delivery,
    Lost,
    Merged,
    Minority,
    Rejoining,
    Skipped,
    StateLost,
    TransitionalView,
    ViewChange,
)
from semcast.core.messages import Message, PrivateMessage

GroupEvent = (
    Message
    | ViewChange
    | TransitionalView
    | Merged
    | Minority
    | Rejoining
    | Skipped
    | StateLost
    | Lost
    | Away
    | Back
    | PrivateMessage
)
"""What a program hears, one by one."""

GroupDelivery = Delivery
"""What it hears in lists: runs of messages, and the rest."""
