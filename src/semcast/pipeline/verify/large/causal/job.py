"""The form of causal order: finds out what precedes what, then who delivers late and who lacks something."""

from collections.abc import Iterator

from pyspark.sql import functions as fn

from semcast.pipeline.verify.large.causal.certificate import complete_anyway, ordered_by_position
from semcast.pipeline.verify.large.causal.field import SparkField
from semcast.pipeline.verify.large.causal.ground import TooMuchError
from semcast.pipeline.verify.large.causal.owed import owed_in
from semcast.pipeline.verify.large.causal.pasts import Pasts
from semcast.pipeline.verify.large.findings import Findings, Given, Wanted
from semcast.pipeline.verify.large.views.books import books_of
from semcast.pipeline.verify.scene import numbered_violations
from semcast.pipeline.verify.violations import known_violations

DELIVERY, COMPLETENESS = CAUSAL = ("causal_delivery", "semantic_causal_completeness")

_LATE = "is delivered after a message that it causally precedes"
_CIRCLE = "is multicast after it was delivered, or heard of: precedence runs in a circle"
_LACKING = "has neither this nor a replacement in the view, though it precedes what was delivered"


def judge_causal(given: Given, wanted: Wanted) -> Findings:
    """Nobody delivers m after m' if m precedes m'; who delivers m' has m, or a replacement."""
    rest = dict.fromkeys(_uncertain(given, wanted))
    if not rest:
        return Findings()
    try:
        pasts = Pasts(SparkField(given.scene, rest))
        found = _late(given, pasts)
        if any(COMPLETENESS in wanted[run] for run in rest):
            found.add(_incomplete(given, pasts))
    except TooMuchError as error:
        return Findings(unknown={(run, name): str(error) for run in rest for name in wanted[run]})
    return found


def _uncertain(given: Given, wanted: Wanted) -> Iterator[str]:
    """The runs whose causal order does not follow from something simpler."""
    certain = ordered_by_position(given, wanted)
    complete = [run for run in certain if COMPLETENESS in wanted[run]]
    if complete:
        certain -= set(complete) - complete_anyway(given, complete)
    return (run for run in wanted if run not in certain)


def _late(given: Given, pasts: Pasts) -> Findings:
    rows = list(_rows(given, pasts))
    broken = {row[0] for row in rows}
    unknown = {(run, DELIVERY): reason for run, reason in pasts.unknown.items() if run not in broken}
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
        yield path.run, DELIVERY, *names, fault.first, fault.last, 1, fault.index, reason


def _incomplete(given: Given, pasts: Pasts) -> Findings:
    owed = owed_in(given.scene, pasts)
    books = books_of(given)
    beyond = owed.debts.select(fn.col("stay").alias("debtor"), "author", (fn.col("upto") + 1).alias("upto"))
    left = books.with_who(books.unpaid(books.lacking_before(beyond)))
    violations = given.scene.named(numbered_violations(left, COMPLETENESS, _LACKING))
    return Findings([violations], {(run, COMPLETENESS): why for run, why in owed.unknown.items()})
