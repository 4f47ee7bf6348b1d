"""What must hold of servers that replicate a service through partitions (Amir 1995, chapters 6 and 7)."""

from collections.abc import Callable

from semcast.history.events import History
from semcast.specs.replication.answers import (
    repl_answered,
    repl_causal,
    repl_dirty,
    repl_linear,
    repl_queued,
    repl_session,
    repl_weak,
)
from semcast.specs.replication.lineages import repl_lineage, repl_memory
from semcast.specs.replication.order import repl_fifo, repl_integrity, repl_total_order
from semcast.specs.replication.primaries import (
    repl_green_in_primary,
    repl_join,
    repl_leave,
    repl_one_primary,
)
from semcast.specs.replication.rest import (
    repl_exchange_once,
    repl_knowledge,
    repl_liveness,
    repl_state,
    repl_white,
)
from semcast.specs.verdict import Verdict

REPLICATION: dict[str, Callable[[History], Verdict]] = {
    "repl_total_order": repl_total_order,
    "repl_fifo": repl_fifo,
    "repl_integrity": repl_integrity,
    "repl_one_primary": repl_one_primary,
    "repl_green_in_primary": repl_green_in_primary,
    "repl_knowledge": repl_knowledge,
    "repl_white": repl_white,
    "repl_state": repl_state,
    "repl_answered": repl_answered,
    "repl_queued": repl_queued,
    "repl_linear": repl_linear,
    "repl_session": repl_session,
    "repl_weak": repl_weak,
    "repl_dirty": repl_dirty,
    "repl_causal": repl_causal,
    "repl_liveness": repl_liveness,
    "repl_exchange_once": repl_exchange_once,
    "repl_join": repl_join,
    "repl_leave": repl_leave,
    "repl_lineage": repl_lineage,
    "repl_memory": repl_memory,
}
