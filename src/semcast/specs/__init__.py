"""What must hold: one checker per property, over histories only.

>>> from semcast.core import MemberId
>>> from semcast.core.messages import batch_of
>>> from semcast.history import Recorder, RunInfo
>>> a, b = MemberId("a"), MemberId("b")
>>> recorder = Recorder(RunInfo.one("demo", "g", "s-rm", 1, (a, b), None, uniform=False, quiesced=False))
>>> recorder.multicast(0, a, batch_of(a, 1, [b"x"]))
>>> recorder.deliver(1, a, batch_of(a, 1, [b"x"]))
>>> for verdict in check(recorder.close(quiesced=True), ["integrity", "semantic_agreement"]):
...     print(verdict)
integrity: holds
semantic_agreement: violated: b has neither (a,1) nor a replacement
    a[1] at 1 ns: deliver (a,1)
"""

from collections.abc import Callable, Iterable

from semcast.history.events import GroupInfo, History
from semcast.history.schema import Kind
from semcast.specs.calls import CALLS
from semcast.specs.certificates import CERTIFICATES
from semcast.specs.confirmed import confirmed
from semcast.specs.crash import nothing_after_crash
from semcast.specs.domains import DOMAINS
from semcast.specs.evs import EVS
from semcast.specs.families import FAMILIES
from semcast.specs.fifo import fifo_delivery
from semcast.specs.flow import buffer_bound
from semcast.specs.gossip import GOSSIP, GOSSIP_BATCHES, GOSSIP_LOGS, GOSSIP_READERS
from semcast.specs.integrity import integrity
from semcast.specs.lightweight import LIGHTWEIGHT
from semcast.specs.order import relation_is_order
from semcast.specs.replication import REPLICATION
from semcast.specs.semantic import (
    semantic_agreement,
    semantic_fifo_completeness,
    semantic_sender_reliability,
    semantic_uniform_agreement,
    semantic_validity,
)
from semcast.specs.state import same_state, same_state_of_correct_senders
from semcast.specs.verdict import Status, Verdict
from semcast.specs.vsync import VSYNC

__all__ = [
    "CALLS",
    "CERTIFICATES",
    "DOMAINS",
    "EVS",
    "GOSSIP",
    "GOSSIP_BATCHES",
    "GOSSIP_LOGS",
    "GOSSIP_READERS",
    "IN_MEMORY",
    "LIGHTWEIGHT",
    "PROPERTIES",
    "REPLICATION",
    "VSYNC",
    "Status",
    "Verdict",
    "check",
    "properties_for",
]

PROPERTIES: dict[str, Callable[[History], Verdict]] = {
    "relation_is_order": relation_is_order,
    "integrity": integrity,
    "fifo_delivery": fifo_delivery,
    "nothing_after_crash": nothing_after_crash,
    "semantic_sender_reliability": semantic_sender_reliability,
    "semantic_validity": semantic_validity,
    "semantic_agreement": semantic_agreement,
    "semantic_uniform_agreement": semantic_uniform_agreement,
    "semantic_fifo_completeness": semantic_fifo_completeness,
    "buffer_bound": buffer_bound,
    "same_state": same_state,
    "same_state_of_correct_senders": same_state_of_correct_senders,
    **CERTIFICATES,
    **EVS,
    **VSYNC,
    **REPLICATION,
    **GOSSIP,
    **GOSSIP_LOGS,
    **GOSSIP_BATCHES,
    **GOSSIP_READERS,
    **LIGHTWEIGHT,
    **CALLS,
    **DOMAINS,
}


IN_MEMORY: dict[str, Callable[[History], Verdict]] = {"confirmed": confirmed}
"""What no family promises, and is judged wherever a history has something to say about it."""


def properties_for(info: GroupInfo) -> list[str]:
    """The properties that the stack of a group promises."""
    if info.stack not in FAMILIES:
        known = ", ".join(FAMILIES.names())
        raise ValueError(f"nothing is known of what stack {info.stack!r} promises, only of {known}")
    promised = FAMILIES.of(info.stack).promises(info)
    return [name for name in PROPERTIES if name in promised]


def check(history: History, names: Iterable[str] | None = None) -> list[Verdict]:
    """Judge a history by the named properties, or by those that its stack promises, group by group."""
    groups = history.by_group()
    if len(groups) == 1:
        return _check_group(history, names)
    given = None if names is None else list(names)
    return [verdict.about(each.info.only.name) for each in groups for verdict in _check_group(each, given)]


def _check_group(history: History, names: Iterable[str] | None) -> list[Verdict]:
    checkers = PROPERTIES | IN_MEMORY
    names = _spoken_of(history) if names is None else list(names)
    unknown = [name for name in names if name not in checkers]
    if unknown:
        raise ValueError(f"no such property: {', '.join(unknown)}; choose from {', '.join(checkers)}")
    return [checkers[name](history) for name in names]


def _spoken_of(history: History) -> list[str]:
    """What its stack promises, and what it said of its own messages."""
    names = properties_for(history.info.only)
    if any(event.kind is Kind.CONFIRMED for event in history.events):
        names.append("confirmed")
    return names
