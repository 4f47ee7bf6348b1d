"""Model, buffer and protocol: the columns `model_X`, `simulated_X`, `protocol_X` of every experiment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from semcast.pipeline.report import charts
from semcast.pipeline.report.charts import Axes, Point, Series
from semcast.pipeline.report.drawing import BESIDE, figure, panel
from semcast.pipeline.report.markup import Content, Markup, joined, table, tag
from semcast.pipeline.report.numbers import percent, signed
from semcast.pipeline.report.results import Results
from semcast.pipeline.sweep.figures import Alike, Row, chosen

MODEL, BUFFER, PROTOCOL = "model", "buffer", "protocol"
_PREFIXES = {MODEL: "model_", BUFFER: "simulated_", PROTOCOL: "protocol_"}
_PAIRS = ((MODEL, BUFFER), (BUFFER, PROTOCOL), (MODEL, PROTOCOL))


@dataclass(frozen=True, slots=True)
class Gap:
    """How far two ways to get the same figure are apart, in shares of its largest value."""

    cells: int
    mean: float
    """Signed: above 0 if the second gives more."""
    largest: float


@dataclass(frozen=True, slots=True)
class Layered:
    """A quantity of an experiment that at least two layers give."""

    experiment: str
    quantity: str
    rows: tuple[Row, ...]

    def values(self, row: Row, first: str, second: str) -> tuple[float, float] | None:
        """What both give for a cell."""
        a, b = (row.get(_PREFIXES[layer] + self.quantity) for layer in (first, second))
        return (a, b) if isinstance(a, int | float) and isinstance(b, int | float) else None

    def pairs(self, first: str, second: str) -> list[tuple[float, float]]:
        """What both give, cell by cell."""
        return [pair for row in self.rows if (pair := self.values(row, first, second)) is not None]

    def gap(self, first: str, second: str) -> Gap | None:
        """None if one of them gives nothing."""
        pairs = self.pairs(first, second)
        if not pairs:
            return None
        scale = max(abs(value) for pair in pairs for value in pair) or 1.0
        gaps = [(b - a) / scale for a, b in pairs]
        return Gap(len(gaps), sum(gaps) / len(gaps), max(map(abs, gaps)))


def layered(results: Sequence[Results]) -> Iterator[Layered]:
    """All such quantities."""
    for each in results:
        alike = each.spec.report.alike if each.spec.report else Alike()
        rows = tuple(chosen(each.rows, alike.where, alike.absent))
        columns = list(dict.fromkeys(name for row in rows for name in row))
        given = [
            name.removeprefix(prefix)
            for prefix in _PREFIXES.values()
            for name in columns
            if name.startswith(prefix)
        ]
        for quantity in dict.fromkeys(given):
            if given.count(quantity) > 1:
                yield Layered(each.spec.name, quantity, rows)


def layers_section(results: Sequence[Results]) -> Markup:
    """The table and the plot of all experiments."""
    found = list(layered(results))
    if not found:
        return tag("p", "No results that two of them give.", class_="absent")
    head = ["experiment", "quantity", "cells", *(f"{second} - {first}" for first, second in _PAIRS)]
    rows = [
        [
            tag("a", each.experiment, href=f"#{each.experiment}"),
            _named(each.quantity),
            str(len(each.rows)),
            *(_shown(each.gap(first, second)) for first, second in _PAIRS),
        ]
        for each in found
    ]
    quantities = dict.fromkeys(each.quantity for each in found)
    panels = [
        _scatter(quantity, [each for each in found if each.quantity == quantity]) for quantity in quantities
    ]
    drawn = [chart for chart, _ in filter(None, panels)]
    series = [each for _, lines in filter(None, panels) for each in lines]
    plot = figure(
        "Each cell: the model's figure and that of the others", drawn, charts.legend(series, marks=False)
    )
    return joined([table(head, rows, words=2), plot])


def _scatter(quantity: str, found: Sequence[Layered]) -> tuple[Markup, list[Series]] | None:
    series = []
    for colour, layer in enumerate((BUFFER, PROTOCOL)):
        pairs = sorted(pair for each in found for pair in each.pairs(MODEL, layer))
        points = tuple(Point(a, b, b, b) for a, b in pairs)
        if points:
            series.append(Series(layer, points, colour, joined=False))
    if not series:
        return None
    xs = [point.x for each in series for point in each.points]
    top = charts.top_of([point.y for each in series for point in each.points] + xs)
    low, high = min(xs), max(xs)
    equal = Series(
        "as the model", (Point(low, low, low, low), Point(high, high, high, high)), 7, "dashed", dots=False
    )
    axes = Axes(f"model, {_named(quantity)}", "buffer or protocol", top, across="round")
    experiments = ", ".join(dict.fromkeys(each.experiment for each in found))
    chart = charts.line_chart([equal, *series], [], axes, *BESIDE)
    return panel(f"{_named(quantity)} ({experiments})", chart), [equal, *series]


def _named(quantity: str) -> str:
    stem = quantity.removesuffix("_ms")
    return stem.replace("_", " ") + (" (ms)" if stem != quantity else "")


def _shown(gap: Gap | None) -> Content:
    if gap is None:
        return "-"
    return f"{signed(gap.mean)} (≤ {percent(gap.largest)})"
