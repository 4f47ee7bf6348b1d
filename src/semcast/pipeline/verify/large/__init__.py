"""The forms for runs that are too large for memory.

Statuses are those of the checkers in memory wherever something can be told; the cases that are counted may be
fewer, for one is enough.
"""

from semcast.pipeline.verify.large.causal import judge_causal
from semcast.pipeline.verify.large.findings import Findings, Form, Given, Wanted
from semcast.pipeline.verify.large.positions import judge_positions
from semcast.pipeline.verify.large.ring import judge_ring
from semcast.pipeline.verify.large.views import judge_views
from semcast.pipeline.verify.properties import Form as Kind
from semcast.pipeline.verify.properties import named

__all__ = ["Findings", "Given", "judge_large"]

_NO_FORM = "the run is too large for memory, and this is judged nowhere else"
_FORMS: dict[Kind, Form] = {
    Kind.CAUSAL: judge_causal,
    Kind.VIEWS: judge_views,
    Kind.POSITIONS: judge_positions,
    Kind.RING: judge_ring,
}


def judge_large(given: Given, wanted: Wanted) -> Findings:
    """All that these forms judge."""
    found = Findings()
    for kind, form in _FORMS.items():
        known = named(kind)
        names = {run: [name for name in some if name in known] for run, some in wanted.items()}
        asked = {run: some for run, some in names.items() if some}
        if asked:
            found.add(form(given, asked))
    for run, some in wanted.items():
        nowhere = [name for name in some if name in named(Kind.NONE)]
        found.unknown.update({(run, name): _NO_FORM for name in nowhere})
    return found
