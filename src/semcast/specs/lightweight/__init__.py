"""What must hold of lightweight groups and the clients of daemons (Amir 1995, 5.1)."""

from collections.abc import Callable

from semcast.history.events import History
from semcast.specs.lightweight.fate import one_fate
from semcast.specs.lightweight.heard import lw_heard, lw_purged
from semcast.specs.lightweight.messages import lw_open, lw_order, lw_private, lw_sending_view
from semcast.specs.lightweight.rest import lw_gone, lw_settled
from semcast.specs.lightweight.views import lw_atomicity, lw_one_event, lw_same_view, lw_view_agreement
from semcast.specs.verdict import Verdict

LIGHTWEIGHT: dict[str, Callable[[History], Verdict]] = {
    "lw_view_agreement": lw_view_agreement,
    "lw_same_view": lw_same_view,
    "lw_atomicity": lw_atomicity,
    "lw_order": lw_order,
    "lw_open": lw_open,
    "lw_sending_view": lw_sending_view,
    "lw_private": lw_private,
    "lw_gone": lw_gone,
    "lw_one_event": lw_one_event,
    "lw_settled": lw_settled,
    "lw_heard": lw_heard,
    "lw_purged": lw_purged,
    "one_fate": one_fate,
}
