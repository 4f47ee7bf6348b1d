"""The paper's numbers beside ours."""

from collections.abc import Sequence

import msgspec

from semcast.pipeline.sweep.figures import Row, mean_of
from semcast.pipeline.sweep.spec import Spec


class Comparison(msgspec.Struct, frozen=True):
    """A number of the paper and ours: the mean over the rows it speaks of."""

    what: str
    paper: float
    ours: float | None


def compared(spec: Spec, rows: Sequence[Row]) -> list[Comparison]:
    """All numbers that the spec has of the paper."""
    if spec.paper is None:
        return []
    return [
        Comparison(number.what, number.value, mean_of(rows, number.column, number.where))
        for number in spec.paper.numbers
    ]
