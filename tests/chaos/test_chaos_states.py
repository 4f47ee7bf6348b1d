"""The states of chaos programs, compared in the end: what stacks that are broken on purpose make of them."""

from pathlib import Path
from typing import Any

import pytest
from tests.protocols.vsync.vsynclab import MS, Lab, Node

from semcast.chaos.judge import judge
from semcast.chaos.ledger import SharedLedger, letter
from semcast.core import Batch, MemberId, Message, MessageId
from semcast.core.events import Delivery
from semcast.core.ids import SECOND
from semcast.history import RunInfo
from semcast.history.journal import JournalWriter
from semcast.protocols.vsync import VirtualSynchrony
from semcast.sim.mutants import MUTANTS


class Replica(Node):
    """A member whose program keeps what a chaos program keeps."""

    def __init__(self, *args: Any) -> None:
        self.ledger = SharedLedger()
        super().__init__(*args)

    def on_delivery(self, each: Delivery) -> None:
        super().on_delivery(each)
        if isinstance(each, Batch):
            for seq, payload in enumerate(each.payloads, each.first):
                self.ledger.apply(Message(MessageId(each.sender, seq), payload))

    def export(self) -> bytes:
        return self.ledger.export()

    def restore(self, state: bytes) -> None:
        self.ledger.restore(state)


def states(kind: type[VirtualSynchrony]) -> dict[str, str]:
    """Two found a group, and two join it one after the other, while it goes on."""
    lab = Lab(kind=kind)
    for name in "ab":
        lab.add(name, kind=Replica, minimum=2, state=True)
    lab.run(SECOND)
    for name in "cd":
        lab.nodes["a"].multicast(*[letter(b"?", "", b"%d" % number) for number in range(5)])
        lab.run(100 * MS)
        lab.add(name, kind=Replica, minimum=0, state=True)
        lab.run(SECOND)
        lab.nodes["b"].multicast(letter(b"?", "", b"more"))
        lab.run(100 * MS)
    assert lab.nodes["d"].views[-1] == [*"abcd"]
    return {name: node.ledger.summary() for name, node in lab.nodes.items() if isinstance(node, Replica)}


def equal_states(folder: Path, kind: type[VirtualSynchrony]) -> str:
    info = RunInfo.one("run", "g", "vsync", None, (), None, uniform=False, quiesced=False)
    JournalWriter(folder, MemberId("a"), info).close(1)
    findings = {each.property: each.status for each in judge(folder, states(kind)).findings}
    return findings["equal_states"]


def test_states_are_equal_where_nothing_is_broken(tmp_path: Path) -> None:
    assert equal_states(tmp_path, VirtualSynchrony) == "holds"


@pytest.mark.parametrize("name", ["old-state-handed-over", "joiner-without-state"])
def test_a_stack_that_breaks_the_state_is_caught(tmp_path: Path, name: str) -> None:
    kind = MUTANTS["vsync"][name].stack
    assert kind is not None
    assert issubclass(kind, VirtualSynchrony)
    assert equal_states(tmp_path, kind) == "violated"
