"""From the plots that a spec declares, and its rows, to figures of the page."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from semcast.pipeline.report import charts
from semcast.pipeline.report.charts import Axes, Bars, Mark, Point, Series
from semcast.pipeline.report.markup import Markup, joined, tag
from semcast.pipeline.report.svg import COLOURS
from semcast.pipeline.sweep.figures import FigureLine, Panel, Plot, Row, chosen, filled
from semcast.pipeline.sweep.spec import PaperNumber

ALONE = (920, 340)
BESIDE = (455, 290)
SMALL = (300, 240)
_LABEL = 40
"""Characters that have room below a small plot."""
_LETTERS = 54
"""Characters of categories that have room below a narrow one."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """One line of one panel, with what the paper says of it."""

    series: Series
    marks: tuple[Mark, ...]


def draw(plot: Plot, rows: Sequence[Row], numbers: Sequence[PaperNumber]) -> Markup:
    """A figure: one panel or several, and one legend for all."""
    rows = chosen(rows, plot.where, plot.absent)
    panels = plot.panels or (Panel(""),)
    colours = _colours(plot, rows)
    categories = _categories(plot, rows) if plot.kind == "bars" else ()
    drawn = [
        list(_lines(plot, chosen(rows, panel.where, panel.absent), numbers, colours, categories))
        for panel in panels
    ]
    every = [each for panel in drawn for each in panel]
    if not every:
        return tag("p", f"{plot.title}: no results to draw.", class_="absent")
    top = charts.top_of(
        [point.high for each in every for point in each.series.points]
        + [mark.y for each in every for mark in each.marks]
    )

    def shown_in(size: tuple[int, int]) -> list[Markup]:
        return [
            _panel(
                panel,
                lines,
                Axes(panel.x_label or plot.x_label, plot.y_label, top, percent=plot.percent),
                categories,
                size,
            )
            for panel, lines in zip(panels, drawn, strict=True)
        ]

    size = _size(plot, panels)
    shown = shown_in(size)
    if size == ALONE and len(categories) * max(map(len, categories), default=0) <= _LETTERS:
        shown = [for_screens(*shown, *shown_in(BESIDE))]
    key = charts.legend(
        (each.series for each in every),
        marks=any(each.marks for each in every),
        bars=plot.kind == "bars",
    )
    note = [tag("p", plot.note, class_="note")] if plot.note else []
    return figure(plot.title, shown, key, *note)


def _size(plot: Plot, panels: Sequence[Panel]) -> tuple[int, int]:
    """Three in a row where that is enough for what is written there."""
    if len(panels) == 1:
        return ALONE
    longest = max(len(panel.x_label or plot.x_label) for panel in panels)
    return SMALL if len(panels) % 3 == 0 and plot.kind != "bars" and longest <= _LABEL else BESIDE


def figure(title: str, panels: Sequence[Markup], key: Markup, *notes: Markup) -> Markup:
    """Panels side by side under a title, with what their colours mean."""
    return tag("figure", tag("figcaption", title), tag("div", *panels, class_="panels"), key, *notes)


def for_screens(wide: Markup, narrow: Markup) -> Markup:
    """A panel drawn twice: what is written in a wide one would be too small to read on a phone."""
    return joined([tag("div", wide, class_="on-wide"), tag("div", narrow, class_="on-narrow")])


def panel(title: str, chart: Markup) -> Markup:
    """One of them."""
    heading = [tag("div", title, class_="panel-title")] if title else []
    return tag("div", *heading, chart, class_="panel")


def _panel(
    declared: Panel, drawn: Sequence[_Drawn], axes: Axes, categories: tuple[str, ...], size: tuple[int, int]
) -> Markup:
    series = tuple(each.series for each in drawn)
    if categories:
        marks = tuple((number, mark) for number, each in enumerate(drawn) for mark in each.marks)
        return panel(declared.title, charts.bar_chart(Bars(categories, series, marks), axes, *size))
    unique = {(mark.x, mark.y): mark for each in drawn for mark in each.marks}
    return panel(declared.title, charts.line_chart(series, list(unique.values()), axes, *size))


def _lines(
    plot: Plot,
    rows: Sequence[Row],
    numbers: Sequence[PaperNumber],
    colours: dict[Hashable, int],
    categories: tuple[str, ...],
) -> Iterator[_Drawn]:
    for line in plot.lines:
        mine = chosen(rows, line.where, line.absent)
        for group in _groups(line, mine):
            members = [row for row in mine if _group(line, row) == group]
            points = _points(plot, line.column, members, categories)
            if points:
                label = filled(line.label or line.column, members[0])
                colour = colours[_key(plot, line, group)] % COLOURS
                series = Series(label, points, colour, line.stroke)
                yield _Drawn(series, tuple(_marks(plot, line.column, members, numbers, categories)))


def _points(plot: Plot, column: str, rows: Sequence[Row], categories: tuple[str, ...]) -> tuple[Point, ...]:
    found: dict[float, list[float]] = {}
    for row in rows:
        x, y = _across(plot, row, categories), row.get(column)
        if x is not None and isinstance(y, int | float):
            found.setdefault(x, []).append(y)
    return tuple(Point(x, sum(ys) / len(ys), min(ys), max(ys)) for x, ys in sorted(found.items()))


def _marks(
    plot: Plot, column: str, rows: Sequence[Row], numbers: Sequence[PaperNumber], categories: tuple[str, ...]
) -> Iterator[Mark]:
    """The paper's numbers that speak of one place on the axis."""
    for number in numbers:
        if not number.mark or number.column != column:
            continue
        places = {_across(plot, row, categories) for row in chosen(rows, number.where)}
        if len(places) == 1 and (x := places.pop()) is not None:
            yield Mark(x, number.value, f"{charts.PAPER}, {number.what}")


def _across(plot: Plot, row: Row, categories: tuple[str, ...]) -> float | None:
    if categories:
        return float(categories.index(filled(plot.x, row)))
    value = row.get(plot.x)
    return value if isinstance(value, int | float) else None


def _categories(plot: Plot, rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filled(plot.x, row) for row in rows))


def _colours(plot: Plot, rows: Sequence[Row]) -> dict[Hashable, int]:
    """A colour for each combination, the same in every panel and for every column."""
    keys = [
        _key(plot, line, group)
        for line in plot.lines
        for group in _groups(line, chosen(rows, line.where, line.absent))
    ]
    return {key: number for number, key in enumerate(dict.fromkeys(keys))}


def _key(plot: Plot, line: FigureLine, group: Hashable) -> Hashable:
    return group if line.by else plot.lines.index(line)


def _groups(line: FigureLine, rows: Sequence[Row]) -> list[Hashable]:
    return list(dict.fromkeys(_group(line, row) for row in rows))


def _group(line: FigureLine, row: Row) -> Hashable:
    return tuple(row.get(name) for name in line.by)
