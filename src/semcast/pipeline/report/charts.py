"""Plots of the page, drawn by matplotlib."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from matplotlib import axes as plots
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from semcast.pipeline.report.markup import Markup, tag
from semcast.pipeline.report.numbers import percent, shown
from semcast.pipeline.report.svg import colour, empty, markup

LEFT, RIGHT, TOP, BOTTOM = 76, 22, 16, 47
PAPER = "paper"

_MARKERS = ("o", "s", "D", "^")
"""Shapes tell series apart where colours do not."""

_DASHES = {"solid": "-", "dashed": (0, (4, 2)), "dotted": (0, (1, 1.5))}
_STEPS = [1, 2, 2.5, 5, 10]
_MOST_SWEPT = 12
_CHARACTER = 7
"""How many pixels a digit above a bar takes."""
_APART = 36
"""How many pixels two values that are written below a plot are apart, at least."""

_Titles = dict[str, list[str]]


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
    """How far an axis from 0 goes that has room for these, and ends with a tick.

    >>> top_of([3, 1942.8]), top_of([])
    (2000.0, 1.0)
    """
    return float(_round().tick_values(0.0, max(values, default=0.0) or 1.0)[-1])


def line_chart(
    series: Sequence[Series], marks: Sequence[Mark], axes: Axes, width: int, height: int
) -> Markup:
    """Lines over a numeric axis."""
    figure, plot = _framed(axes, width, height)
    _scale_across(plot, axes, [point.x for each in series for point in each.points], marks, width)
    titles: _Titles = {}
    for number, each in enumerate(series):
        titles[f"series{number}"] = [
            each.label,
            *(_at(each.label, point.x, point.y, axes) for point in each.points if each.dots),
        ]
        titles |= {
            f"series{number}-range{place}": [
                f"{each.label}: {_value(point.low, axes)} to {_value(point.high, axes)}"
            ]
            for place, point in enumerate(each.points)
        }
        _draw(plot, each, f"series{number}")
    for number, mark in enumerate(marks):
        titles[f"mark{number}"] = [_at(mark.text, mark.x, mark.y, axes)]
        _cross(plot, mark.x, mark.y, f"mark{number}")
    return markup(figure, _said(axes, [each.label for each in series]), titles)


def bar_chart(bars: Bars, axes: Axes, width: int, height: int) -> Markup:
    """Bars over categories."""
    figure, plot = _framed(axes, width, height)
    slots = max(1, len(bars.categories))
    plot.set_xlim(-0.5, slots - 0.5)
    plot.set_xticks(range(len(bars.categories)), bars.categories)
    thick = min(46.0 * slots / (width - LEFT - RIGHT), 0.8 / max(1, len(bars.series)))
    titles: _Titles = {}

    def middle(category: float, number: int) -> float:
        return category + thick * (number + 0.5 - len(bars.series) / 2)

    for number, each in enumerate(bars.series):
        for point in each.points:
            at, gid = middle(point.x, number), f"bar{number}-{point.x:g}"
            plot.bar(at, point.y, 0.95 * thick, color=colour(f"k{each.colour}"), gid=gid)[0].set_clip_on(
                False
            )
            titles[gid] = [f"{bars.categories[int(point.x)]}, {each.label}: {_value(point.y, axes)}"]
            plot.text(
                at,
                point.y + 0.012 * axes.y_high,
                _fitting(point.y, axes, thick * (width - LEFT - RIGHT) / slots),
                ha="center",
                color=colour("text"),
                fontsize=11,
                gid=f"value-{gid}",
            )
    for place, (number, mark) in enumerate(bars.marks):
        titles[f"mark{place}"] = [f"{mark.text}: {_value(mark.y, axes)}"]
        _cross(plot, middle(mark.x, number), mark.y, f"mark{place}")
    return markup(figure, _said(axes, [each.label for each in bars.series]), titles)


def legend(series: Iterable[Series], *, marks: bool, mark_label: str = PAPER, bars: bool = False) -> Markup:
    """What the colours mean; a label that several lines have is listed once."""
    unique = {each.label: each for each in series}
    entries = [tag("li", _sample(each, bars=bars), label) for label, each in unique.items()]
    if marks:
        figure, plot = _bare(26)
        _cross(plot, 0, 0, "mark")
        entries.append(tag("li", markup(figure, mark_label), mark_label))
    return tag("ul", *entries, class_="legend")


def _framed(axes: Axes, width: int, height: int) -> tuple[Figure, plots.Axes]:
    """A plot with a vertical axis from 0, lines across at its ticks, and what is written along both axes."""
    figure = empty(width, height)
    box = (LEFT, BOTTOM, width - LEFT - RIGHT, height - TOP - BOTTOM)
    plot = figure.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
    plot.patch.set_visible(False)
    plot.set_ylim(0.0, axes.y_high)
    plot.yaxis.set_major_locator(_round())
    plot.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value, axes)))
    plot.grid(axis="y", color=colour("rule"), linewidth=1, clip_on=False)
    plot.set_axisbelow(True)
    plot.tick_params(length=0, labelcolor=colour("soft"), labelsize=12, pad=6)
    plot.tick_params(axis="x", pad=11)
    plot.spines[["left", "top", "right"]].set_visible(False)
    plot.spines["bottom"].set_color(colour("soft"))
    plot.set_xlabel(axes.x_label, color=colour("text"), fontsize=12)
    plot.set_ylabel(axes.y_label, color=colour("text"), fontsize=12)
    plot.xaxis.set_label_coords(0.5, (6 - BOTTOM) / box[3])
    plot.xaxis.label.set_verticalalignment("bottom")
    plot.yaxis.set_label_coords((16 - LEFT) / box[2], 0.5)
    return figure, plot


def _round(about: int = 5, *, whole: bool = False) -> MaxNLocator:
    return MaxNLocator(about, steps=_STEPS, integer=whole)


def _scale_across(
    plot: plots.Axes, axes: Axes, values: Sequence[float], marks: Sequence[Mark], width: int
) -> None:
    xs = sorted({*values, *(mark.x for mark in marks)}) or [0.0, 1.0]
    low, high = xs[0], xs[-1] if xs[-1] > xs[0] else xs[0] + 1.0
    if axes.across == "log":
        plot.set_xscale("log")
        plot.set_xlim(low, high)
        steps = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
        plot.xaxis.set_major_locator(LogLocator(10, steps))
        plot.xaxis.set_minor_locator(NullLocator())
    else:
        margin = 0.03 * (high - low)
        plot.set_xlim(low - margin, high + margin)
        closest = min((after - before for before, after in pairwise(xs)), default=high - low)
        room = closest / (high - low) * (width - LEFT - RIGHT) / 1.06
        whole = all(float(x).is_integer() for x in xs)
        few = axes.across == "swept" and len(xs) <= _MOST_SWEPT and room >= _APART
        plot.xaxis.set_major_locator(FixedLocator(xs) if few else _round(6, whole=whole))
    plot.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value)))


def _draw(plot: plots.Axes, series: Series, gid: str) -> None:
    own = colour(f"k{series.colour}")
    for place, point in enumerate(series.points):
        if point.high > point.low:
            gid_range = f"{gid}-range{place}"
            plot.vlines(
                point.x, point.low, point.high, color=own, linewidth=1.4, clip_on=False, gid=gid_range
            )
    plot.plot(
        [point.x for point in series.points],
        [point.y for point in series.points],
        color=own,
        linewidth=2,
        linestyle=_DASHES[series.stroke] if series.joined else "none",
        marker=_MARKERS[series.colour % len(_MARKERS)] if series.dots else None,
        markersize=6.5,
        markeredgecolor=colour("card"),
        markeredgewidth=0.8,
        clip_on=False,
        gid=gid,
    )


def _cross(plot: plots.Axes, x: float, y: float, gid: str) -> None:
    for name, thick in (("card", 5.5), ("paper", 2.6)):
        plot.plot(
            [x],
            [y],
            marker="x",
            markersize=10,
            markeredgecolor=colour(name),
            markeredgewidth=thick,
            clip_on=False,
            gid=gid,
        )


def _bare(width: int) -> tuple[Figure, plots.Axes]:
    """The frame of a sample, from -1 to 1 both ways."""
    figure = empty(width, 14)
    plot = figure.add_axes((0, 0, 1, 1))
    plot.set_axis_off()
    plot.set_xlim(-1, 1)
    plot.set_ylim(-1, 1)
    return figure, plot


def _sample(series: Series, *, bars: bool) -> Markup:
    figure, plot = _bare(14 if bars else 26)
    if bars:
        plot.bar(0, 1.7, 1.7, bottom=-0.85, color=colour(f"k{series.colour}"))[0].set_clip_on(False)
    else:
        ends = replace(series, points=(Point(-1, 0, 0, 0), Point(1, 0, 0, 0)), dots=False)
        _draw(plot, ends, "line")
        _draw(plot, replace(series, points=(Point(0, 0, 0, 0),), joined=False), "dot")
    return markup(figure, series.label)


def _said(axes: Axes, labels: Iterable[str]) -> str:
    return f"{axes.y_label} over {axes.x_label}: {', '.join(dict.fromkeys(labels))}"


def _at(label: str, x: float, y: float, axes: Axes) -> str:
    return f"{label}: {shown(x)} → {_value(y, axes)}"


def _value(value: float, axes: Axes) -> str:
    return percent(value) if axes.percent else shown(value)


def _fitting(value: float, axes: Axes, room: float) -> str:
    """With as many digits as there is room for, in pixels; two at least."""
    if axes.percent:
        return percent(value)
    texts = [shown(value, digits) for digits in (4, 3, 2)]
    return next((text for text in texts if len(text) * _CHARACTER <= room), texts[-1])


def _tick(value: float, axes: Axes) -> str:
    return f"{shown(100 * value)} %" if axes.percent else shown(value)
