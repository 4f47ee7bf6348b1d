"""What the sweeps left: the table of each spec, held against the cells that the spec has now."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from semcast.pipeline.sweep.figures import Row
from semcast.pipeline.sweep.spec import Spec


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of one spec that have figures, and what is not there."""

    spec: Spec
    rows: tuple[Row, ...]
    failures: tuple[str, ...] = ()
    """Why cells that ran gave no figures."""

    missing: int = 0
    """Cells that have not run."""

    problem: str = ""
    """Why the table cannot be read."""

    @property
    def complete(self) -> bool:
        """Whether every cell has figures."""
        return not (self.failures or self.missing)

    @property
    def state(self) -> str:
        """In words."""
        parts = [f"{len(self.rows)} of {len(self.spec.cells)} cells"]
        if self.problem:
            parts.append(self.problem)
        elif self.missing:
            parts.append(f"{self.missing} not run")
        if self.failures:
            parts.append(f"{len(self.failures)} without figures")
        return ", ".join(parts)


def read_results(spec: Spec, folder: Path) -> Results:
    """The table that a sweep wrote in `folder`, without the cells that the spec no longer has."""
    path = folder / spec.name / "table.parquet"
    if not path.exists():
        return Results(spec, (), missing=len(spec.cells))
    try:
        found = {row["cell"]: row for row in pq.read_table(path).to_pylist()}
    except (OSError, pa.ArrowException, KeyError) as error:
        reason = f"{path.name} cannot be read ({type(error).__name__})"
        return Results(spec, (), missing=len(spec.cells), problem=reason)
    rows = [found[cell.id] for cell in spec.cells if cell.id in found]
    return Results(
        spec,
        tuple(row for row in rows if row["status"] == "ok"),
        tuple(f"{row['status']}: {row['error']}" for row in rows if row["status"] != "ok"),
        len(spec.cells) - len(rows),
    )
