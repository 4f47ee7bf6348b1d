"""What people import: join a group, send to it, watch what happens."""

from semcast.core.events import Rejoining, Skipped, StateLost
from semcast.core.handover import StateHooks
from semcast.core.messages import PrivateMessage
from semcast.group.confirming import Confirm, Confirmation
from semcast.group.dictionary import Entry, ReplicatedDict, Stamp
from semcast.group.drafts import Order
from semcast.group.errors import (
    BacklogError,
    CallError,
    ConfigurationError,
    GroupClosedError,
    GroupError,
    SendTimeoutError,
    UnconfirmedError,
)
from semcast.group.events import GroupDelivery, GroupEvent
from semcast.group.flow import HeldUp
from semcast.group.group import Group
from semcast.group.joining import join
from semcast.group.logclient import (
    Log,
    LogAwayError,
    LogError,
    LogFullError,
    LogOffsetError,
    LogStageError,
    OtherLogError,
    log,
)
from semcast.group.logpages import LogEnds, LogEntry, LogIdentity, LogPage, LogReceipt, LogRun, LogRuns
from semcast.group.patterns import Live, live
from semcast.group.settings import GroupSettings
from semcast.group.statistics import GroupStatistics
from semcast.group.subscribing import LogBatch, Subscription, subscribe
from semcast.group.transaction import assignments
from semcast.patterns.calls import CallAnswer, CallRequest

__all__ = [
    "BacklogError",
    "CallAnswer",
    "CallError",
    "CallRequest",
    "ConfigurationError",
    "Confirm",
    "Confirmation",
    "Entry",
    "Group",
    "GroupClosedError",
    "GroupDelivery",
    "GroupError",
    "GroupEvent",
    "GroupSettings",
    "GroupStatistics",
    "HeldUp",
    "Live",
    "Log",
    "LogAwayError",
    "LogBatch",
    "LogEnds",
    "LogEntry",
    "LogError",
    "LogFullError",
    "LogIdentity",
    "LogOffsetError",
    "LogPage",
    "LogReceipt",
    "LogRun",
    "LogRuns",
    "LogStageError",
    "Order",
    "OtherLogError",
    "PrivateMessage",
    "Rejoining",
    "ReplicatedDict",
    "SendTimeoutError",
    "Skipped",
    "Stamp",
    "StateHooks",
    "StateLost",
    "Subscription",
    "UnconfirmedError",
    "assignments",
    "join",
    "live",
    "log",
    "subscribe",
]
