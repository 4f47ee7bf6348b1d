"""Semcast: group communication with semantic reliability."""

from semcast.core import (
    Batch,
    Item,
    MemberId,
    Message,
    MessageId,
    Purged,
    TransitionalView,
    View,
    ViewChange,
)
from semcast.group import (
    ConfigurationError,
    Group,
    GroupClosedError,
    GroupError,
    GroupEvent,
    GroupSettings,
    GroupStatistics,
    Order,
    ReplicatedDict,
    join,
)

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "ConfigurationError",
    "Group",
    "GroupClosedError",
    "GroupError",
    "GroupEvent",
    "GroupSettings",
    "GroupStatistics",
    "Item",
    "MemberId",
    "Message",
    "MessageId",
    "Order",
    "Purged",
    "ReplicatedDict",
    "TransitionalView",
    "View",
    "ViewChange",
    "__version__",
    "join",
]
