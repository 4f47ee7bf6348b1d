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
from semcast.core.events import Minority
from semcast.group import (
    ConfigurationError,
    Group,
    GroupClosedError,
    GroupDelivery,
    GroupError,
    GroupEvent,
    GroupSettings,
    GroupStatistics,
    Order,
    Rejoining,
    ReplicatedDict,
    StateHooks,
    join,
)

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "ConfigurationError",
    "Group",
    "GroupClosedError",
    "GroupDelivery",
    "GroupError",
    "GroupEvent",
    "GroupSettings",
    "GroupStatistics",
    "Item",
    "MemberId",
    "Message",
    "MessageId",
    "Minority",
    "Order",
    "Purged",
    "Rejoining",
    "ReplicatedDict",
    "StateHooks",
    "TransitionalView",
    "View",
    "ViewChange",
    "__version__",
    "join",
]
