"""The `[report]` table of a spec: which claims of the paper our results are held to, and what is drawn.

```toml
[report]
differs = ["nothing that we run gives 75: {buffer:.1f}"]    # numbers of ours are named, never typed
[report.ours]                                               # the mean over the rows that are meant
buffer = { column = "simulated_throughput", where = { r = 0.25, delay_ms = 20 } }
protocol = { column = "protocol_throughput", where = { r = 0.25, delay_ms = 20 } }
[[report.checks]]                                           # what the paper says, as something to look up
says = "the protocol does what the buffer does"
equal = ["buffer", "protocol"]
[[report.plots]]
title = "Throughput"
x = "delay_ms"
x_label = "receiver delay (ms)"
y_label = "messages a second"
lines = [{ column = "protocol_throughput", by = ["r"], label = "protocol, r = {r}" }]
```
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from semcast.sim.experiments import Value

Row = Mapping[str, Value | None]

_NAMED = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column, of the rows in which parameters have these values, or (`absent`) none."""

    column: str
    where: dict[str, Value] = {}
    absent: tuple[str, ...] = ()


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim: these of our numbers rise, or are equal."""

    says: str
    rising: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()
    within: float = 0.05
    """How far apart equal ones may be, as a share of the largest."""


class FigureLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column as a line, or one line for each combination of the parameters `by`."""

    column: str
    label: str = ""
    by: tuple[str, ...] = ()
    where: dict[str, Value] = {}
    absent: tuple[str, ...] = ()
    stroke: Literal["solid", "dashed", "dotted"] = "solid"


class Panel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of several plots side by side, of some of the rows."""

    title: str
    where: dict[str, Value] = {}
    absent: tuple[str, ...] = ()
    x_label: str = ""


class Plot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lines over a parameter; or bars, where `x` is the text below each group, as in "N = {n}"."""

    title: str
    x: str
    lines: tuple[FigureLine, ...]
    x_label: str = ""
    y_label: str = ""
    kind: Literal["lines", "bars"] = "lines"
    panels: tuple[Panel, ...] = ()
    where: dict[str, Value] = {}
    absent: tuple[str, ...] = ()
    percent: bool = False
    note: str = ""


class Alike(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows in which model, buffer and protocol describe the same thing."""

    where: dict[str, Value] = {}
    absent: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    differs: tuple[str, ...] = ()
    ours: dict[str, Choice] = {}
    checks: tuple[Check, ...] = ()
    plots: tuple[Plot, ...] = ()
    alike: Alike = Alike()


def chosen(rows: Sequence[Row], where: Mapping[str, Value], absent: Sequence[str] = ()) -> list[Row]:
    """The rows in which parameters have these values, or none."""
    return [
        row
        for row in rows
        if all(row.get(name) == wanted for name, wanted in where.items())
        and all(row.get(name) is None for name in absent)
    ]


def mean_of(
    rows: Sequence[Row], column: str, where: Mapping[str, Value], absent: Sequence[str] = ()
) -> float | None:
    """The mean of a column over the rows that are meant; None if there is nothing.

    >>> mean_of([{"n": 1, "y": 2}, {"n": 1, "y": 4}, {"n": 2, "y": 9}], "y", {"n": 1})
    3.0
    """
    found = [
        value for row in chosen(rows, where, absent) if isinstance(value := row.get(column), int | float)
    ]
    return sum(found) / len(found) if found else None


def filled(text: str, values: Row) -> str:
    """A text with its names replaced by values; a dash where there is none.

    >>> filled("N = {n}: {share:.1%}, {lost}", {"n": 10, "share": 0.123})
    'N = 10: 12.3%, -'
    """

    def value(match: re.Match[str]) -> str:
        found = values.get(match[1])
        if found is None:
            return "-"
        return found if isinstance(found, str) else format(found, match[2] or "g")

    return _NAMED.sub(value, text)


def problems(report: Report) -> Iterator[str]:
    """What is wrong with it that can be seen without results."""
    for text in report.differs:
        yield from _unknown("differs", [match[1] for match in _NAMED.finditer(text)], report.ours)
        yield from _unusable(text)
    for check in report.checks:
        names = check.rising or check.equal
        if bool(check.rising) == bool(check.equal) or len(names) < 2:
            yield f"check {check.says!r}: give two or more names, rising or equal"
        yield from _unknown(f"check {check.says!r}", names, report.ours)
    for plot in report.plots:
        if not plot.lines:
            yield f"plot {plot.title!r}: no lines"


def _unknown(where: str, names: Sequence[str], known: Mapping[str, Choice]) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{where}: {name} is not in report.ours"


def _unusable(text: str) -> Iterator[str]:
    for match in _NAMED.finditer(text):
        try:
            format(0.5, match[2] or "")
        except ValueError:
            yield f"differs: {match[0]}: not a format for a number"
