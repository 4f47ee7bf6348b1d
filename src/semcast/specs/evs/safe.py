"""Safe delivery (Amir 1995, specifications 7.1 and 7.2).

Deviation: applications take configurations and messages from their stack at their own pace. A process
that crashes before its application came to the configuration in question is excused in both.
"""

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.evs.configurations import Configuration, Configurations, Stay, judge
from semcast.specs.verdict import Findings, Verdict


def evs_7_1_safe(history: History) -> Verdict:
    """7.1: a safe message delivered in c is delivered in com(c) by each member of c that does not crash.

    Counts pairs of a member and a message, once the member has moved on or the run is over.
    """
    return judge("evs_7_1_safe", history, _find_unsafe, semantic=True)


def evs_7_2_safe_configuration_installed(history: History) -> Verdict:
    """7.2: if a safe message is delivered in a regular configuration, all members have come to that one.

    Counts pairs of a member and a message, once the member has moved past it or the run is over.
    """
    return judge("evs_7_2_safe_configuration_installed", history, _find_missed)


def _find_unsafe(known: Configurations, findings: Findings) -> None:
    for reg in known.regs:
        stays = [stay for life in known.living_in(reg) for stay in life.com[reg]]
        for process, owed in _promised(known, stays).items():
            if known.owes(process, reg):
                lacking = known.lacking(known.life(process).com.get(reg, []), owed)
                _report(
                    known,
                    findings,
                    process,
                    lacking,
                    owed,
                    f"has neither {{}} nor a replacement in com of {reg}",
                )


def _find_missed(known: Configurations, findings: Findings) -> None:
    for reg in known.regs:
        stays = known.of.get(reg, [])
        there = {stay.process for stay in stays}
        for process, owed in _promised(known, stays).items():
            if process not in there and known.owes(process, reg):
                _report(
                    known, findings, process, sorted(owed), owed, f"never came to {reg}, where {{}} was safe"
                )


def _promised(known: Configurations, stays: list[Stay]) -> dict[MemberId, dict[int, Stay]]:
    """The safe messages that the members of these configurations count on each other for."""
    safe: dict[tuple[Configuration, frozenset[MemberId]], dict[int, Stay]] = {}
    for stay in reversed(stays):
        found = safe.setdefault((stay.configuration, stay.members), {})
        found.update(dict.fromkeys(known.safe & stay.delivered.keys(), stay))
    promised: dict[MemberId, dict[int, Stay]] = {}
    for (_, members), delivered in safe.items():
        for member in members:
            promised.setdefault(member, {}).update(delivered)
    return {member: promised[member] for member in sorted(promised) if promised[member]}


def _report(
    known: Configurations,
    findings: Findings,
    process: MemberId,
    lacking: list[int],
    owed: dict[int, Stay],
    what: str,
) -> None:
    def case(message: MessageId) -> tuple[str, list[Event]]:
        deliverer = owed[known.parts.around(message)].process
        return f"{process} {what.format(message)}", known.find(Kind.DELIVER, deliverer, message)

    known.report(findings, lacking, case)
