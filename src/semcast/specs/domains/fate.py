"""One fate (seed I, 4.1): who is put out of one group of a domain is out of all."""

from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import GONE
from semcast.specs.domains.kinds import KINDS, LEFT, OUT, VIEW
from semcast.specs.domains.story import NOTHING_RECORDED
from semcast.specs.verdict import Findings, Verdict, unknown

_ENDS = (OUT, *GONE)
_QUIET = (LEFT, *_ENDS)


def domain_one_fate(history: History) -> Verdict:
    """I, 4.1: who has learned that it is put out of one group does nothing in any other of the domain.

    It neither sends, is given anything, nor installs a view, as the same incarnation; nor does who crashed or
    left the domain. Counts rows.
    """
    name = "domain_one_fate"
    if not any(event.kind is VIEW for event in history.events):
        return unknown(name, NOTHING_RECORDED)
    findings = Findings(name)
    for process in history.processes:
        end: Event | None = None
        for event in history.of(process):
            if end is not None and event.kind in KINDS and event.kind not in _QUIET:
                _found(findings, process, end, event)
            elif event.kind in _ENDS and end is None:
                end = event
    return findings.verdict()


def _found(findings: Findings, process: MemberId, end: Event, event: Event) -> None:
    findings.count(1)
    findings.example(f"{process} was out, and acts on: {event.kind.value}", end, event)
