"""What each stack promises: the properties that its runs are judged by."""

from collections.abc import Callable, Collection

import msgspec

from semcast.core.registry import Registry
from semcast.history.events import GroupInfo
from semcast.history.schema import CAUSAL, FIFO, TOTAL
from semcast.specs.calls import CALLS
from semcast.specs.domains import DOMAINS
from semcast.specs.evs import EVS
from semcast.specs.gossip import GOSSIP, GOSSIP_BATCHES, GOSSIP_LOGS, GOSSIP_READERS
from semcast.specs.lightweight import LIGHTWEIGHT
from semcast.specs.replication import REPLICATION

ALWAYS = frozenset({"relation_is_order", "integrity", "fifo_delivery", "buffer_bound"})
"""What every stack promises so far."""


class Family(msgspec.Struct, frozen=True):
    """A stack, for those who judge what it did."""

    name: str
    promises: Callable[[GroupInfo], Collection[str]]
    """Names of properties, as the run was asked for."""


FAMILIES: Registry[Family] = Registry("promises of a stack")

_STATIC = ALWAYS | {"nothing_after_crash"}
"""Without views: what has views says of itself that nobody acts outside of one, nor after a crash."""
_S_RM = _STATIC | {"semantic_validity", "semantic_agreement", "semantic_fifo_completeness", "same_state"}
_CAUSAL = frozenset({"causal_delivery", "semantic_causal_completeness"})
_TIMED = _CAUSAL | {"vector_certificate"}
# Total order extends causal order (Birman et al. 1991, 5.2).
_ORDERED: dict[str, frozenset[str]] = {FIFO: frozenset(), CAUSAL: _TIMED, TOTAL: _CAUSAL | {"total_order"}}
_VIEWS = ALWAYS | {
    "vs_view_agreement",
    "vs_primary_partition",
    "vs_sending_view_delivery",
    "vs_semantic_validity",
    "vs_semantic_view_synchrony",
    "vs_semantic_fifo_view_completeness",
    "vs_state_transfer",
}


def _s_srm(_info: GroupInfo) -> Collection[str]:
    return _STATIC | {"semantic_sender_reliability", "same_state_of_correct_senders"}


def _s_rm(info: GroupInfo) -> Collection[str]:
    return _S_RM | {"semantic_uniform_agreement"} if info.uniform else _S_RM


def _ring(_info: GroupInfo) -> Collection[str]:
    return ALWAYS | EVS.keys() | {"ring_certificate"}


def _vsync(info: GroupInfo) -> Collection[str]:
    """Of views, and of the order that was asked for."""
    ordered = _ORDERED.get(info.order)
    if ordered is None:
        raise ValueError(f"nothing is known of order {info.order!r}, only of {', '.join(_ORDERED)}")
    if not info.uniform:
        return _VIEWS | ordered
    uniform = {"uniform_total_order"} if info.order == TOTAL else set()
    return _VIEWS | ordered | uniform | {"vs_semantic_uniform_agreement"}


def _replication(_info: GroupInfo) -> Collection[str]:
    return REPLICATION.keys()


def _pbcast(_info: GroupInfo) -> Collection[str]:
    joining = {"gossip_start", "gossip_members", "gossip_sponsored"}
    return _STATIC | joining | {"gossip_receipts", "gossip_progress"}


def _logged(_info: GroupInfo) -> Collection[str]:
    """Without a logger they promise what pbcast does: the others then say that they cannot tell."""
    return _STATIC | GOSSIP.keys() | GOSSIP_LOGS.keys()


def _gateway(info: GroupInfo) -> Collection[str]:
    """A group with a logger, and programs that give it batches."""
    return {*_logged(info), *GOSSIP_BATCHES}


def _source(info: GroupInfo) -> Collection[str]:
    """A group with a logger, and programs that read its log."""
    return {*_logged(info), *GOSSIP_READERS}


def _lightweight(_info: GroupInfo) -> Collection[str]:
    return LIGHTWEIGHT.keys()


def _isis(_info: GroupInfo) -> Collection[str]:
    return DOMAINS.keys()


def _calls(_info: GroupInfo) -> Collection[str]:
    return CALLS.keys()


FAMILIES.register(Family("s-srm", _s_srm))
FAMILIES.register(Family("s-rm", _s_rm))
# Plain reliable multicast is S-RM with an empty relation (Pereira 2002, 4.3.1), and so are its properties.
FAMILIES.register(Family("reliable", _s_rm))
FAMILIES.register(Family("ring", _ring))
FAMILIES.register(Family("vsync", _vsync))
FAMILIES.register(Family("replication", _replication))
FAMILIES.register(Family("lbrm", _logged))
FAMILIES.register(Family("rpbcast", _logged))
FAMILIES.register(Family("pbcast", _pbcast))
FAMILIES.register(Family("sessions", _logged))
FAMILIES.register(Family("gateway", _gateway))
FAMILIES.register(Family("source", _source))
FAMILIES.register(Family("lightweight", _lightweight))
FAMILIES.register(Family("isis", _isis))
FAMILIES.register(Family("calls", _calls))
