"""Experiments on formulas and the buffer simulation alone: M3, M4, F3 to F6."""

from typing import Literal

from semcast.models import (
    BufferRun,
    Distance,
    Frd,
    ModelTraffic,
    Purging,
    Scenario,
    Stock,
    simulate,
    throughput,
    tolerated_delay,
    tolerated_rate,
)
from semcast.sim.experiments.cells import Parameters, Result
from semcast.sim.experiments.search import lowest

FINEST_RATE = 0.25
"""Receiver rates are searched to within so many messages a second."""


class StockCell(Parameters, frozen=True):
    """M3: quotes of stocks, and a receiver with `load` times the lowest rate that the model tolerates."""

    n: int = 20
    load: float = 0.98
    ts: float = 100.0
    messages: int = 50_000


def m3(cell: StockCell) -> Result:
    """R_N by formula and in a buffer (Pereira 2000, table 2)."""
    ratio = Stock().purge_ratio(cell.n)
    tr = cell.load * tolerated_rate(cell.ts, ratio)
    run = _simulated(Scenario(cell.ts, tr, cell.n), Stock(), cell.messages, cell.seed)
    return {"model_ratio": ratio, "simulated_ratio": run.purge_ratio, "tr": tr}


class StockDelayCell(Parameters, frozen=True):
    """M4: a receiver that takes `extra` percent longer than the interval between messages."""

    n: int = 20
    extra: float = 10.0
    impact: float = 0.01
    ts: float = 100.0
    messages: int = 20_000


def m4(cell: StockDelayCell) -> Result:
    """How much slower the receiver may be, and how old quotes get (Pereira 2000, figure 8)."""

    def run_at(tr: float) -> BufferRun:
        return _simulated(Scenario(cell.ts, tr, cell.n), Stock(), cell.messages, cell.seed)

    least = lowest(
        lambda tr: run_at(tr).throughput >= cell.ts * (1 - cell.impact), cell.ts / 4, cell.ts, FINEST_RATE
    )
    run = run_at(cell.ts / (1 + cell.extra / 100))
    return {
        "model_tolerated_extra": 100 * (tolerated_delay(cell.ts, Stock().purge_ratio(cell.n)) * cell.ts - 1),
        "simulated_tolerated_extra": 100 * (cell.ts / least - 1),
        "simulated_throughput": run.throughput,
        "semantic_latency_ms": 1000 * run.mean_semantic_latency,
    }


class BufferCell(Parameters, frozen=True):
    """F3 to F6: f_{r,d} traffic through a buffer to a receiver of `tr` messages a second."""

    r: float = 0.5
    d: int = 5
    n: int = 20
    k: int = 0
    """Reach of the bitmaps; 0 for any."""
    tr: float = 40.0
    ts: float = 100.0
    purging: Literal["eager", "lazy", "off"] = "eager"
    sender_n: int = 0
    safety_ms: float = 0.0
    messages: int = 50_000


def buffer(cell: BufferCell) -> Result:
    """The model and the simulation of one buffer (Pereira 2002, figures 5.5 to 5.9)."""
    traffic = Frd(cell.r, cell.d)
    scenario = Scenario(
        cell.ts,
        cell.tr,
        cell.n,
        k=cell.k or None,
        purging=Purging(cell.purging),
        sender_n=cell.sender_n,
        safety_delay=cell.safety_ms / 1000,
    )
    run = _simulated(scenario, traffic, cell.messages, cell.seed)
    return {
        "model_throughput": throughput(cell.ts, cell.tr, model_ratio(traffic, scenario)).sent,
        "simulated_throughput": run.throughput,
        "simulated_purged": run.purge_ratio,
        "simulated_occupancy": run.mean_occupancy,
        "simulated_latency_ms": 1000 * run.mean_semantic_latency,
    }


def model_ratio(distance: Distance, scenario: Scenario) -> float:
    """R_N as far as the representation reaches; the model knows nothing of safety or of split buffers."""
    return distance.purge_ratio(min(scenario.n + scenario.sender_n, scenario.reach))


def _simulated(scenario: Scenario, traffic: ModelTraffic, messages: int, seed: int) -> BufferRun:
    return simulate(scenario, traffic, messages, warmup=messages // 10, seed=seed)
