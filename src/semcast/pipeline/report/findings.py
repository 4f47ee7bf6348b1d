"""The paper's numbers and claims, held against our results."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from semcast.pipeline.report.numbers import shown
from semcast.pipeline.sweep.comparison import compared
from semcast.pipeline.sweep.figures import Check, Row, filled, mean_of
from semcast.pipeline.sweep.spec import Spec

CLOSE = 0.05
"""A number agrees if it is no further from the paper's than this share of it."""

APART = 0.01
"""Numbers rise if each is larger than the one before by more than this share."""

NOTHING = 0.005
"""Where the paper says 0, what counts as 0."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the paper and ours."""

    what: str
    paper: float
    ours: float | None

    @property
    def difference(self) -> float | None:
        """As a share of the paper's; None if there is none."""
        return None if self.ours is None or not self.paper else self.ours / self.paper - 1

    @property
    def agrees(self) -> bool | None:
        """None without a result."""
        if self.ours is None:
            return None
        return abs(self.ours - self.paper) <= (CLOSE * abs(self.paper) or NOTHING)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, and what our results say to it."""

    says: str
    values: str
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Findings:
    """All that is known of one experiment."""

    numbers: tuple[Number, ...]
    claims: tuple[Claim, ...]
    differs: tuple[str, ...]

    @property
    def off(self) -> list[Number]:
        """Numbers that are not the paper's."""
        return [number for number in self.numbers if number.agrees is False]

    @property
    def broken(self) -> list[Claim]:
        """Claims that our results contradict."""
        return [claim for claim in self.claims if claim.holds is False]

    @property
    def tally(self) -> tuple[int, int]:
        """How many numbers and claims agree, out of how many that we have results for."""
        verdicts = [number.agrees for number in self.numbers] + [claim.holds for claim in self.claims]
        judged = [verdict for verdict in verdicts if verdict is not None]
        return sum(judged), len(judged)


def find(spec: Spec, rows: Sequence[Row]) -> Findings:
    """Hold the results of a spec against its paper."""
    numbers = tuple(Number(each.what, each.paper, each.ours) for each in compared(spec, rows))
    if spec.report is None:
        return Findings(numbers, (), ())
    ours = {
        name: mean_of(rows, choice.column, choice.where, choice.absent)
        for name, choice in spec.report.ours.items()
    }
    claims = tuple(
        _claim(check, [ours[name] for name in check.rising or check.equal]) for check in spec.report.checks
    )
    return Findings(numbers, claims, tuple(filled(text, ours) for text in spec.report.differs))


def _claim(check: Check, values: Sequence[float | None]) -> Claim:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Claim(check.says, ", ".join("-" if value is None else shown(value) for value in values), None)
    if check.rising:
        signs = [_sign(low, high) for low, high in pairwise(known)]
        text = shown(known[0]) + "".join(
            f" {sign} {shown(value)}" for sign, value in zip(signs, known[1:], strict=True)
        )
        return Claim(check.says, text, set(signs) == {"<"})
    apart = max(known) - min(known)
    text = ", ".join(map(shown, known))
    return Claim(check.says, text, apart <= check.within * max(map(abs, known)))


def _sign(low: float, high: float) -> str:
    if abs(high - low) <= APART * max(abs(low), abs(high)):
        return "≈"
    return "<" if low < high else ">"
