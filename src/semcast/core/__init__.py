"""The vocabulary everything else is written in: ids, views, messages, events, the outbox."""

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.events import (
    Blocked,
    Delivery,
    Event,
    Left,
    Merged,
    Purged,
    Sent,
    TransitionalView,
    Unblocked,
    ViewChange,
)
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch, Message
from semcast.core.outbox import Dest, Frame, Outbox, Reach, Timer
from semcast.core.reader import Reader
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.views import View

__all__ = [
    "Annotation",
    "Batch",
    "Blocked",
    "Delivery",
    "Dest",
    "Enumeration",
    "Event",
    "Frame",
    "HeldBack",
    "Item",
    "KEnumeration",
    "Left",
    "MemberId",
    "Merged",
    "Message",
    "MessageId",
    "Nanos",
    "Outbox",
    "Purged",
    "Reach",
    "Reader",
    "Sent",
    "Stack",
    "Statistics",
    "Timer",
    "TransitionalView",
    "Unblocked",
    "View",
    "ViewChange",
]
