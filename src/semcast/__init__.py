"""Semcast: group communication with semantic reliability."""

import logging
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from semcast.core.events import Away, Back, Lost, Merged, Minority
    from semcast.databases import database
    from semcast.domains import (
        Domain,
        DomainEvent,
        DomainMessage,
        DomainView,
        LightGroup,
        PrivateMessage,
        Undeliverable,
        connect,
        domain,
    )
    from semcast.engine import (
        ActionError,
        Answer,
        Context,
        Database,
        ForgottenError,
        Outcome,
        Procedure,
        Receipt,
        RefusedError,
        Replica,
        ReplicaError,
        RequestError,
        Service,
        Session,
        replicate,
    )
    from semcast.group import (
        BacklogError,
        CallAnswer,
        CallError,
        CallRequest,
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
        LogBatch,
        Order,
        Rejoining,
        ReplicatedDict,
        SendTimeoutError,
        Skipped,
        StateHooks,
        StateLost,
        Subscription,
        UnconfirmedError,
        assignments,
        live,
        subscribe,
    )
    from semcast.joining import join

logging.getLogger("semcast").addHandler(logging.NullHandler())  # programs decide what becomes of the log

__version__ = "0.1.0"

_HOMES = {
    "semcast.core": (
        "Batch",
        "Item",
        "MemberId",
        "Message",
        "MessageId",
        "Purged",
        "TransitionalView",
        "View",
        "ViewChange",
    ),
    "semcast.core.events": (
        "Away",
        "Back",
        "Lost",
        "Merged",
        "Minority",
    ),
    "semcast.databases": ("database",),
    "semcast.domains": (
        "Domain",
        "DomainEvent",
        "DomainMessage",
        "DomainView",
        "LightGroup",
        "PrivateMessage",
        "Undeliverable",
        "connect",
        "domain",
    ),
    "semcast.engine": (
        "ActionError",
        "Answer",
        "Context",
        "Database",
        "ForgottenError",
        "Outcome",
        "Procedure",
        "Receipt",
        "RefusedError",
        "Replica",
        "ReplicaError",
        "RequestError",
        "Service",
        "Session",
        "replicate",
    ),
    "semcast.group": (
        "BacklogError",
        "CallAnswer",
        "CallError",
        "CallRequest",
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
        "Live",
        "LogBatch",
        "Order",
        "Rejoining",
        "ReplicatedDict",
        "SendTimeoutError",
        "Skipped",
        "StateHooks",
        "StateLost",
        "Subscription",
        "UnconfirmedError",
        "assignments",
        "live",
        "subscribe",
    ),
    "semcast.joining": ("join",),
}
"""Where the names of this package live. A name is loaded when it is first asked for: who needs only a part,
as the command line and Spark's workers do, does not wait for the rest."""
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is not None:
        value = globals()[name] = getattr(import_module(home), name)
        return value
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")  # semcast.blocking, semcast.core, ...
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


__all__ = [
    "ActionError",
    "Answer",
    "Away",
    "Back",
    "BacklogError",
    "Batch",
    "CallAnswer",
    "CallError",
    "CallRequest",
    "ConfigurationError",
    "Confirm",
    "Confirmation",
    "Context",
    "Database",
    "Domain",
    "DomainEvent",
    "DomainMessage",
    "DomainView",
    "ForgottenError",
    "Group",
    "GroupClosedError",
    "GroupDelivery",
    "GroupError",
    "GroupEvent",
    "GroupSettings",
    "GroupStatistics",
    "HeldUp",
    "Item",
    "LightGroup",
    "Live",
    "LogBatch",
    "Lost",
    "MemberId",
    "Merged",
    "Message",
    "MessageId",
    "Minority",
    "Order",
    "Outcome",
    "PrivateMessage",
    "Procedure",
    "Purged",
    "Receipt",
    "RefusedError",
    "Rejoining",
    "Replica",
    "ReplicaError",
    "ReplicatedDict",
    "RequestError",
    "SendTimeoutError",
    "Service",
    "Session",
    "Skipped",
    "StateHooks",
    "StateLost",
    "Subscription",
    "TransitionalView",
    "UnconfirmedError",
    "Undeliverable",
    "View",
    "ViewChange",
    "__version__",
    "assignments",
    "connect",
    "database",
    "domain",
    "join",
    "live",
    "replicate",
    "subscribe",
]
