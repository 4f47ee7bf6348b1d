"""Virtual synchrony: one checker per property of Pereira 2002, 2.2 and 4.4 to 4.6, and Birman 1991, 4.2."""

from collections.abc import Callable

from semcast.history.events import History
from semcast.specs.verdict import Verdict
from semcast.specs.vsync.causal import causal_delivery, semantic_causal_completeness
from semcast.specs.vsync.delivery import (
    vs_semantic_fifo_view_completeness,
    vs_semantic_validity,
    vs_sending_view_delivery,
)
from semcast.specs.vsync.membership import vs_primary_partition, vs_view_agreement
from semcast.specs.vsync.state import vs_state_transfer
from semcast.specs.vsync.synchrony import (
    vs_semantic_uniform_agreement,
    vs_semantic_view_synchrony,
    vs_view_synchrony,
)
from semcast.specs.vsync.total import total_order, uniform_total_order

__all__ = ["VSYNC"]

VSYNC: dict[str, Callable[[History], Verdict]] = {
    checker.__name__: checker
    for checker in (
        vs_view_agreement,
        vs_primary_partition,
        vs_sending_view_delivery,
        vs_semantic_validity,
        vs_view_synchrony,
        vs_semantic_view_synchrony,
        vs_semantic_fifo_view_completeness,
        vs_semantic_uniform_agreement,
        causal_delivery,
        semantic_causal_completeness,
        total_order,
        uniform_total_order,
        vs_state_transfer,
    )
}
