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
from semcast.history.schema import CAUSAL, FIFO, TOTAL
from semcast.specs.evs import EVS
from semcast.specs.fifo import fifo_delivery
from semcast.specs.flow import buffer_bound
from semcast.specs.integrity import integrity
from semcast.specs.order import relation_is_order
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

__all__ = ["EVS", "PROPERTIES", "VSYNC", "Status", "Verdict", "check", "properties_for"]

PROPERTIES: dict[str, Callable[[History], Verdict]] = {
    "relation_is_order": relation_is_order,
    "integrity": integrity,
    "fifo_delivery": fifo_delivery,
    "semantic_sender_reliability": semantic_sender_reliability,
    "semantic_validity": semantic_validity,
    "semantic_agreement": semantic_agreement,
    "semantic_uniform_agreement": semantic_uniform_agreement,
    "semantic_fifo_completeness": semantic_fifo_completeness,
    "buffer_bound": buffer_bound,
    "same_state": same_state,
    "same_state_of_correct_senders": same_state_of_correct_senders,
    **EVS,
    **VSYNC,
}

_ALWAYS = {"relation_is_order", "integrity", "fifo_delivery", "buffer_bound"}
_S_RM = _ALWAYS | {"semantic_validity", "semantic_agreement", "semantic_fifo_completeness", "same_state"}
# Plain reliable multicast is S-RM with an empty relation (seed P, 4.3.1), and so are its properties.
_PROMISED = {
    "s-srm": _ALWAYS | {"semantic_sender_reliability", "same_state_of_correct_senders"},
    "s-rm": _S_RM,
    "reliable": _S_RM,
    "ring": _ALWAYS | EVS.keys(),
    "vsync": _ALWAYS
    | {
        "vs_view_agreement",
        "vs_primary_partition",
        "vs_sending_view_delivery",
        "vs_semantic_validity",
        "vs_semantic_view_synchrony",
        "vs_semantic_fifo_view_completeness",
        "vs_state_transfer",
    },
}
_CAUSAL = {"causal_delivery", "semantic_causal_completeness"}
# Total order extends causal order (seed I, 5.2).
_ORDERED: dict[str, set[str]] = {FIFO: set(), CAUSAL: _CAUSAL, TOTAL: _CAUSAL | {"total_order"}}


def properties_for(info: GroupInfo) -> list[str]:
    """The properties that the stack of a group promises."""
    promised = _PROMISED.get(info.stack)
    if promised is None:
        known = ", ".join(_PROMISED)
        raise ValueError(f"nothing is known of what stack {info.stack!r} promises, only of {known}")
    if info.uniform and "semantic_agreement" in promised:
        promised = promised | {"semantic_uniform_agreement"}
    if info.stack == "vsync":
        promised = promised | _of_views(info)
    return [name for name in PROPERTIES if name in promised]


def _of_views(info: GroupInfo) -> set[str]:
    """What virtual synchrony promises besides, as it was asked for."""
    ordered = _ORDERED.get(info.order)
    if ordered is None:
        raise ValueError(f"nothing is known of order {info.order!r}, only of {', '.join(_ORDERED)}")
    if not info.uniform:
        return ordered
    uniform = {"uniform_total_order"} if info.order == TOTAL else set()
    return ordered | uniform | {"vs_semantic_uniform_agreement"}


def check(history: History, names: Iterable[str] | None = None) -> list[Verdict]:
    """Judge a history by the named properties, or by those that its stack promises, group by group."""
    groups = history.by_group()
    if len(groups) == 1:
        return _check_group(history, names)
    given = None if names is None else list(names)
    return [verdict.about(each.info.only.name) for each in groups for verdict in _check_group(each, given)]


def _check_group(history: History, names: Iterable[str] | None) -> list[Verdict]:
    names = properties_for(history.info.only) if names is None else list(names)
    unknown = [name for name in names if name not in PROPERTIES]
    if unknown:
        raise ValueError(f"no such property: {', '.join(unknown)}; there are {', '.join(PROPERTIES)}")
    return [PROPERTIES[name](history) for name in names]
