"""What flow control believes to be held is what is held: in every buffer, at any time."""

from collections.abc import Iterator

import pytest

from semcast.core.messages import Batch
from semcast.core.stack import Stack
from semcast.protocols.semantic import SemanticMulticast
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.vsync import VirtualSynchrony
from semcast.sim.mutants import Mutant
from semcast.sim.simulate import PATIENCE, build
from semcast.sim.swarm import scenario_of

_LOOKS = 8


def buffers_of(stack: Stack) -> Iterator[Buffers]:
    if isinstance(stack, VirtualSynchrony):
        for epoch in stack._epochs:
            yield epoch.stream.buffers
    else:
        assert isinstance(stack, SemanticMulticast)
        yield stack.buffers


def cached(buffers: Buffers) -> list[Batch]:
    """What waits for a predecessor, or for room."""
    found = [one for pending in buffers.pending for one in pending.values()]
    return found + [batch for door in buffers.door for batch in door]


@pytest.mark.parametrize(("stack", "seed"), [(s, n) for s in ("vsync", "s-rm", "reliable") for n in range(8)])
def test_occupancy_is_what_is_buffered(stack: str, seed: int) -> None:
    scenario = scenario_of(stack, seed)
    cluster = build(scenario, Mutant())
    cluster.schedule(scenario.faults)
    cluster.start()
    for look in range(1, _LOOKS + 2):
        if look <= _LOOKS:
            cluster.run(scenario.duration * look // _LOOKS)
        else:
            cluster.heal()
            assert cluster.settle(PATIENCE)
        for host in cluster.hosts:
            for buffers in [] if host.crashed else buffers_of(host.stack):
                held = buffers.occupancy
                assert held.messages == sum(map(len, buffers.retained))
                assert held.bytes == sum(retained.bytes for retained in buffers.retained)
                assert held.cached == sum(len(batch.payloads) for batch in cached(buffers))
                assert held.cached_bytes == sum(batch.size for batch in cached(buffers))
