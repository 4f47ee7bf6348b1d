"""What a sender that is gone gave to members and not to the logger: the logger asks those who have it."""

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core import MemberId
from semcast.core.events import Answered
from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.core.stack import Stack
from semcast.protocols.gossip import Logger, Member, Protocol
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.frames import Want
from semcast.sim.mutants import MUTANTS

P = MemberId("p")


def orphaned(protocol: Protocol, mutant: str | None = None) -> GossipLab:
    """p has died. q has its last messages; neither r nor the logger has them."""
    kind = MUTANTS["rpbcast"][mutant].logger if mutant else Logger
    lab = GossipLab(protocol=protocol, explicit=True, logger=kind)
    lab.run(SECOND)
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    lab.carries = lambda source, dest, frame: (
        not (isinstance(frame, Data) and source == "p" and dest in ("r", "log"))
    )
    lab.seats["p"].multicast(b"2", b"3")
    lab.run(5 * MILLISECOND)
    lab.crash("p", told=False)
    lab.carries = lambda *_: True
    assert lab.got("q") == [b"1", b"2", b"3"]
    return lab


@pytest.mark.parametrize("protocol", [Protocol.LBRM, Protocol.RPBCAST])
def test_what_a_dead_sender_gave_to_a_member_is_logged(protocol: Protocol) -> None:
    """`silence` is two days: until then the stream is not closed, and nobody is asked what it holds."""
    lab = orphaned(protocol)
    lab.run(SECOND)
    assert [(note.seq, note.count) for note in lab.notes("log", "log") if note.sender == P] == [
        (1, 1),
        (2, 2),
    ]
    assert lab.got("r") == [b"1", b"2", b"3"]
    assert not lab.notes("log", "closed")


@pytest.mark.parametrize("mutant", [None, "asks-senders-only"])
def test_an_acknowledgement_does_not_wait_for_a_dead_sender(mutant: str | None) -> None:
    lab = orphaned(Protocol.RPBCAST, mutant)
    q = lab.seats["q"]

    def acknowledge(stack: Stack, now: Nanos) -> None:
        assert isinstance(stack, Member)
        stack.acknowledge(now, {P: 3}, 7)

    q.call(acknowledge)
    lab.run(SECOND)
    answered = [event.ticket for event in q.events if isinstance(event, Answered)]
    assert answered == ([] if mutant else [7])


def test_members_are_not_asked_for_what_the_sender_gives() -> None:
    """The logger lost a message, as it may: its sender is there, and sends it again."""
    lab = GossipLab()
    lab.run(SECOND)
    asked: list[str] = []

    def carries(source: str, dest: str, frame: object) -> bool:
        if source == "log" and isinstance(frame, Want):
            asked.append(dest)
        return not (isinstance(frame, Data) and dest == "log" and lost.pop() if lost else False)

    lost = [True, True]
    lab.carries = carries
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    assert sum(note.count or 0 for note in lab.notes("log", "log")) == 1
    assert set(asked) <= {"p"}
