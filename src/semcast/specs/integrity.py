"""Integrity: nothing twice, nothing out of thin air, nothing changed on the way."""

import msgspec

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.contents import known_contents, not_compared, stretches
from semcast.specs.evidence import Evidence, evidence_of
from semcast.specs.verdict import Findings, Verdict


def integrity(history: History) -> Verdict:
    """Pereira 2002, 4.2.1: every process delivers m at most once and only if some process multicast m.

    Counts repeated deliveries, and messages delivered at a process that nobody multicast. That the
    multicast came first is not asked: the clocks of two processes cannot be compared. What a sender may have
    multicast after its recording was cut off does not count. What is delivered is m and nothing else: counts
    the stretches of messages with other contents than were multicast, where these can be compared.
    """
    evidence = evidence_of(history)
    findings = Findings("integrity")
    _find_repeats(evidence, findings)
    _find_inventions(evidence, findings)
    unknown = _find_changes(history, findings)
    return msgspec.structs.replace(findings.verdict(evidence.untold), note=not_compared(unknown))


def _find_repeats(evidence: Evidence, findings: Findings) -> None:
    for event, (first, last) in evidence.repeats:
        assert event.sender is not None
        findings.count(last - first + 1)
        for seq in range(first, last + 1):
            if findings.full:
                break
            message = MessageId(event.sender, seq)
            findings.example(f"{event.process} delivered {message} again", event.only(seq))


def _find_inventions(evidence: Evidence, findings: Findings) -> None:
    for process in evidence.processes:
        for sender in evidence.senders:
            invented = evidence.delivered(process, sender).minus(evidence.multicast(sender))
            if sender in evidence.cut_off:
                invented = invented.upto(evidence.multicast(sender).highest())
            findings.count(invented.total())
            for seq in invented.numbers():
                if findings.full:
                    break
                findings.example(
                    f"{process} delivered {MessageId(sender, seq)}, which nobody multicast",
                    *evidence.find(Kind.DELIVER, process, sender, seq),
                )


def _find_changes(history: History, findings: Findings) -> int:
    """Look at contents; returns of how many deliveries they could not be compared."""
    sent: dict[MemberId, list[Event]] = {}
    delivered: dict[tuple[MemberId, MemberId], list[Event]] = {}
    for event in history.events:
        if event.kind is Kind.MULTICAST:
            sent.setdefault(event.process, []).append(event)
        elif event.kind is Kind.DELIVER:
            assert event.sender is not None
            delivered.setdefault((event.process, event.sender), []).append(event)
    known = {sender: known_contents(rows) for sender, rows in sent.items()}
    unknown = 0
    for (process, sender), rows in delivered.items():
        unknown += sum(event.count for event in rows)
        for stretch in stretches(known.get(sender, []), known_contents(rows)):
            unknown -= stretch.messages
            if stretch.differs:
                findings.count(1)
                reason = f"{process} delivered {stretch} with other contents than were multicast"
                findings.example(reason, stretch.sent[0], stretch.delivered[0])
    return unknown
