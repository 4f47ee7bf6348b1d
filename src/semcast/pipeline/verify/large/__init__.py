"""What is judged in memory of small runs, for runs of any size.

Statuses are those of the checkers in memory wherever something can be told; the cases that are counted may be
fewer, for one is enough.
"""

from semcast.pipeline.verify.large.causal import CAUSAL, judge_causal
from semcast.pipeline.verify.large.findings import Findings, Form, Given, Wanted
from semcast.pipeline.verify.large.positions import TOTAL_ORDER, judge_positions
from semcast.pipeline.verify.large.ring import RING, judge_ring
from semcast.pipeline.verify.large.views import VIEWS, judge_views

__all__ = ["FORMS_OF_LARGE_RUNS", "Findings", "Given", "judge_large"]

FORMS_OF_LARGE_RUNS: dict[str, Form] = {
    **dict.fromkeys(CAUSAL, judge_causal),
    **dict.fromkeys(VIEWS, judge_views),
    **dict.fromkeys(TOTAL_ORDER, judge_positions),
    **dict.fromkeys(RING, judge_ring),
}
"""By property; those that are judged together have the same."""


def judge_large(given: Given, wanted: Wanted) -> Findings:
    """All that has a form."""
    found = Findings()
    for form in dict.fromkeys(FORMS_OF_LARGE_RUNS.values()):
        names = {
            run: [name for name in properties if FORMS_OF_LARGE_RUNS.get(name) is form]
            for run, properties in wanted.items()
        }
        some = {run: properties for run, properties in names.items() if properties}
        if some:
            found.add(form(given, some))
    return found
