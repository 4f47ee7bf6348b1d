"""F8: what a receiver may do before the group notices (Pereira 2002, figure 5.13).

The receiver that stops is the application: it takes one more message and then none; its host goes on.
"""

from math import inf, isfinite
from typing import Literal

from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.models import Frd, Purging, Scenario, longest_stop, simulate, tolerated_rate, tolerated_stop
from semcast.sim.cluster import Cluster
from semcast.sim.experiments.cells import Parameters, Result
from semcast.sim.experiments.search import lowest
from semcast.sim.slow_receiver import SlowReceiver, build, measure, subject

NEVER_AGAIN: Nanos = 1 << 60
FINEST: Nanos = MILLISECOND
LONGEST: Nanos = 20 * SECOND
FOR_GOOD: Nanos = SECOND // 2
"""A sender that waits this long, many rounds of gossip, waits for the receiver that stopped."""
FINEST_RATE = 1.0


class ThresholdCell(Parameters, frozen=True):
    """F8: f_{r,d} traffic and buffers of `n`."""

    n: int = 20
    stack: Literal["s-rm", "reliable", "vsync", "vsync-reliable"] = "s-rm"
    r: float = 0.5
    d: int = 5
    rate: float = 100.0
    impact: float = 0.05
    members: int = 3
    trials: int = 8
    messages: int = 10_000
    measured_s: float = 6.0


def f8(cell: ThresholdCell) -> Result:
    """The lowest rate and the longest stop that do not disturb the sender: model, buffer, protocol."""
    semantic = subject(cell.stack).semantic
    traffic = Frd(cell.r, cell.d)
    ratio = traffic.purge_ratio(cell.n) if semantic else 0.0
    purging = Purging.EAGER if semantic else Purging.OFF
    lowest_rate = _protocol_rate(cell)
    stopped = Scenario(cell.rate, cell.rate, cell.n, purging=purging)
    found: Result = {
        "model_rate": tolerated_rate(cell.rate, ratio, cell.impact),
        "simulated_rate": _simulated_rate(cell, purging),
        "protocol_rate": lowest_rate,
        "model_stop_ms": 1000 * tolerated_stop(cell.rate, ratio, cell.n, cell.impact),
        "simulated_stop_ms": 1000 * longest_stop(stopped, traffic, trials=200, seed=cell.seed),
        "protocol_stop_ms": _protocol_stop(cell),
        "estimated_stop_ms": 1000 * cell.n / lowest_rate,  # as the paper does it
    }
    return {name: value for name, value in found.items() if isinstance(value, float) and isfinite(value)}


def _simulated_rate(cell: ThresholdCell, purging: Purging) -> float:
    def fits(tr: float) -> bool:
        scenario = Scenario(cell.rate, tr, cell.n, purging=purging)
        run = simulate(scenario, Frd(cell.r, cell.d), cell.messages, cell.messages // 10, cell.seed)
        return run.throughput >= cell.rate * (1 - cell.impact)

    return lowest(fits, cell.rate / 10, 1.2 * cell.rate, FINEST_RATE / 4)


def _protocol_rate(cell: ThresholdCell) -> float:
    def fits(tr: float) -> bool:
        case = _case(cell, cell.seed, delay=round(SECOND / tr))
        return measure(case).sent >= cell.rate * (1 - cell.impact)

    return lowest(fits, cell.rate / 10, 1.2 * cell.rate, FINEST_RATE)


def _protocol_stop(cell: ThresholdCell) -> float:
    """The mean over some runs, in ms; infinite where the sender never had to wait."""
    groups = (build(_case(cell, cell.seed + trial)) for trial in range(cell.trials))
    stops = [stop_until_blocked(group, SECOND) for group in groups]
    return sum(stops) / len(stops) / MILLISECOND


def _case(cell: ThresholdCell, seed: int, delay: Nanos = 0) -> SlowReceiver:
    return SlowReceiver(
        cell.stack,
        delay,
        rate=cell.rate,
        r=cell.r,
        d=cell.d,
        buffer=cell.n,
        members=cell.members,
        warmup=2 * SECOND,
        measured=round(cell.measured_s * SECOND),
        seed=seed,
    )


def stop_until_blocked(cluster: Cluster, at: Nanos) -> float:
    """Stop the last member's application at `at`; nanoseconds until the first has to wait for good.

    Short waits, for stability or safety, come with bursts and end by themselves.
    """
    sender, slow = cluster.hosts[0], cluster.hosts[-1]
    cluster.start()
    cluster.run(at)
    slow.application.delay = NEVER_AGAIN
    now = blocked = at
    while now - blocked < FOR_GOOD:
        if now - at > LONGEST:
            return inf
        now += FINEST
        cluster.run(now)
        if not sender.waiting:
            blocked = now
    return float(blocked - at)
