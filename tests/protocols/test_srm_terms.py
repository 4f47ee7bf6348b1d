"""What members of S-RM say to each other besides messages: what must be set alike, in frames of any size."""

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from semcast.core import Frame, MemberId, Outbox
from semcast.core.events import NotAdmitted
from semcast.core.heldback import HeldBack
from semcast.protocols.pieces import CONTROL_BYTES, Piece
from semcast.protocols.semantic import SemanticMulticast, Settings
from semcast.protocols.semantic.exchange import SrmTimer
from semcast.protocols.semantic.frames import Data, Gossip, Round
from semcast.sim.mutants import MUTANTS
from semcast.wire.limits import MAX_SEQ

SETTINGS = Settings(buffer_messages=10, window=64, max_message=1000)
NOTHING = Round(1, b"", [0, 0, 0], [0, 0, 0])
WIDER = msgspec.structs.replace(SETTINGS, window=128)


def of(settings: Settings, received: Sequence[int] = (0, 0, 0)) -> Gossip:
    """Gossip of a member with these settings."""
    return Gossip(list(received), NOTHING, settings.terms(), NOTHING)


def test_who_has_set_otherwise_what_must_be_alike_is_refused_and_named(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    q = lab.members["q"]
    lab.hear("q", "p", of(WIDER))
    cause = "its settings differ: window is 64 here and 128 there"
    assert lab.events["q"] == [NotAdmitted(MemberId("p"), cause)]
    assert q.stats.refused_members == 1
    lab.hear("q", "p", Data(0, 1, [b"x"]))
    assert not lab.read("q"), "nothing is taken from it"
    assert q.stats.malformed == 0
    assert lab.multicast_many("q", [b"y"] * 20) < 20
    assert q.held_back() == HeldBack(MemberId("p"), cause)


def test_who_comes_back_with_the_right_settings_is_heard(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.hear("q", "p", of(WIDER))
    lab.hear("q", "p", of(SETTINGS))
    lab.hear("q", "p", Data(0, 1, [b"x"]))
    assert lab.read("q") == [b"x"]


@pytest.mark.parametrize("change", [{"uniform": True}, {"max_message": 2000}, {"window": 128}])
def test_what_must_be_alike(make_lab: Any, change: dict[str, Any]) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.hear("q", "p", of(msgspec.structs.replace(SETTINGS, **change)))
    assert lab.members["q"].stats.refused_members == 1


def test_queues_are_the_own_business_of_a_member(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.hear("q", "p", of(msgspec.structs.replace(SETTINGS, queue_messages=5, buffer_messages=20)))
    assert lab.members["q"].stats.refused_members == 0


def test_without_the_rule_nobody_is_refused(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS, MUTANTS["s-rm"]["terms-ignored"].stack)
    lab.hear("q", "p", of(WIDER))
    assert not lab.events["q"]


class Pair:
    """Two members of 32 that have sent and received very much, and safety in every frame."""

    def __init__(self) -> None:
        names = [MemberId(f"member-{number:02}-{'x' * 40}", 1 << 50) for number in range(32)]
        self.p, self.q = [
            SemanticMulticast(name, names, Settings(gossip_fanout=31), Random(1), Outbox())
            for name in names[:2]
        ]
        high = MAX_SEQ // 4
        for member in (self.p, self.q):
            member.start(0)
            member.out.sends.clear()
            for vector in (member.buffers.queued, member.buffers.high, member.buffers.stable):
                vector[:] = [high] * 32
            for rounds in (member.stability, member.safety):
                assert rounds is not None
                rounds.result, rounds.minimum, rounds.number = [high] * 32, [high] * 32, high // 2
        self.p.buffers.queued[0] = self.p.buffers.high[0] = high + 1
        self.p.on_timer(0, SrmTimer.GOSSIP)

    def frames(self) -> list[Frame]:
        return [frame for dest, frame in self.p.out.sends if dest == self.q.members[1]]


def test_gossip_of_many_with_high_numbers_fits_in_any_network() -> None:
    pair = Pair()
    frames = pair.frames()
    assert {type(frame) for frame in frames} == {Piece}
    assert all(len(msgspec.msgpack.encode(frame)) <= CONTROL_BYTES for frame in frames)
    for frame in reversed(frames):
        pair.q.on_frame(0, pair.p.members[0], frame)
    assert pair.q.stats.malformed == 0
    assert pair.q.buffers.high[0] == pair.p.buffers.queued[0], "it was understood"


def test_pieces_that_make_no_gossip_are_dropped_and_counted() -> None:
    pair = Pair()
    for frame in pair.frames():
        assert isinstance(frame, Piece)
        pair.q.on_frame(0, pair.p.members[0], msgspec.structs.replace(frame, data=b"?" * len(frame.data)))
    assert pair.q.stats.malformed == 1
    assert pair.q.buffers.high[0] < pair.p.buffers.queued[0]
