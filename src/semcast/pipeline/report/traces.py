"""The recordings of a data folder on the page: profiles, curves, and what the paper says of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from semcast.pipeline.report import charts
from semcast.pipeline.report.charts import Axes, Mark, Point, Series
from semcast.pipeline.report.drawing import ALONE, BESIDE, figure, for_screens, panel
from semcast.pipeline.report.findings import Number
from semcast.pipeline.report.markup import Content, Markup, joined, listed, table, tag
from semcast.pipeline.report.numbers import percent, shown
from semcast.pipeline.report.svg import COLOURS
from semcast.pipeline.sweep.spec import Paper, SpecError

Figures = Mapping[str, float | None]

_COLUMNS = (
    ("messages", "messages", False),
    ("a second", "rate", False),
    ("keys", "keys", False),
    ("take half", "keys_for_half", False),
    ("never obsolete", "never_obsolete_share", True),
    ("D median", "D_median", False),
    ("D p90", "D_p90", False),
    ("R_10", "R10", False),
    ("R_20", "R20", False),
    ("R_30", "R30", False),
    ("N to purge half", "N", False),
)
"""Heading, figure, whether it is a share."""

SAME = 0.001
"""To the third digit."""


class TraceRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure that the paper gives of its recording, and which of ours answers it."""

    what: str
    paper: float | None = None
    says: str = ""
    figure: str = ""
    """Of the profile; else `reference`: of the folder's own, which was made by other programs."""
    reference: str = ""
    percent: bool = False


class TraceSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one folder of recordings is, and what to mind."""

    folder: str
    title: str
    licence: str = ""
    caveats: tuple[str, ...] = ()
    beside_paper: bool = False
    marks_label: str = ""
    marks: tuple[tuple[float, float], ...] = ()


class TraceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`semcast/experiments/profile/*.toml`."""

    title: str
    paper: Paper
    rows: tuple[TraceRow, ...] = ()
    sets: tuple[TraceSet, ...] = ()
    like: str = ""
    """The recording that is most like the paper's."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The profile of one stream."""

    stream: str
    figures: Figures
    curve: tuple[tuple[int, float], ...]
    """N and R_N."""

    reference: Figures
    """What the folder says of it; may be empty."""


@dataclass(frozen=True, slots=True)
class Recordings:
    """A folder of them, with its readme."""

    folder: str
    readme: str
    streams: tuple[Recording, ...]


def read_trace_spec(path: Path) -> TraceSpec:
    """SpecError if it is not one."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=TraceSpec)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: {error}") from error


def traces_section(spec: TraceSpec, found: Sequence[Recordings]) -> Markup:
    """Everything about the recordings."""
    known = {each.folder: each for each in spec.sets}
    places = {folder: place for place, folder in enumerate(known)}
    parts = [tag("p", tag("b", spec.paper.source), f": {spec.paper.says}.")]
    for each in sorted(found, key=lambda each: places.get(each.folder, len(places))):
        parts.append(_set(spec, known.get(each.folder, TraceSet(each.folder, each.folder)), each))
    return joined(parts)


def likeness(spec: TraceSpec, found: Sequence[Recordings]) -> tuple[Number, ...]:
    """The paper's numbers, and those of the recording that is most like the paper's."""
    streams = [each for folder in found for each in folder.streams if each.stream == spec.like]
    return tuple(
        Number(row.what, row.paper, _ours(row, each))
        for each in streams
        for row in spec.rows
        if row.paper is not None
    )


def _ours(row: TraceRow, recording: Recording) -> float | None:
    return recording.figures.get(row.figure) if row.figure else recording.reference.get(row.reference)


def disagreements(recording: Recording) -> list[str]:
    """Figures that are not, to the third digit, those of the folder's reference."""
    return [
        name
        for name, theirs in recording.reference.items()
        if theirs is not None
        and (ours := recording.figures.get(name)) is not None
        and abs(ours - theirs) > SAME * max(abs(theirs), SAME)
    ]


def _set(spec: TraceSpec, described: TraceSet, found: Recordings) -> Markup:
    parts: list[Content] = [tag("h3", described.title, id=f"data-{found.folder}")]
    if described.beside_paper:
        parts.append(_beside(spec, found))
    head = ["recording", *(heading for heading, _, _ in _COLUMNS)]
    rows = [
        [each.stream, *(_shown(each.figures.get(name), share=share) for _, name, share in _COLUMNS)]
        for each in found.streams
    ]
    parts += [table(head, rows), _curves(described, found)]
    parts.append(tag("p", _against_reference(found)))
    if described.caveats:
        parts += [tag("p", tag("b", "To mind:")), listed(described.caveats)]
    if described.licence:
        parts.append(tag("p", f"Licence: {described.licence}.", class_="note"))
    if found.readme:
        parts.append(
            tag("details", tag("summary", f"What {found.folder} says of itself"), tag("pre", found.readme))
        )
    return tag("div", *parts)


def _beside(spec: TraceSpec, found: Recordings) -> Markup:
    rows = []
    for row in spec.rows:
        paper = row.says or _shown(row.paper, share=row.percent)
        ours = [_shown(_ours(row, each), share=row.percent) for each in found.streams]
        rows.append([row.what + (" †" if row.reference else ""), paper, *ours])
    note = tag("p", "† from the folder's reference profile, not computed here.", class_="note")
    return joined([table(["", "paper", *(each.stream for each in found.streams)], rows), note])


def _curves(described: TraceSet, found: Recordings) -> Markup:
    series = [
        Series(each.stream, tuple(Point(n, r, r, r) for n, r in each.curve), at % COLOURS, dots=False)
        for at, each in enumerate(found.streams)
    ]
    marks = [Mark(x, y, described.marks_label) for x, y in described.marks]
    axes = Axes("buffer N (messages)", "share that may be purged, R_N", 1.0, across="log", percent=True)
    wide, narrow = (panel("", charts.line_chart(series, marks, axes, *size)) for size in (ALONE, BESIDE))
    key = charts.legend(series, marks=bool(marks), mark_label=described.marks_label)
    return figure("R_N: messages made obsolete by one of the next N", [for_screens(wide, narrow)], key)


def _against_reference(found: Recordings) -> str:
    if not any(each.reference for each in found.streams):
        return "The folder has no reference profile to compare with."
    wrong = {each.stream: disagreements(each) for each in found.streams if each.reference}
    compared = sum(len(each.reference.keys() & each.figures.keys()) for each in found.streams)
    if not any(wrong.values()):
        return (
            f"All {compared} figures that the folder's reference profile also has agree to the third digit."
        )
    named = "; ".join(f"{stream}: {', '.join(names)}" for stream, names in wrong.items() if names)
    return f"Of {compared} figures that the folder's reference profile also has, these differ: {named}."


def _shown(value: float | None, *, share: bool) -> str:
    if value is None:
        return "-"
    if share:
        return percent(value)
    return shown(value) if abs(value) >= 1 else f"{value:.3f}"
