"""What must hold of calls (Birman et al. 1991, 7.2)."""

from collections.abc import Callable

from semcast.history.events import History
from semcast.specs.calls.complete import call_complete
from semcast.specs.calls.replies import call_one, call_replies, causal_reply
from semcast.specs.verdict import Verdict

CALLS: dict[str, Callable[[History], Verdict]] = {
    "call_replies": call_replies,
    "call_complete": call_complete,
    "call_one": call_one,
    "causal_reply": causal_reply,
}
