"""Crashes."""

from semcast.history.events import Event, History
from semcast.history.schema import GONE, Kind
from semcast.specs.verdict import Findings, Verdict

ACTS = (Kind.MULTICAST, Kind.DELIVER, Kind.VIEW, Kind.TRANSITIONAL)
"""What only a process that runs does; marks and states may be recorded when the run is over."""


def nothing_after_crash(history: History) -> Verdict:
    """Pereira 2002, 2.1: a process that crashed, or left, does nothing more; it returns as a new incarnation.

    Counts the messages that a process multicasts or delivers, and the views that it installs, after that.
    """
    findings = Findings("nothing_after_crash")
    for process in history.processes:
        end: Event | None = None
        for event in history.of(process):
            if event.kind in GONE:
                end = end or event
            elif end is not None and event.kind in ACTS:
                findings.count(max(1, event.count) if event.sender is not None else 1)
                if not findings.full:
                    findings.example(
                        f"{process} has a {event.kind.value} after its {end.kind.value}", end, event
                    )
    return findings.verdict()
