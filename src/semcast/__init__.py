"""Semcast: group communication with semantic reliability."""

import logging

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
    BacklogError,
    ConfigurationError,
    Confirm,
    Confirmation,
    Group,
    GroupClosedError,
    GroupDelivery,
    GroupError,
    GroupEvent,
    GroupSettings,
    GroupStatistics,
    HeldUp,
    Live,
    Order,
    Rejoining,
    ReplicatedDict,
    SendTimeoutError,
    Skipped,
    StateHooks,
    UnconfirmedError,
    assignments,
    join,
    live,
)

logging.getLogger("semcast").addHandler(logging.NullHandler())  # programs decide what becomes of the log

__version__ = "0.1.0"

__all__ = [
    "BacklogError",
    "Batch",
    "ConfigurationError",
    "Confirm",
    "Confirmation",
    "Group",
    "GroupClosedError",
    "GroupDelivery",
    "GroupError",
    "GroupEvent",
    "GroupSettings",
    "GroupStatistics",
    "HeldUp",
    "Item",
    "Live",
    "MemberId",
    "Message",
    "MessageId",
    "Minority",
    "Order",
    "Purged",
    "Rejoining",
    "ReplicatedDict",
    "SendTimeoutError",
    "Skipped",
    "StateHooks",
    "TransitionalView",
    "UnconfirmedError",
    "View",
    "ViewChange",
    "__version__",
    "assignments",
    "join",
    "live",
]
