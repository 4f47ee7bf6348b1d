"""Flow control."""

from semcast.history.events import History
from semcast.history.schema import Kind
from semcast.specs.verdict import Findings, Verdict, unknown


def buffer_bound(history: History) -> Verdict:
    """No process ever buffers more messages than the limit; counts the high-water marks above it."""
    name = "buffer_bound"
    limit = history.info.only.buffer_limit
    if limit is None:
        return unknown(name, "the run had no limit")
    marks = [event for event in history.events if event.kind is Kind.BUFFER]
    if not marks:
        return unknown(name, "no occupancy was recorded")
    findings = Findings(name)
    for event in marks:
        if event.count > limit:
            findings.count(1)
            findings.example(f"{event.process} held {event.count} messages, the limit is {limit}", event)
    return findings.verdict()
