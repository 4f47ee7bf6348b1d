"""Who crashed, or left, does nothing any more."""

from semcast.history.events import History
from semcast.history.schema import GONE, Kind
from semcast.specs.verdict import Findings, Verdict

ACTS = (Kind.VIEW, Kind.TRANSITIONAL, Kind.MULTICAST, Kind.DELIVER)
"""What only a process can do that is there."""


def silent_after_crash(history: History) -> Verdict:
    """No process sends, delivers or comes to a view after it crashed or left; a restart is another process.

    Counts messages, and views.
    """
    findings = Findings("silent_after_crash")
    for process in history.gone:
        gone = False
        for event in history.of(process):
            if gone and event.kind in ACTS:
                findings.count(max(event.count, 1))
                if not findings.full:
                    reason = f"{process} has a {event.kind.value} after its end"
                    findings.example(reason, event if not event.seq else event.only(event.seq))
            gone = gone or event.kind in GONE
    return findings.verdict()
