"""A whole sweep: what is missing runs, everything is kept, nothing is dropped."""

from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

import msgspec
from pyspark.sql import SparkSession

from semcast.pipeline.data import data_folder
from semcast.pipeline.paths import is_remote
from semcast.pipeline.sweep.comparison import Comparison, compared
from semcast.pipeline.sweep.elsewhere import StoreElsewhere
from semcast.pipeline.sweep.spec import Spec
from semcast.pipeline.sweep.store import Store, rows_of
from semcast.pipeline.sweep.waves import run_waves
from semcast.pipeline.sweep.worker import OK, CellOutcome, Function
from semcast.sim.experiments import EXPERIMENTS, Cell, Result, Value


class Failure(msgspec.Struct, frozen=True):
    """A cell that gave no figures."""

    parameters: dict[str, Value]
    status: str
    error: str


class Summary(msgspec.Struct, frozen=True):
    """How a sweep ended."""

    name: str
    experiment: str
    title: str
    cells: int
    before: int
    """Recorded by an earlier run."""
    ran: int
    left: int
    """Not run, because of a limit."""
    ok: int
    seconds: float
    cell_seconds: float
    """Time spent in the cells of this run, all executors together."""
    table: str
    failures: list[Failure]
    paper: list[Comparison]


def run_sweep(
    spark: SparkSession,
    spec: Spec,
    out: Path | str,
    *,
    timeout: float = 60.0,
    limit: int | None = None,
    retry: bool = False,
    progress: Callable[[float, int], None] = lambda _done, _cells: None,
    partitions: int | None = None,
    function: Function | None = None,
) -> Summary:
    """Run the cells of a spec that have no outcome yet, and write the table of all that have.

    Args:
        spark: the session.
        spec: the cells.
        out: the folder, or the URI, in which the sweep has a folder of its own.
        timeout: seconds that a cell may take.
        limit: run no more than so many.
        retry: run those again that failed or took too long.
        progress: told how many of the cells of this run are done, about, and how many there are.
        partitions: the number of tasks, instead of one chosen by how long cells take.
        function: what runs a cell, instead of the spec's experiment.
    """
    began = perf_counter()
    store = store_of(spark, spec, out)
    recorded = {
        cell: outcome for cell, outcome in store.outcomes().items() if outcome.status == OK or not retry
    }
    missing = [cell for cell in spec.cells if cell.id not in recorded]
    chosen = missing if limit is None else missing[:limit]
    run_waves(
        spark,
        _experiment(spec.experiment, data_folder()) if function is None else function,
        chosen,
        timeout=timeout,
        save=store.append,
        progress=lambda done: progress(done, len(chosen)),
        partitions=partitions,
    )
    outcomes = store.outcomes()
    lost = [cell.id for cell in chosen if cell.id not in outcomes]
    if lost:
        raise RuntimeError(f"{spec.name}: {len(lost)} of {len(chosen)} cells left no outcome: {lost[:5]}")
    return Summary(
        name=spec.name,
        experiment=spec.experiment,
        title=spec.title,
        cells=len(spec.cells),
        before=len(spec.cells) - len(missing),
        ran=len(chosen),
        left=len(missing) - len(chosen),
        ok=sum(cell.id in outcomes and outcomes[cell.id].status == OK for cell in spec.cells),
        seconds=perf_counter() - began,
        cell_seconds=sum(outcomes[cell.id].seconds for cell in chosen),
        table=store.write_table(spec, outcomes),
        failures=_failures(spec, outcomes),
        paper=compared(spec, rows_of(spec, outcomes)),
    )


def store_of(spark: SparkSession, spec: Spec, out: Path | str) -> Store | StoreElsewhere:
    """Where the outcomes of a spec are kept."""
    if is_remote(str(out)):
        return StoreElsewhere(spark, f"{out}/{spec.name}")
    return Store(Path(out) / spec.name)


def _experiment(name: str, data: Path | None) -> Function:
    """An experiment whose cells name their trace in a folder, which is not part of what a cell is."""
    experiment = EXPERIMENTS[name]
    folder = Path() if data is None else data.resolve()

    def run(cell: Cell) -> Result:
        return experiment({**cell, "trace": str(folder / str(cell["trace"]))} if "trace" in cell else cell)

    return run


def _failures(spec: Spec, outcomes: Mapping[str, CellOutcome]) -> list[Failure]:
    return [
        Failure(cell.parameters, outcome.status, outcome.error or "")
        for cell in spec.cells
        if (outcome := outcomes.get(cell.id)) is not None and outcome.status != OK
    ]
