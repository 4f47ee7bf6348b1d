"""Causal order inside views, for runs of any size (Pereira 2002, 4.6)."""

from collections.abc import Iterator

from semcast.pipeline.verify.large.causal.field import SparkField
from semcast.pipeline.verify.large.causal.ground import TooMuchError
from semcast.pipeline.verify.large.causal.pasts import Pasts
from semcast.pipeline.verify.large.findings import Findings, Given, Wanted
from semcast.pipeline.verify.violations import known_violations

__all__ = ["CAUSAL", "judge_causal"]

CAUSAL = ("causal_delivery",)

_LATE = "is delivered after a message that it causally precedes"
_CIRCLE = "is multicast after it was delivered, or heard of: precedence runs in a circle"


def judge_causal(given: Given, wanted: Wanted) -> Findings:
    """Nobody delivers m after m' if m precedes m'; and nothing precedes itself."""
    try:
        pasts = Pasts(SparkField(given.scene, wanted))
    except TooMuchError as error:
        return Findings(unknown={(run, name): str(error) for run in wanted for name in wanted[run]})
    rows = list(_rows(given, pasts))
    broken = {row[0] for row in rows}
    unknown = {
        (run, name): reason
        for run, reason in pasts.unknown.items()
        for name in wanted[run]
        if run not in broken
    }
    return Findings([known_violations(given.scene.spark, rows)], unknown)


def _rows(given: Given, pasts: Pasts) -> Iterator[tuple[object, ...]]:
    """Faults in the columns of violations."""
    people = given.scene.everybody
    for number, fault in pasts.faults():
        path = pasts.course.paths[number]
        _, process = people[path.who]
        _, sender = people[pasts.field.ground.seats[path.scope][fault.seat]]
        names = (process.name, process.incarnation), (sender.name, sender.incarnation)
        reason = _CIRCLE if fault.circle else _LATE
        yield path.run, CAUSAL[0], *names, fault.first, fault.last, 1, fault.index, reason
