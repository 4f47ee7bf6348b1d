"""Experiments on groups with one perturbed receiver: F1, F2, F7. The real protocol, in virtual time."""

from typing import Literal

from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.models import Frd, Purging, Scenario, simulate, throughput
from semcast.protocols.semantic import SemanticMulticast
from semcast.sim.cluster import Cluster
from semcast.sim.experiments.cells import Parameters, Result
from semcast.sim.hosts import Host
from semcast.sim.slow_receiver import SlowReceiver, build, measure, subject

Perturbation = Literal["process-sleep", "packet-delay", "bandwidth", "slow-application"]
StackName = Literal["s-rm", "reliable"]

LARGE_PAYLOAD = 1000
"""Bytes of a message where bandwidth is scarce (5.3.1)."""
SAMPLING: Nanos = MILLISECOND


class PerturbedCell(Parameters, frozen=True):
    """F1 and F7: one perturbed receiver.

    `amount` is in milliseconds (asleep in each second, for each packet, for each delivery) or in kbit/s.
    """

    perturbation: Perturbation = "slow-application"
    amount: float = 0.0
    members: int = 3
    stack: StackName = "reliable"
    rate: float = 200.0
    r: float = 0.5
    d: int = 5
    buffer: int = 40
    warmup_s: float = 2.0
    measured_s: float = 6.0


def f1(cell: PerturbedCell) -> Result:
    """Throughput at a receiver that is not perturbed (Pereira 2002, figure 2.6)."""
    measured = measure(_perturbed(cell))
    return {
        "throughput": measured.delivered_fast,
        "sent": measured.sent,
        "delivered_slow": measured.delivered_slow,
        "blocked": measured.blocked,
    }


def f7(cell: PerturbedCell) -> Result:
    """Throughput, use of processor and network at the sender, latency of tracking (figures 5.10 to 5.12)."""
    case = _perturbed(cell)
    cluster = build(case)
    sender, slow = cluster.hosts[0], cluster.hosts[-1]
    cluster.start()
    cluster.run(case.warmup)
    before = _counters(sender, slow)
    latencies = _track(cluster, sender, case.warmup, case.warmup + case.measured)
    seconds = case.measured / SECOND
    sent, delivered, busy, datagrams, octets, control = (
        (after - earlier) / seconds for after, earlier in zip(_counters(sender, slow), before, strict=True)
    )
    return {
        "throughput": sent,
        "delivered_slow": delivered,
        "processor": busy / SECOND,
        "datagrams": datagrams,
        "bytes": octets,
        "control_frames": control,
        **latencies,
    }


class SlowCell(Parameters, frozen=True):
    """F2: an application that takes `delay_ms` for each message."""

    r: float = 0.5
    delay_ms: float = 20.0
    stack: StackName = "s-rm"
    d: int = 1
    n: int = 20
    rate: float = 100.0
    messages: int = 20_000
    warmup_s: float = 4.0
    measured_s: float = 10.0


def f2(cell: SlowCell) -> Result:
    """Model, buffer simulation and protocol side by side (Pereira 2002, figures 5.3 and 5.4)."""
    semantic = subject(cell.stack).semantic
    tr = 1000 / cell.delay_ms
    ratio = Frd(cell.r, cell.d).purge_ratio(cell.n) if semantic else 0.0
    model = throughput(cell.rate, tr, ratio)
    purging = Purging.EAGER if semantic else Purging.OFF
    buffer = simulate(
        Scenario(cell.rate, tr, cell.n, purging=purging),
        Frd(cell.r, cell.d),
        cell.messages,
        warmup=cell.messages // 10,
        seed=cell.seed,
    )
    group = measure(
        SlowReceiver(
            cell.stack,
            round(cell.delay_ms * MILLISECOND),
            rate=cell.rate,
            r=cell.r,
            d=cell.d,
            buffer=cell.n,
            warmup=round(cell.warmup_s * SECOND),
            measured=round(cell.measured_s * SECOND),
            seed=cell.seed,
        )
    )
    return {
        "model_throughput": model.sent,
        "simulated_throughput": buffer.throughput,
        "protocol_throughput": group.sent,
        "model_purged": 1 - model.consumed / model.sent,
        "simulated_purged": buffer.purge_ratio,
        "protocol_purged": group.purged_at_slow,
        "fast_purged": max(0.0, 1 - group.delivered_fast / group.sent) if group.sent else 0.0,
    }


def _perturbed(cell: PerturbedCell) -> SlowReceiver:
    kind, amount = cell.perturbation, cell.amount
    nanos = round(amount * MILLISECOND)
    return SlowReceiver(
        cell.stack,
        nanos if kind == "slow-application" else 0,
        rate=cell.rate,
        r=cell.r,
        d=cell.d,
        buffer=cell.buffer,
        members=cell.members,
        warmup=round(cell.warmup_s * SECOND),
        measured=round(cell.measured_s * SECOND),
        seed=cell.seed,
        payload=LARGE_PAYLOAD if kind == "bandwidth" else 0,
        sleep=nanos if kind == "process-sleep" else 0,
        packet_delay=nanos if kind == "packet-delay" else 0,
        bandwidth=round(amount * 1000) if kind == "bandwidth" and amount else None,
    )


def _counters(sender: Host, slow: Host) -> tuple[int, ...]:
    return (
        sender.stack.stats.sent,
        slow.stack.stats.delivered,
        sender.stats.busy,
        sender.stats.datagrams_out,
        sender.stats.bytes_out,
        sender.stack.stats.control_frames,
    )


def _track(cluster: Cluster, sender: Host, since: Nanos, until: Nanos) -> Result:
    """Mean time until the sender knows that its messages are stable, and safe."""
    stack = sender.stack
    assert isinstance(stack, SemanticMulticast), "F7 compares S-RM with its reliable baseline"
    stability = _Latency(since)
    safety = _Latency(since)
    for now in range(since, until, SAMPLING):
        cluster.run(now)
        stability.reached(now, stack.buffers.stable[0], sender.stats.sent_at)
        safety.reached(now, stack.buffers.safe[0], sender.stats.sent_at)
    cluster.run(until)
    found = {"stability_ms": stability.mean_ms(), "safety_ms": safety.mean_ms()}
    return {name: mean for name, mean in found.items() if mean is not None}


class _Latency:
    """From sending a message to the first sample in which a vector covers it."""

    def __init__(self, since: Nanos) -> None:
        self._since = since
        self._seen = 0
        self._total: Nanos = 0
        self._count = 0

    def reached(self, now: Nanos, seq: int, sent_at: list[Nanos]) -> None:
        for sent in sent_at[self._seen : seq]:
            if sent >= self._since:
                self._total += now - sent
                self._count += 1
        self._seen = max(self._seen, seq)

    def mean_ms(self) -> float | None:
        return self._total / self._count / MILLISECOND if self._count else None
