"""Where a sweep keeps its outcomes: one Parquet file a wave, and one table when it ends.

`DIR/NAME/waves/*.parquet` holds what was recorded, as it came, with the time it took. Files appear whole or
not at all, so a sweep can be stopped at any moment. `DIR/NAME/table.parquet` is made from them: a row a
cell in the order of the spec, a column a parameter and a column a figure, the same however cells were spread.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from semcast.pipeline.sweep.spec import PlannedCell, Spec
from semcast.pipeline.sweep.worker import OK, OUTCOMES, CellOutcome, as_batch
from semcast.sim.experiments import Value


class StoreError(Exception):
    """Outcomes that cannot be read; says which file."""


class Store:
    """The outcomes of one spec."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._waves = folder / "waves"

    def append(self, outcomes: Sequence[CellOutcome]) -> None:
        """Add a wave."""
        _write(self._waves / f"{uuid4().hex}.parquet", pa.Table.from_batches([as_batch(outcomes)], OUTCOMES))

    def outcomes(self) -> dict[str, CellOutcome]:
        """What was recorded, by cell; of several the good one, else the latest."""
        files = sorted(self._waves.glob("*.parquet"), key=_age)
        return best_of(outcome for file in files for outcome in _read(file))

    def clear(self) -> None:
        """Forget everything."""
        for file in [*self._waves.glob("*.parquet"), self.folder / "table.parquet"]:
            file.unlink(missing_ok=True)

    def write_table(self, spec: Spec, outcomes: Mapping[str, CellOutcome]) -> str:
        """Write the table of the cells that have an outcome."""
        path = self.folder / "table.parquet"
        _write(path, table_of(spec, outcomes))
        return str(path)


def best_of(outcomes: Iterable[CellOutcome]) -> dict[str, CellOutcome]:
    """Of outcomes in the order they were recorded in, one for each cell: the good one, else the latest."""
    found: dict[str, CellOutcome] = {}
    for outcome in outcomes:
        earlier = found.get(outcome.id)
        if earlier is None or earlier.status != OK:
            found[outcome.id] = outcome
    return found


def table_of(spec: Spec, outcomes: Mapping[str, CellOutcome]) -> pa.Table:
    """The table of the cells that have an outcome."""
    return _table(rows_of(spec, outcomes))


def rows_of(spec: Spec, outcomes: Mapping[str, CellOutcome]) -> list[dict[str, Value | None]]:
    """A flat record for each cell that has an outcome, in the order of the spec."""
    return [_row(spec, cell, outcomes[cell.id]) for cell in spec.cells if cell.id in outcomes]


def _row(spec: Spec, cell: PlannedCell, outcome: CellOutcome) -> dict[str, Value | None]:
    result = msgspec.json.decode(outcome.result, type=dict[str, Value | None])
    head: dict[str, Value | None] = {
        "experiment": spec.experiment,
        "cell": cell.id,
        "status": outcome.status,
        "error": outcome.error,
    }
    return {**head, **cell.parameters, **result}


def _table(rows: Sequence[Mapping[str, Value | None]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: Sequence[Value | None]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return pa.array(values, pa.int64())
    if kinds <= {int, float} and kinds:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _age(file: Path) -> tuple[int, str]:
    return file.stat().st_mtime_ns, file.name


def _read(file: Path) -> Iterable[CellOutcome]:
    try:
        table = pq.read_table(file, schema=OUTCOMES)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{file}: {error}") from error
    return [CellOutcome(**row) for row in table.to_pylist()]


def _write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(table, part)
    part.replace(path)
