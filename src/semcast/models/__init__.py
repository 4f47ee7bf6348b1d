"""Models of purging: formulas, and a simulation of nothing but buffers."""

from semcast.models.buffers import longest_stop, simulate
from semcast.models.distance import (
    TRADING,
    Distance,
    Empirical,
    Frd,
    Key,
    Stock,
    StockClass,
    distances,
)
from semcast.models.scenario import BufferRun, Intervals, ModelTraffic, Replay, Scenario
from semcast.models.throughput import (
    Throughput,
    smallest_buffer,
    throughput,
    tolerated_delay,
    tolerated_rate,
    tolerated_stop,
)
from semcast.obsolescence import Purging

__all__ = [
    "TRADING",
    "BufferRun",
    "Distance",
    "Empirical",
    "Frd",
    "Intervals",
    "Key",
    "ModelTraffic",
    "Purging",
    "Replay",
    "Scenario",
    "Stock",
    "StockClass",
    "Throughput",
    "distances",
    "longest_stop",
    "simulate",
    "smallest_buffer",
    "throughput",
    "tolerated_delay",
    "tolerated_rate",
    "tolerated_stop",
]
