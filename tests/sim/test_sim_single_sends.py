"""Programs that send one message a call, as live ones do: what waits leaves together.

Simulated programs hand over what a workload makes as calls of their own. Here they take the
short ways, as live programs do.
"""

import pytest

from semcast.core.annotations import Item
from semcast.core.handover import Handover
from semcast.core.outgoing import Outgoing
from semcast.sim.swarm import report

SEEDS = range(750_000, 750_008)


@pytest.mark.parametrize("stack", ["ring", "vsync", "rpbcast"])
def test_nothing_is_broken_by_runs_of_single_sends(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest, short = Handover.send, {bytes: 0, Item: 0}

    def send(handover: Handover, outgoing: Outgoing) -> None:
        note = outgoing.annotation
        lone = len(outgoing.payloads) == 1 and outgoing.annotations is None and outgoing.confirm is None
        if not lone or outgoing.safe or not isinstance(note, Item | None):
            honest(handover, outgoing)
        elif note is None:
            short[bytes] += 1
            handover.send_plain(outgoing.payloads[0])
        else:
            short[Item] += 1
            handover.send_update(outgoing.payloads[0], note)

    monkeypatch.setattr(Handover, "send", send)
    assert [seed for seed in SEEDS if report(seed, stack, None).broken] == []
    assert min(short.values()) > 0, "both ways were taken"
