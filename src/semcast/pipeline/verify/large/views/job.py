"""Virtual synchrony for runs of any size: makes the tables, calls the transforms."""

from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify.folds import SENT
from semcast.pipeline.verify.large.findings import Findings, Given, Wanted
from semcast.pipeline.verify.large.views import membership
from semcast.pipeline.verify.large.views.books import books_of
from semcast.pipeline.verify.scene import numbered_violations
from semcast.pipeline.verify.violations import known_violations, told_by
from semcast.specs import Status, Verdict
from semcast.specs.vsync.membership import vs_view_agreement

_LACKING = "has neither this nor a replacement in the view"


def judge_views(given: Given, wanted: Wanted) -> Findings:
    """What virtual synchrony says about views and deliveries, but for causal and total order."""
    return _Views(given, wanted).judge()


class _Views:
    def __init__(self, given: Given, wanted: Wanted) -> None:
        self._given = given
        self._scene = given.scene
        self._wanted = wanted
        self._books = books_of(given)

    def judge(self) -> Findings:
        found = Findings()
        self._few_rows(found)
        rows = [*self._elsewhere(), *self._lacking()]
        if rows:
            found.violations.append(self._scene.named(reduce(DataFrame.union, rows)))
        return found

    def _asks(self, *names: str) -> list[str]:
        """The runs of which any of these is wanted."""
        return [run for run, wanted in self._wanted.items() if not set(names).isdisjoint(wanted)]

    def _few_rows(self, found: Findings) -> None:
        """What the checkers in memory say, given the rows that matter."""
        histories = self._scene.stays.histories
        doubtful = self._given.circular | self._given.untold
        judges: dict[str, Callable[[list[str]], Mapping[str, Verdict]]] = {
            "vs_view_agreement": lambda runs: {run: vs_view_agreement(histories[run]) for run in runs},
            "vs_primary_partition": lambda runs: membership.primary_partition(
                self._scene, runs, self._books, doubtful
            ),
            "vs_state_transfer": lambda runs: membership.state_transfer(self._scene, runs),
        }
        rows = []
        for name, judge in judges.items():
            runs = self._asks(name)
            for run, verdict in (judge(runs) if runs else {}).items():
                if verdict.status is Status.UNKNOWN:
                    found.unknown[run, name] = verdict.detail
                elif verdict.count:
                    rows.append(told_by(run, verdict))
        found.violations.append(known_violations(self._scene.spark, rows))

    def _elsewhere(self) -> list[DataFrame]:
        name = "vs_sending_view_delivery"
        if not self._asks(name):
            return []
        scene = self._scene
        both = scene.sent.union(scene.delivered)
        wrong = both.where(f"outside or (what = {SENT} and view != inside)")
        what = fn.when(fn.col("outside"), fn.lit("outside every view, or after a crash")).otherwise(
            fn.lit("multicast with the number of another view")
        )
        return [
            numbered_violations(wrong, name, what),
            numbered_violations(
                self._books.with_who(self._books.strays), name, "not delivered where it was sent"
            ),
        ]

    def _lacking(self) -> list[DataFrame]:
        found = []
        synchrony, books = "vs_view_synchrony", self._books
        if self._asks(synchrony):
            same = self._books.with_who(books.lacking.where("same"))
            found.append(numbered_violations(same, synchrony, "not delivered there"))
        flags = {
            "vs_semantic_validity": "own",
            "vs_semantic_view_synchrony": "same",
            "vs_semantic_uniform_agreement": "promised",
        }
        asked = {name: flag for name, flag in flags.items() if self._asks(name)}
        if asked:
            left = books.unpaid(books.lacking)
            for name, flag in asked.items():
                found.append(numbered_violations(self._books.with_who(left.where(flag)), name, _LACKING))
        name = "vs_semantic_fifo_view_completeness"
        if self._asks(name):
            left = books.unpaid(books.lacking_before(books.latest))
            found.append(numbered_violations(self._books.with_who(left), name, _LACKING))
        return found
