"""What was measured with real processes (`python -m benchmarks`), held against its targets.

Nothing is measured here: rows are read from the file that the benchmarks write.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from semcast.pipeline.report.markup import Content, Markup, joined, listed, table, tag
from semcast.pipeline.report.numbers import shown
from semcast.pipeline.sweep.spec import SpecError

_TARGET = re.compile(r"(>=|<=) ([\d,.]+)(.*)")
_COLUMNS = 6


class LiveSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`semcast/experiments/live/*.toml`."""

    title: str
    section: str
    """Of the results: the name of the benchmark."""
    rows: tuple[str, ...]
    """How the rows begin that belong to it."""
    source: str
    differs: tuple[str, ...] = ()
    """Why targets are missed. Said only where one is."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of the results."""

    what: str
    value: float
    floor: float
    unit: str
    ratio: float
    target: str

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None if there is none.

        >>> Measured("", 60, 100, "MiB", 0.6, "<= 1").met, Measured("", 9, 2, "us", 4.5, "<= 5 us more").met
        (True, False)
        """
        found = _TARGET.match(self.target)
        if found is None:
            return None
        sign, number, about = found.groups()
        wanted = float(number.replace(",", ""))
        value = self.value if about.strip() else self.ratio
        value = value - self.floor if about.endswith(" more") else value
        return value >= wanted if sign == ">=" else value <= wanted


@dataclass(frozen=True, slots=True)
class Live:
    """One spec, and the rows that were measured of it."""

    name: str
    spec: LiveSpec
    rows: tuple[Measured, ...] = ()
    measured: str = ""
    """When, and how, in the words of the results."""

    @property
    def missed(self) -> list[Measured]:
        """Rows whose target was not met."""
        return [row for row in self.rows if row.met is False]

    @property
    def tally(self) -> tuple[int, int]:
        """How many targets were met, out of how many."""
        met = [row.met for row in self.rows if row.met is not None]
        return sum(met), len(met)


def read_live(path: Path, results: Path) -> Live:
    """A spec with its rows; none if there are no results. SpecError if it is no spec."""
    try:
        spec = msgspec.toml.decode(path.read_bytes(), type=LiveSpec)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: {error}") from error
    text = results.read_text(encoding="utf8") if results.is_file() else ""
    section = re.search(rf"^## {re.escape(spec.section)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None:
        return Live(path.stem, spec)
    words, *_ = section[1].strip().split("\n\n")
    rows = [row for row in _rows(section[1]) if row.what.startswith(spec.rows)]
    return Live(path.stem, spec, tuple(rows), words)


def _rows(section: str) -> Iterator[Measured]:
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == _COLUMNS and re.fullmatch(r"[\d,.]+", cells[1]):
            value, floor, ratio = (float(cells[at].replace(",", "")) for at in (1, 2, 4))
            yield Measured(cells[0], value, floor, cells[3], ratio, cells[5])


def live_section(each: Live) -> Markup:
    """Everything about it."""
    parts: list[Content] = [tag("p", tag("b", each.spec.source), ". Real processes, no simulation.")]
    if not each.rows:
        return joined([*parts, tag("div", tag("code", command(each)), class_="absent")])
    parts.append(tag("p", each.measured))
    head = ["measured / beside", "value", "beside", "unit", "ratio", "target", ""]
    parts.append(table(head, map(_row, each.rows), stacked=True))
    if each.missed and each.spec.differs:
        parts += [tag("p", tag("b", "What differs, and why")), listed(each.spec.differs)]
    return joined(parts)


def command(each: Live) -> str:
    """What measures it."""
    return f"python -m benchmarks {each.spec.section} --write"


def off(rows: Sequence[Measured]) -> list[str]:
    """Targets that were missed, in words."""
    return [
        f"{row.what.split(' / ')[0]}: {shown(row.value)} {row.unit} beside {shown(row.floor)},"
        f" wanted {row.target}"
        for row in rows
    ]


def _row(row: Measured) -> list[Content]:
    verdicts = {True: ("met", "good"), False: ("missed", "bad")}
    word, kind = verdicts.get(row.met, ("", "soft")) if row.met is not None else ("", "soft")
    return [
        row.what,
        shown(row.value),
        shown(row.floor),
        row.unit,
        f"{row.ratio:.2f}",
        row.target,
        tag("span", word, class_=kind),
    ]
