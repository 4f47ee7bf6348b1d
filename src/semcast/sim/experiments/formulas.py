"""M1 and M2: formulas of the model, and traffic drawn by them (Pereira 2002, sections 5.1.1 and 5.3.1)."""

from itertools import islice
from random import Random

from semcast.models.distance import Frd
from semcast.models.throughput import throughput
from semcast.sim.experiments.cells import Parameters, Result


class ModelCell(Parameters, frozen=True):
    """A slow receiver, and traffic of which a share `r` overwrites one of `d` items."""

    ts: float = 100.0
    delay_ms: float = 20.0
    r: float = 0.5
    d: int = 1
    n: int = 20


def m1(cell: ModelCell) -> Result:
    """T = min(Ts, Tr / (1 - R_N)), T' = min(T, Tr)."""
    found = throughput(cell.ts, 1000 / cell.delay_ms, Frd(cell.r, cell.d).purge_ratio(cell.n))
    return {"model_throughput": found.sent, "model_consumed": found.consumed}


class DistanceCell(Parameters, frozen=True):
    """A distribution, a buffer, and how many messages are drawn."""

    r: float = 0.5
    d: int = 5
    n: int = 20
    messages: int = 50_000


def m2(cell: DistanceCell) -> Result:
    """R_N by the formula, and counted in traffic: messages that overwrite one of the last N."""
    distance = Frd(cell.r, cell.d)
    last: dict[object, int] = {}
    near = 0
    keys = distance.keys(Random(f"m2/{cell.seed}"))
    for at, key in enumerate(islice(keys, cell.messages)):
        if key is not None:
            near += at - last.get(key, -cell.messages) <= cell.n
            last[key] = at
    drawn = sum(distance.pmf(x) for x in range(1, cell.n + 1))
    return {
        "model_purge_ratio": distance.purge_ratio(cell.n),
        "summed_purge_ratio": drawn,
        "counted_purge_ratio": near / cell.messages,
    }
