"""What runs in an executor: some cells, one after the other, whatever they do."""

import faulthandler
import gc
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from types import FrameType

import msgspec
import pyarrow as pa

from semcast.pipeline.sweep.spec import PlannedCell
from semcast.sim.experiments import Cell, Result

Function = Callable[[Cell], Result]

OK, FAILED, TIMEOUT = "ok", "failed", "timeout"
GRACE = 5.0
"""A cell that does not end by itself this long after its time takes its process with it."""

OUTCOMES = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("error", pa.string()),
        pa.field("result", pa.string(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
    ]
)
"""One row a cell; `result` is a JSON object. The same columns as `OUTCOMES_DDL` gives to Spark."""
OUTCOMES_DDL = (
    "id string not null, status string not null, error string, "
    "result string not null, seconds double not null"
)


class CellOutcome(msgspec.Struct, frozen=True):
    """What became of a cell."""

    id: str
    status: str
    error: str | None
    result: str
    seconds: float


class Expired(BaseException):
    """The time of a cell is over. Not an Exception, so that no experiment catches it by accident."""


def run_cells(function: Function, cells: Sequence[PlannedCell], timeout: float) -> Iterator[CellOutcome]:
    """Run cells in this process, in its main thread; each gives an outcome, in their order."""
    for cell in cells:
        began = perf_counter()
        status, error, result = _run(function, cell.parameters, timeout)
        yield CellOutcome(
            cell.id, status, error, msgspec.json.encode(result).decode(), perf_counter() - began
        )


def as_batch(outcomes: Sequence[CellOutcome]) -> pa.RecordBatch:
    """Outcomes as Arrow."""
    return pa.RecordBatch.from_pylist([msgspec.structs.asdict(outcome) for outcome in outcomes], OUTCOMES)


@cache
def freeze_once() -> None:
    """Spark collects all garbage after each task; what was imported need not be looked at each time."""
    gc.collect()
    gc.freeze()


def _run(function: Function, cell: Cell, timeout: float) -> tuple[str, str | None, Result]:
    try:
        with _deadline(timeout):
            result = function(cell)
        _check(result, cell)
    except Expired:
        return TIMEOUT, f"not done after {timeout:g} s (--timeout allows more)", {}
    except BaseException as error:  # whatever a cell does, the others go on
        return FAILED, _told(error), {}
    return OK, None, result


@contextmanager
def _deadline(timeout: float) -> Iterator[None]:
    """Raise Expired in here when time is over, again and again; end the process if that does not help."""
    before = signal.signal(signal.SIGALRM, _expire)
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(timeout + GRACE, exit=True, file=nowhere)
        try:
            signal.setitimer(signal.ITIMER_REAL, timeout, 1.0)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, before)


def _expire(_signal: int, _frame: FrameType | None) -> None:
    raise Expired


def _check(result: Result, cell: Cell) -> None:
    for name, value in result.items():
        if not isinstance(value, int | float | str):
            raise TypeError(f"result {name} is {type(value).__name__}: give numbers and strings")
        if name in cell:
            raise ValueError(f"result {name} has the name of a parameter")


def _told(error: BaseException) -> str:
    """The error and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
