"""What a program hears of its group."""

from semcast.core.events import Delivery, Minority, Rejoining, Skipped, TransitionalView, ViewChange
from semcast.core.messages import Message

GroupEvent = Message | ViewChange | TransitionalView | Minority | Rejoining | Skipped
"""What a program hears, one by one."""

GroupDelivery = Delivery
"""What it hears in lists: runs of messages, and the rest."""
