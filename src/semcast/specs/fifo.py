"""FIFO order."""

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.verdict import Findings, Verdict


def fifo_delivery(history: History) -> Verdict:
    """Pereira 2002, 4.2.1: if a process multicasts m before m', no process delivers m after delivering m'.

    Counts the deliveries that come after one of a later message of the same sender. A sender numbers
    its messages in the order it multicasts them. Delivering the same message again right away is a
    matter of integrity alone.
    """
    findings = Findings("fifo_delivery")
    for process in history.processes:
        highest: dict[MemberId, Event] = {}
        for event in history.of(process):
            if event.kind is Kind.DELIVER:
                assert event.sender is not None
                _compare(highest.get(event.sender), event, findings)
                if event.sender not in highest or event.last > highest[event.sender].last:
                    highest[event.sender] = event
    return findings.verdict()


def _compare(later: Event | None, event: Event, findings: Findings) -> None:
    """Find what `event` delivers below the highest message delivered so far."""
    if later is None or event.seq >= later.last:
        return
    assert event.sender is not None
    behind = range(event.seq, min(event.last, later.last - 1) + 1)
    findings.count(len(behind))
    for seq in behind:
        if findings.full:
            break
        early, late = MessageId(event.sender, seq), MessageId(event.sender, later.last)
        findings.example(
            f"{event.process} delivered {early} after {late}", later.only(later.last), event.only(seq)
        )
