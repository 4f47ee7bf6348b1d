"""G2 to G4: a recorded game through S-RM, with a slow receiver (Pereira 2002, chapter 6).

The recording is replayed from `skip` seconds on, after the burst that describes the map. Messages of a
round share their time. A sender that had to wait goes on from there, as in the rest of the simulator.
Rounds with more messages than a buffer holds make it wait in any case: the impact of a slow receiver is
what it adds to that.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from random import Random

from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.history import RunInfo
from semcast.history.schema import Kind
from semcast.protocols.semantic import Settings
from semcast.sim.cluster import GROUP, Cluster, member_names
from semcast.sim.experiments.cells import CellError, Parameters, Result
from semcast.sim.experiments.perturbed import StackName
from semcast.sim.experiments.search import lowest
from semcast.sim.experiments.thresholds import stop_until_blocked
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.slow_receiver import subject
from semcast.sim.stacks import reliable, s_rm
from semcast.sim.traces import TraceError, TraceRow, read_trace, replay_arrivals, replay_contents
from semcast.sim.workloads import Bitmaps, Source

MEMBERS = 3
IMPACT = 0.05


class ReplayCell(Parameters, frozen=True):
    """A recording, and an application that takes `delay_ms` for each message."""

    trace: str = ""
    stack: StackName = "s-rm"
    delay_ms: float = 1.0
    n: int = 40
    k: int = 64
    skip: float = 5.0
    rows: int = 4000
    speed: float = 1.0
    trials: int = 10


def g2(cell: ReplayCell) -> Result:
    """Throughput, and what is purged at the slow and at a fast receiver (figure 6.3)."""
    rows = _rows(cell)
    alone = _lasted(_replayed(cell, rows, 0.0))
    cluster = _replayed(cell, rows, cell.delay_ms)
    sender, fast, slow = cluster.hosts
    lasted = _lasted(cluster)
    return {
        "trace_rate": cell.speed * (len(rows) - 1) / _recorded(rows),
        "undisturbed": (len(rows) - 1) * SECOND / alone,
        "throughput": (len(rows) - 1) * SECOND / lasted,
        "impact": max(0.0, 1 - alone / lasted),
        "purged_slow": 1 - slow.stack.stats.delivered / sender.stack.stats.sent,
        "purged_fast": 1 - fast.stack.stats.delivered / sender.stack.stats.sent,
    }


def g3(cell: ReplayCell) -> Result:
    """The slowest receiver and the longest stop that do not disturb the sender (figure 6.4)."""
    rows = _rows(cell)
    mean = _recorded(rows) / cell.speed / (len(rows) - 1)
    alone = _replayed(cell, rows, 0.0).hosts[0].stats.sent_at[-1]

    def fits(tr: float) -> bool:
        cluster = _build(cell, rows, 1000 / tr)
        cluster.start()
        cluster.run(round(alone / (1 - IMPACT)))
        return len(cluster.hosts[0].stats.sent_at) == len(rows)

    rate = lowest(fits, 0.1 / mean, 10 / mean, 0.02 / mean)
    stops = [_stop(cell, rows, trial) for trial in range(cell.trials)]
    return {
        "trace_rate": 1 / mean,
        "tolerated_rate": rate,
        "tolerated_delay_ms": 1000 / rate,
        "tolerated_stop_ms": sum(stops) / len(stops) / MILLISECOND,
    }


def g4(cell: ReplayCell) -> Result:
    """For how many rounds modified items stay outdated at the slow receiver (figure 6.5)."""
    rows = _rows(cell)
    cluster = _replayed(cell, rows, cell.delay_ms, record=True)
    late = _rounds_late(rows, _delivered_at_slow(cluster))
    return {
        "items_modified": len(late),
        "within_0": _share(late, 0),
        "within_1": _share(late, 1),
        "within_10": _share(late, 10),
    }


def _rows(cell: ReplayCell) -> list[TraceRow]:
    if not cell.trace:
        raise CellError("no trace: give the path of a recording")
    try:
        rows = _recording(cell.trace)
    except TraceError as error:
        raise CellError(f"trace {cell.trace}: {error}") from error
    rows = [row for row in rows if row.ts >= cell.skip][: cell.rows]
    if len(rows) < 2 or _recorded(rows) == 0:
        raise CellError(f"trace {cell.trace}: nothing to replay after {cell.skip} s")
    return rows


@lru_cache(maxsize=4)
def _recording(path: str) -> list[TraceRow]:
    return read_trace(Path(path))


def _recorded(rows: Sequence[TraceRow]) -> float:
    return rows[-1].ts - rows[0].ts


def _build(cell: ReplayCell, rows: list[TraceRow], delay_ms: float, *, record: bool = False) -> Cluster:
    seeds = Random(cell.seed)
    scheduler = Scheduler()
    settings = Settings(buffer_messages=cell.n, senders=(0,))
    info = RunInfo.one(
        run="replay",
        group=GROUP,
        stack=cell.stack,
        seed=cell.seed,
        members=member_names(MEMBERS),
        buffer_limit=cell.n,
        uniform=False,
        quiesced=False,
    )
    contents = replay_contents(rows, Bitmaps(cell.k))
    return Cluster(
        scheduler,
        SwitchedNetwork(scheduler, Random(seeds.getrandbits(64)), MEMBERS, Conditions()),
        (s_rm if subject(cell.stack).semantic else reliable)(settings),
        size=MEMBERS,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(
            sources={0: Source(replay_arrivals(rows, cell.speed), contents, len(rows))},
            delays={MEMBERS - 1: round(delay_ms * MILLISECOND)},
            observe=False,
        ),
        record=info if record else None,
    )


def _replayed(cell: ReplayCell, rows: list[TraceRow], delay_ms: float, *, record: bool = False) -> Cluster:
    """The whole replay: until all is sent, and the slow receiver has what it will get."""
    cluster = _build(cell, rows, delay_ms, record=record)
    cluster.start()
    while len(cluster.hosts[0].stats.sent_at) < len(rows):
        cluster.run(cluster.scheduler.now + SECOND // 4)
    while cluster.hosts[-1].stack.deliverable():
        cluster.run(cluster.scheduler.now + SECOND // 20)
    return cluster


def _lasted(cluster: Cluster) -> Nanos:
    sent_at = cluster.hosts[0].stats.sent_at
    return sent_at[-1] - sent_at[0]


def _stop(cell: ReplayCell, rows: list[TraceRow], trial: int) -> float:
    """Each trial stops the receiver at another moment of the recording."""
    start = trial * len(rows) // (2 * cell.trials)
    cluster = _build(cell, rows[start:], 0.0)
    return stop_until_blocked(cluster, SECOND // 4)


def _delivered_at_slow(cluster: Cluster) -> list[int]:
    slow = cluster.hosts[-1].member
    history = cluster.finish(quiesced=True)
    return [
        seq
        for event in history.of(slow)
        if event.kind is Kind.DELIVER
        for seq in range(event.seq, event.last + 1)
    ]


def _rounds_late(rows: list[TraceRow], delivered: Sequence[int]) -> list[int]:
    """For each item modified in a round: how many rounds later is the one whose value arrived."""
    rounds = _round_numbers(rows)
    arrived = set(delivered)
    value_of: dict[str, int] = {}
    late: dict[tuple[str, int], int] = {}
    for position in range(len(rows) - 1, -1, -1):
        row, number = rows[position], rounds[position]
        if not row.update:
            continue
        if position + 1 in arrived:
            value_of[row.key] = number
        assert row.key in value_of, "the last update of an item is never purged"
        late.setdefault((row.key, number), value_of[row.key] - number)
    return list(late.values())


def _round_numbers(rows: list[TraceRow]) -> list[int]:
    numbers = [0]
    for before, row in pairwise(rows):
        numbers.append(numbers[-1] + (row.ts != before.ts))
    return numbers


def _share(late: Sequence[int], most: int) -> float:
    return sum(rounds <= most for rounds in late) / len(late)
