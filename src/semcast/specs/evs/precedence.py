"""Order of events, and configurations as consistent cuts (Amir 1995, specifications 1.1, 1.2, 2.3, 2.4).

2.3 and 2.4 ask that a configuration is a consistent cut: nothing that comes after its delivery to one
process is before its delivery to another. A broken cut breaks both, seen from its two sides, so they are
told apart by what they add: 2.3 takes each configuration by itself; 2.4 takes all of them at once, where
what precedes one delivery of a configuration precedes them all, and so on through the next one. Where
"precedes" is no order to begin with, which is 1.1, neither says anything.
"""

from itertools import pairwise

from semcast.history.events import History
from semcast.history.schema import Kind
from semcast.specs.evs.basic import report_row
from semcast.specs.evs.configurations import Configurations, Stay, configurations_of, judge
from semcast.specs.evs.moments import Precedence, configurations_together, precedence_of
from semcast.specs.verdict import Findings, Verdict, unknown

CIRCULAR = "precedence runs in a circle"


def evs_1_1_precedence(history: History) -> Verdict:
    """1.1: "precedes" is an order.

    Counts the messages, at each process, whose delivery is in a circle or after one.
    """
    return judge("evs_1_1_precedence", history, _find_circles)


def evs_1_2_local_order(history: History) -> Verdict:
    """1.2: of two events of one process one precedes the other.

    Counts the rows that are not numbered after the row before, and in rows about messages those.
    """
    return judge("evs_1_2_local_order", history, _find_unordered)


def evs_2_3_cut_after(history: History) -> Verdict:
    """2.3: what one delivery of a configuration precedes, every delivery of it precedes.

    Counts the deliveries of a configuration that come after one of it at another process.
    """
    name = "evs_2_3_cut_after"
    if precedence_of(configurations_of(history)).circular:
        return unknown(name, CIRCULAR)
    return judge(name, history, _find_late)


def evs_2_4_cut_before(history: History) -> Verdict:
    """2.4: what precedes one delivery of a configuration precedes every delivery of it.

    Counts the configurations that are in a circle or after one, if all deliveries of each are one event.
    """
    name = "evs_2_4_cut_before"
    if precedence_of(configurations_of(history)).circular:
        return unknown(name, CIRCULAR)
    return judge(name, history, _find_crossed)


def _find_circles(known: Configurations, findings: Findings) -> None:
    moments = precedence_of(known).moments
    times = known.parts.weigh(moments.stuck(Kind.DELIVER))
    moments.report(known, findings, times, "deliveries that precede the sending")


def _find_unordered(known: Configurations, findings: Findings) -> None:
    for rows in known.rows.values():
        for before, event in pairwise(rows):
            if event.index <= before.index:
                report_row(findings, event, f"{event.process}[{event.index}] stands after [{before.index}]")


def _find_late(known: Configurations, findings: Findings) -> None:
    precedence = precedence_of(known)
    numbers = {process: number for number, process in enumerate(known.lives)}
    for stays in known.of.values():
        for late in stays:
            past = precedence.before_view[late.slot]
            early = next((s for s in stays if _before(precedence, past, s, numbers[s.process], late)), None)
            if early is not None:
                findings.count(1)
                findings.example(
                    f"{late.process} came to {late.configuration} after something that came after it at "
                    f"{early.process}",
                    early.event,
                    late.event,
                )


def _before(precedence: Precedence, past: tuple[int, ...], early: Stay, number: int, late: Stay) -> bool:
    """Whether something that was sent after `early` began precedes the beginning of `late` elsewhere."""
    return early.process != late.process and past[number] > precedence.sends_before_view[early.slot]


def _find_crossed(known: Configurations, findings: Findings) -> None:
    if precedence_of(known).together.walk.stuck:
        moments = configurations_together(known)
        times = len(moments.stuck(Kind.VIEW))
        moments.report(known, findings, times, "configurations that precede each other")
