"""Sweep specs: TOML files that say which experiment runs with which cells, and what the paper found.

```toml
experiment = "f2"
[fixed]                     # in every cell; a `trace` is a file in the folder of recordings (SEMCAST_TRACES)
d = 1
[grid]                      # all combinations; also several grids, as [[grid]]
r = [0.25, 0.5]
[[cells]]                   # single cells
r = 1.0
[random]                    # draws, reproducible from their seed
draws = 10
seed = 7
between = { delay_ms = [10.0, 40.0] }
choice = { r = [0.25, 0.5] }
[[paper.numbers]]           # a number of the paper, and where it is in our table
what = "accepted without purging"
column = "protocol_throughput"
where = { stack = "reliable", delay_ms = 20 }
value = 50
[report]                    # what is shown of it: see figures.py
```
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from random import Random

import msgspec

from semcast.pipeline.sweep.figures import Report, problems
from semcast.sim.experiments import EXPERIMENTS, CellError, Value

Grid = dict[str, list[Value]]


class SpecError(Exception):
    """A spec that cannot be used; says where and why."""


class Draws(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Random cells: values between two bounds, or out of a list. Two whole bounds give whole numbers."""

    draws: int
    seed: int = 1
    between: dict[str, tuple[Value, Value]] = {}
    choice: Grid = {}

    def cells(self) -> Iterator[dict[str, Value]]:
        """The draws, the same every time; each with a seed of its own."""
        rng = Random(self.seed)
        for _ in range(self.draws):
            cell: dict[str, Value] = {"seed": rng.randrange(1 << 31)}
            for name, (low, high) in sorted(self.between.items()):
                cell[name] = _drawn(rng, name, low, high)
            for name, values in sorted(self.choice.items()):
                cell[name] = rng.choice(values)
            yield cell


class PaperNumber(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that the paper states, and the rows and column of our table that answer it."""

    what: str
    value: float
    column: str
    where: dict[str, Value] = {}
    mark: bool = True
    """Whether plots show it: not where it answers for another value of the parameter on their axis."""


class Paper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the paper reports."""

    source: str
    says: str = ""
    numbers: tuple[PaperNumber, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    experiment: str
    title: str = ""
    time: str = ""
    fixed: dict[str, Value] = {}
    grid: Grid | list[Grid] = {}
    cells: list[dict[str, Value]] = []
    random: Draws | None = None
    paper: Paper | None = None
    report: Report | None = None


class PlannedCell(msgspec.Struct, frozen=True):
    """One simulation to run. Its id is a hash of the experiment and its parameters."""

    id: str
    parameters: dict[str, Value]


class Spec(msgspec.Struct, frozen=True):
    """A sweep: cells in the order of the file."""

    name: str
    experiment: str
    title: str
    cells: tuple[PlannedCell, ...]
    paper: Paper | None
    report: Report | None = None
    time: str = ""
    """How long it takes, in words."""

    @property
    def needs_recordings(self) -> bool:
        """Whether a cell replays a trace that is named in the folder of recordings."""
        traces = (cell.parameters.get("trace") for cell in self.cells)
        return any(trace is not None and not Path(str(trace)).is_absolute() for trace in traces)


def read_spec(path: Path) -> Spec:
    """Read a spec and expand its cells; SpecError if it is not one, or has a cell that cannot run."""
    try:
        file = msgspec.toml.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: {error}") from error
    if file.experiment not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise SpecError(f"{path}: no experiment named {file.experiment!r}; there are {known}")
    try:
        cells = planned(file.experiment, _expanded(file))
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error
    problem = next(problems(file.report), None) if file.report else None
    if problem is not None:
        raise SpecError(f"{path}: report: {problem}")
    return Spec(path.stem, file.experiment, file.title, cells, file.paper, file.report, file.time)


def planned(experiment: str, cells: list[dict[str, Value]]) -> tuple[PlannedCell, ...]:
    """Give every cell its id; SpecError for a cell that cannot run or is there twice."""
    seen: dict[str, int] = {}
    found = []
    for number, cell in enumerate(cells, 1):
        try:
            EXPERIMENTS[experiment].check(cell)
        except CellError as error:
            raise SpecError(f"cell {number}: {error}") from error
        identity = cell_id(experiment, cell)
        if identity in seen:
            raise SpecError(f"cell {number} is cell {seen[identity]} again: {dict(cell)}")
        seen[identity] = number
        found.append(PlannedCell(identity, cell))
    return tuple(found)


def cell_id(experiment: str, cell: Mapping[str, Value]) -> str:
    """The same for the same experiment and parameters, in any order, and written as 1 or as 1.0."""
    plain = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in cell.items()
    }
    text = f"{experiment}\n".encode() + msgspec.json.encode(plain, order="sorted")
    return hashlib.sha256(text).hexdigest()[:24]


def _expanded(file: _File) -> list[dict[str, Value]]:
    grids = file.grid if isinstance(file.grid, list) else [file.grid]
    cells: list[dict[str, Value]] = []
    for grid in grids:
        for name, values in grid.items():
            if not values:
                raise SpecError(f"grid: {name} has no values")
        if grid:
            cells += [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    cells += file.cells
    if file.random is not None:
        cells += _drawn_cells(file.random)
    if not cells:
        raise SpecError("no cells: give a grid, cells or random draws")
    return [{**file.fixed, **cell} for cell in cells]


def _drawn_cells(draws: Draws) -> list[dict[str, Value]]:
    if draws.draws < 1:
        raise SpecError(f"random: draws = {draws.draws}, at least 1 is needed")
    for name, values in draws.choice.items():
        if not values:
            raise SpecError(f"random: {name} has no values")
    return list(draws.cells())


def _drawn(rng: Random, name: str, low: Value, high: Value) -> Value:
    if isinstance(low, str) or isinstance(high, str) or low > high:
        raise SpecError(f"random: {name} is not between {low!r} and {high!r}")
    if isinstance(low, int) and isinstance(high, int):
        return rng.randint(low, high)
    return rng.uniform(low, high)
