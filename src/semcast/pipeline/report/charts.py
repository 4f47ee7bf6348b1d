"""Plots as SVG. Colours are classes, so that the page can have a light and a dark set of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from semcast.pipeline.report.markup import Markup, joined, tag
from semcast.pipeline.report.scales import Scale, log_ticks, percent, rounded_up, shown, swept, ticks, widened

COLOURS = 8
LEFT, RIGHT, TOP, BOTTOM = 66, 22, 16, 44
PAPER = "paper"

_DASHES = {"solid": "none", "dashed": "7 4", "dotted": "2 3"}


@dataclass(frozen=True, slots=True)
class Point:
    """A value; where it is a mean, `low` and `high` are what it is the mean of."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """A line."""

    label: str
    points: tuple[Point, ...]
    colour: int
    stroke: str = "solid"
    dots: bool = True
    joined: bool = True


@dataclass(frozen=True, slots=True)
class Mark:
    """A value that somebody else reports."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Axes:
    """What is written along them, and how far the vertical one goes."""

    x_label: str
    y_label: str
    y_high: float
    across: Literal["swept", "round", "log"] = "swept"
    """Which values are written below: those that there are, round ones, or powers."""
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """Groups of bars: for each category a value of each series."""

    categories: tuple[str, ...]
    series: tuple[Series, ...]
    """The points' x is the number of the category."""
    marks: tuple[tuple[int, Mark], ...]
    """With the number of their series."""


def top_of(values: Iterable[float]) -> float:
    """How far an axis from 0 goes that has room for these."""
    return rounded_up(widened(list(values), zero=True)[1])


def line_chart(
    series: Sequence[Series], marks: Sequence[Mark], axes: Axes, width: int, height: int
) -> Markup:
    """Lines over a numeric axis."""
    xs = [point.x for each in series for point in each.points] + [mark.x for mark in marks]
    low, high = widened(xs, zero=False)
    log = axes.across == "log"
    margin = 0.0 if log else 0.03 * (high - low)
    x = Scale(low - margin, high + margin, LEFT, width - RIGHT, log)
    y = Scale(0.0, axes.y_high, height - BOTTOM, TOP)
    parts = [_frame(x, y, axes, width, height)]
    parts += [_below(x(value), shown(value), height) for value in _across(axes, xs, x)]
    parts += [_line(each, x, y, axes) for each in series]
    parts += [_cross(x(mark.x), y(mark.y), _at(mark.text, mark.x, mark.y, axes)) for mark in marks]
    return _svg(width, height, parts)


def bar_chart(bars: Bars, axes: Axes, width: int, height: int) -> Markup:
    """Bars over categories."""
    y = Scale(0.0, axes.y_high, height - BOTTOM, TOP)
    slot = (width - LEFT - RIGHT) / max(1, len(bars.categories))
    thick = min(46.0, 0.8 * slot / max(1, len(bars.series)))

    def left(category: float, number: int) -> float:
        return LEFT + slot * (category + 0.5) + thick * (number - len(bars.series) / 2)

    parts = [_frame(Scale(0, 1, LEFT, width - RIGHT), y, axes, width, height)]
    for number, each in enumerate(bars.series):
        for point in each.points:
            at, top = left(point.x, number), y(point.y)
            text = f"{bars.categories[int(point.x)]}, {each.label}: {_value(point.y, axes)}"
            parts.append(
                tag(
                    "rect",
                    tag("title", text),
                    x=at + 1,
                    y=top,
                    width=thick - 2,
                    height=max(0.0, y.start - top),
                    class_=f"bar c{each.colour}",
                )
            )
            parts.append(_text(_value(point.y, axes), at + thick / 2, top - 4, "value"))
    for number, mark in bars.marks:
        parts.append(
            _cross(left(mark.x, number) + thick / 2, y(mark.y), f"{mark.text}: {_value(mark.y, axes)}")
        )
    parts += [
        _below(LEFT + slot * (number + 0.5), text, height) for number, text in enumerate(bars.categories)
    ]
    return _svg(width, height, parts)


def legend(series: Iterable[Series], *, marks: bool, mark_label: str = PAPER, bars: bool = False) -> Markup:
    """What the colours mean; a label that several lines have is listed once."""
    unique = {each.label: each for each in series}
    entries = [tag("li", _sample(each, bars=bars), label) for label, each in unique.items()]
    if marks:
        entries.append(tag("li", _svg(26, 14, [_cross(13, 7, mark_label)]), mark_label))
    return tag("ul", *entries, class_="legend")


def _frame(x: Scale, y: Scale, axes: Axes, width: int, height: int) -> Markup:
    parts = []
    for value in ticks(0.0, y.high):
        kind = "axis" if value == 0 else "grid"
        parts.append(tag("line", x1=x.start, x2=x.end, y1=y(value), y2=y(value), class_=kind))
        parts.append(_text(_tick(value, axes), LEFT - 6, y(value) + 4, "left"))
    middle = (TOP + height - BOTTOM) / 2
    upright = f"rotate(-90 13 {middle:g})"
    parts.append(tag("text", axes.y_label, x=13, y=middle, class_="label", transform=upright))
    parts.append(_text(axes.x_label, (LEFT + width - RIGHT) / 2, height - 6, "label"))
    return joined(parts)


def _across(axes: Axes, values: Sequence[float], x: Scale) -> list[float]:
    low, high = widened(values, zero=False)
    if axes.across == "log":
        return log_ticks(low, high)
    return swept(values, x) if axes.across == "swept" else ticks(low, high, 6)


def _line(series: Series, x: Scale, y: Scale, axes: Axes) -> Markup:
    places = [(x(point.x), y(point.y)) for point in series.points]
    parts = []
    if series.joined:
        parts.append(_polyline(series, places))
    for point, (across, down) in zip(series.points, places, strict=True):
        if point.high > point.low:
            parts.append(
                tag(
                    "line",
                    x1=across,
                    x2=across,
                    y1=y(point.low),
                    y2=y(point.high),
                    class_=f"s{series.colour} range",
                )
            )
        if series.dots:
            parts.append(_dot(series.colour, across, down, _at(series.label, point.x, point.y, axes)))
    return joined(parts)


def _polyline(series: Series, places: Sequence[tuple[float, float]]) -> Markup:
    text = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
    return tag(
        "polyline",
        tag("title", series.label),
        points=text,
        class_=f"s{series.colour} line",
        stroke_dasharray=_DASHES[series.stroke],
    )


def _dot(colour: int, x: float, y: float, text: str) -> Markup:
    """Its shape tells series apart where colours do not."""
    shape, kind = colour % 4, f"c{colour} dot"
    title = tag("title", text)
    if shape == 0:
        return tag("circle", title, cx=x, cy=y, r=3.4, class_=kind)
    if shape == 1:
        return tag("rect", title, x=x - 3, y=y - 3, width=6, height=6, class_=kind)
    corners = [(0, -4.4), (4.4, 0), (0, 4.4), (-4.4, 0)] if shape == 2 else [(0, -4.2), (4, 3.2), (-4, 3.2)]
    places = " ".join(f"{x + right:.1f},{y + down:.1f}" for right, down in corners)
    return tag("polygon", title, points=places, class_=kind)


def _cross(x: float, y: float, text: str) -> Markup:
    path = f"M{x - 5:.1f},{y - 5:.1f}L{x + 5:.1f},{y + 5:.1f}M{x - 5:.1f},{y + 5:.1f}L{x + 5:.1f},{y - 5:.1f}"
    return tag(
        "g", tag("title", text), tag("path", d=path, class_="halo"), tag("path", d=path, class_="mark")
    )


def _sample(series: Series, *, bars: bool) -> Markup:
    if bars:
        return _svg(14, 14, [tag("rect", x=1, y=1, width=12, height=12, class_=f"bar c{series.colour}")])
    parts = [_polyline(series, [(0, 7), (26, 7)])] if series.joined else []
    parts += [_dot(series.colour, 13, 7, series.label)] if series.dots else []
    return _svg(26, 14, parts)


def _below(x: float, text: str, height: int) -> Markup:
    return _text(text, x, height - BOTTOM + 17, "below")


def _text(text: str, x: float, y: float, kind: str) -> Markup:
    return tag("text", text, x=x, y=y, class_=kind)


def _svg(width: int, height: int, parts: Sequence[Markup]) -> Markup:
    return tag("svg", *parts, viewBox=f"0 0 {width} {height}", width=width, height=height, role="img")


def _at(label: str, x: float, y: float, axes: Axes) -> str:
    return f"{label}: {shown(x)} → {_value(y, axes)}"


def _value(value: float, axes: Axes) -> str:
    return percent(value) if axes.percent else shown(value)


def _tick(value: float, axes: Axes) -> str:
    return f"{shown(100 * value)} %" if axes.percent else shown(value)
