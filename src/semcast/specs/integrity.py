"""Integrity: nothing twice, nothing out of thin air."""

from semcast.core.ids import MessageId
from semcast.history.events import History
from semcast.history.schema import Kind
from semcast.specs.evidence import Evidence, evidence_of
from semcast.specs.verdict import Findings, Verdict


def integrity(history: History) -> Verdict:
    """Seed P, 4.2.1: every process delivers m at most once and only if some process multicast m.

    Counts repeated deliveries, and messages delivered at a process that nobody multicast. That the
    multicast came first is not asked: the clocks of two processes cannot be compared. What a sender may have
    multicast after its recording was cut off does not count.
    """
    evidence = evidence_of(history)
    findings = Findings("integrity")
    _find_repeats(evidence, findings)
    _find_inventions(evidence, findings)
    return findings.verdict(evidence.untold)


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
