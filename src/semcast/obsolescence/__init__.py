"""Message obsolescence: the relation, the trackers that build it, the buffers that use it."""

from semcast.obsolescence.buffer import Purging, PurgingBuffer, Receipt
from semcast.obsolescence.relation import obsoletes
from semcast.obsolescence.trackers import (
    ItemsTracker,
    OperationObserver,
    OperationTracker,
    ReadWriteTracker,
    SingleItemTracker,
)

__all__ = [
    "ItemsTracker",
    "OperationObserver",
    "OperationTracker",
    "Purging",
    "PurgingBuffer",
    "ReadWriteTracker",
    "Receipt",
    "SingleItemTracker",
    "obsoletes",
]
