"""Who members think is there: approximate (Sun 2000, 5.3), and right in the end."""

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import GONE, Kind
from semcast.specs.verdict import Findings, Verdict, unknown


def gossip_members(history: History) -> Verdict:
    """Where members find each other and the run is over, each knows those that are there, and nobody else.

    Views without a representative are of a fixed membership: nothing is promised of them.
    """
    if not history.info.quiesced or history.info.seed is None:
        return unknown("gossip_members", "the run was not over, or nobody knows who was there at its end")
    there = {
        process
        for process in history.processes
        if not any(row.kind in GONE for row in history.of(process)) and _last(history, process) is not None
    }
    findings = Findings("gossip_members")
    for process in sorted(there):
        row = _last(history, process)
        if row is None or row.sender is None:
            continue
        known = set(row.members or ())
        if known != there:
            wrong = ", ".join(map(str, sorted(known ^ there)))
            findings.count(1)
            findings.example(f"{process} is wrong about {wrong}", row)
    return findings.verdict()


def _last(history: History, process: MemberId) -> Event | None:
    """The last view of a process."""
    return next((row for row in reversed(list(history.of(process))) if row.kind is Kind.VIEW), None)
