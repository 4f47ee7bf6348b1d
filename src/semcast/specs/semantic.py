"""The semantic properties of S-SRM and S-RM (Pereira 2002, 4.2.1, 4.3.1 and 4.5), for finite runs.

In a run that is over, nobody multicasts anything any more, so the clause "there is a time after which
no process multicasts m'' that makes m obsolete" is true of every m. What is left of each property is
who owes having what, where having m means having delivered m or something that replaces it, directly
or through others, whether or not those were delivered. All count pairs of process and message.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.evidence import Evidence, evidence_of
from semcast.specs.runs import Runs, union
from semcast.specs.verdict import Findings, Verdict, unknown, untold


class _Debt(NamedTuple):
    """`process` must have these messages of `sender`; `proof` shows why for one of them."""

    process: MemberId
    sender: MemberId
    owed: Runs
    proof: Callable[[int], list[Event]]


def semantic_sender_reliability(history: History) -> Verdict:
    """S-SRM: if a correct process multicasts m, then all correct processes deliver m or a replacement."""
    return _judge("semantic_sender_reliability", history, _owed_by_all)


def semantic_validity(history: History) -> Verdict:
    """S-RM: if a correct process multicasts m, then it delivers m or a replacement."""
    return _judge("semantic_validity", history, _owed_by_sender)


def semantic_agreement(history: History) -> Verdict:
    """S-RM: if a correct process delivers m, then all correct processes deliver m or a replacement."""
    return _judge("semantic_agreement", history, lambda evidence: _agreed(evidence, evidence.correct))


def semantic_uniform_agreement(history: History) -> Verdict:
    """4.5: if any process delivers m, then all correct processes deliver m or a replacement."""
    return _judge(
        "semantic_uniform_agreement", history, lambda evidence: _agreed(evidence, evidence.processes)
    )


def semantic_fifo_completeness(history: History) -> Verdict:
    """S-RM: no correct process delivers m' without m, multicast before it, or a replacement of m."""
    return _judge("semantic_fifo_completeness", history, _owed_behind_later)


def _judge(name: str, history: History, debts: Callable[[Evidence], Iterable[_Debt]]) -> Verdict:
    if not history.info.quiesced:
        return unknown(name, "the run was not over")
    evidence = evidence_of(history)
    if evidence.relation.endless:
        return unknown(name, "the obsolescence relation is not an order")
    if evidence.untold is not None:
        return untold(name, evidence.untold)
    findings = Findings(name)
    for debt in debts(evidence):
        _find_unpaid(evidence, debt, findings)
    return findings.verdict()


def _find_unpaid(evidence: Evidence, debt: _Debt, findings: Findings) -> None:
    lacking = debt.owed.minus(evidence.has(debt.process, debt.sender))
    findings.count(lacking.total())
    for seq in lacking.numbers():
        if findings.full:
            break
        message = MessageId(debt.sender, seq)
        findings.example(f"{debt.process} has neither {message} nor a replacement", *debt.proof(seq))


def _owed_by_all(evidence: Evidence) -> Iterator[_Debt]:
    for sender in evidence.correct:
        for process in evidence.correct:
            yield _Debt(process, sender, evidence.multicast(sender), _multicast_of(evidence, sender))


def _owed_by_sender(evidence: Evidence) -> Iterator[_Debt]:
    for sender in evidence.correct:
        yield _Debt(sender, sender, evidence.multicast(sender), _multicast_of(evidence, sender))


def _agreed(evidence: Evidence, processes: tuple[MemberId, ...]) -> Iterator[_Debt]:
    """What one of `processes` delivered, all correct ones owe."""
    for sender in evidence.senders:
        somewhere = union(evidence.delivered(process, sender) for process in processes)
        for process in evidence.correct:
            yield _Debt(process, sender, somewhere, _delivery_of(evidence, processes, sender))


def _owed_behind_later(evidence: Evidence) -> Iterator[_Debt]:
    for sender in evidence.senders:
        for process in evidence.correct:
            latest = evidence.delivered(process, sender).highest()
            before = evidence.multicast(sender).upto(latest - 1)
            yield _Debt(process, sender, before, _later_delivery(evidence, process, sender, latest))


def _multicast_of(evidence: Evidence, sender: MemberId) -> Callable[[int], list[Event]]:
    return lambda seq: evidence.find(Kind.MULTICAST, sender, sender, seq)


def _delivery_of(
    evidence: Evidence, processes: tuple[MemberId, ...], sender: MemberId
) -> Callable[[int], list[Event]]:
    def proof(seq: int) -> list[Event]:
        holder = next(process for process in processes if seq in evidence.delivered(process, sender))
        return evidence.find(Kind.DELIVER, holder, sender, seq)

    return proof


def _later_delivery(
    evidence: Evidence, process: MemberId, sender: MemberId, latest: int
) -> Callable[[int], list[Event]]:
    def proof(seq: int) -> list[Event]:
        return [
            *evidence.find(Kind.MULTICAST, sender, sender, seq),
            *evidence.find(Kind.DELIVER, process, sender, latest),
        ]

    return proof
