"""S-RM against frames that no correct member sends: dropped, counted, bounded."""

import sys
from typing import Any

import pytest

from semcast.core import Frame, Item, MemberId
from semcast.protocols.semantic import Settings
from semcast.protocols.semantic.frames import ChannelAck, ChannelData, Data, Gossip, Notice, Request, Round
from semcast.wire.annotations import WireBitmap, WireItem
from semcast.wire.limits import MAX_SEQ

SETTINGS = Settings(buffer_messages=10, window=64, max_message=1000)
TERMS = SETTINGS.terms()
NOTHING = Round(1, b"", [0, 0, 0], [0, 0, 0])
ABSURD: dict[str, Frame] = {
    "rank beyond the group": Data(9, 1, [b"x"]),
    "sequence number 0": Data(0, 0, [b"x"]),
    "sequence number beyond the window": Data(0, 65, [b"x"]),
    "sequence number beyond all": Data(0, MAX_SEQ, [b"x"]),
    "a batch that reaches beyond the window": Data(0, 1, [b"x"] * 65),
    "a message of ours that we never sent": Data(1, 1, [b"x"]),
    "an annotation on several messages": Data(0, 1, [b"x", b"y"], WireItem("a")),
    "a payload above the limit": Data(0, 1, [bytes(1001)]),
    "a request for an unknown sender": Request(9, [(1, 2)]),
    "a notice for an unknown sender": Notice(9, 1, b"\x01"),
    "a notice about our own messages": Notice(1, 1, b"\x01"),
    "a notice beyond the window": Notice(0, 65, b"\x01"),
    "a notice from nowhere": Notice(0, MAX_SEQ, b"\x01"),
    "a notice about message 0": Notice(0, 0, b"\x01"),
    "vectors too short": Gossip([0, 0], NOTHING, TERMS, NOTHING),
    "vectors too long": Gossip([0] * 4, NOTHING, TERMS, NOTHING),
    "a round too short": Gossip([0] * 3, Round(1, b"", [0], [0, 0, 0]), TERMS, NOTHING),
    "a result too short": Gossip([0] * 3, Round(1, b"", [0] * 3, [0]), TERMS, NOTHING),
    "voters beyond the group": Gossip([0] * 3, Round(1, b"\x08", [0] * 3, [0] * 3), TERMS, NOTHING),
    "received beyond the window": Gossip([65, 0, 0], NOTHING, TERMS, NOTHING),
    "received what we never sent": Gossip([0, 1, 0], NOTHING, TERMS, NOTHING),
    "stable what we have not queued": Gossip([0] * 3, Round(1, b"", [0] * 3, [1, 0, 0]), TERMS, NOTHING),
    "safe beyond the window": Gossip([0] * 3, NOTHING, TERMS, Round(1, b"", [0] * 3, [65, 0, 0])),
    "a notice that says nothing": Notice(0, 1, b"\0"),
    "a round beyond all time": Gossip([0] * 3, Round(MAX_SEQ, b"\x07", [0] * 3, [0] * 3), TERMS, NOTHING),
    "a frame of another protocol": ChannelAck(1, 1),
    "data of another protocol": ChannelData(1, 1, [b"x"]),
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_frames_are_dropped_and_counted(make_lab: Any, name: str) -> None:
    lab = make_lab("pqr", SETTINGS)
    member = lab.members["q"]
    member.on_frame(0, lab.ids["p"], ABSURD[name])
    assert member.stats.malformed == 1
    assert member.buffered() == 0
    assert not member.out.sends
    assert member.buffers.high == member.buffers.queued == [0, 0, 0]
    lab.multicast("p", b"still works")
    lab.carry()
    assert lab.read("q") == [b"still works"]


def test_frames_from_strangers_and_from_oneself_are_dropped(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    member = lab.members["q"]
    for source in (MemberId("stranger"), MemberId("p", 1), lab.ids["q"]):
        member.on_frame(0, source, Data(0, 1, [b"x"]))
    assert member.stats.malformed == 3
    assert not member.deliverable()


def test_a_request_for_everything_is_answered_within_bounds(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    for number in range(5):
        lab.multicast("p", b"%d" % number)
    lab.drop()
    for spans, answered in (
        ([(1, MAX_SEQ)], 5),
        ([(5, 1)], 0),
        ([(0, 0)], 0),
        ([(1, 5)] * 256, 5),
        ([(2, 3), (1, 2), (3, 3)], 3),
    ):
        lab.hear("p", "q", Request(0, spans))
        sent = sum(len(f.payloads) for *_, f in lab.wire if isinstance(f, Data))
        assert sent == answered, "each message once"
        lab.drop()


def test_reversed_spans_inside_a_batch_do_not_raise(make_lab: Any) -> None:
    lab = make_lab("pq", Settings())
    lab.multicast_many("p", [b"x"] * 12)
    lab.drop()
    for spans in ([(10, 5)], [(1, 12)] * 21 + [(1, 4), (2, 9)]):
        lab.hear("p", "q", Request(0, spans))
    assert sum(len(f.payloads) for *_, f in lab.wire if isinstance(f, Data)) == 12


def test_a_failed_stranger_is_ignored(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.members["p"].member_failed(0, MemberId("stranger"))
    assert not lab.members["p"].out.events


def test_floods_do_not_grow_memory(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    member = lab.members["q"]
    for round_number in range(200):
        for seq in range(2, 65):
            lab.hear("q", "p", Data(0, seq, [b"x" * 100]))
        lab.hear("q", "p", Notice(0, 2, b"\xff\xff\xff\x7f"))
        lab.hear("q", "p", Data(2, round_number % 60 + 2, [b"x"], WireBitmap(MAX_SEQ, b"\xff" * 512, False)))
    assert member.buffered() <= SETTINGS.buffer_messages
    assert all(len(skips) <= SETTINGS.window for skips in member.buffers.skips)
    assert sys.getsizeof(member.buffers.to_deliver) < 10_000


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (Settings(buffer_messages=2), "3 senders need a slot each"),
        (Settings(buffer_bytes=100_000), "need room for a message"),
        (Settings(senders=(0, 3)), "ranks go from 0 to 2"),
        (Settings(max_message=100_000), "max_message"),
        (Settings(window=10), "window"),
        (Settings(gossip_period=0), "period"),
        (Settings(gossip_fanout=0), "fanout"),
    ],
)
def test_settings_that_cannot_work_are_refused(make_lab: Any, settings: Settings, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make_lab("pqr", settings)


def test_bad_multicasts_are_refused_with_a_reason(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    member = lab.members["p"]
    with pytest.raises(ValueError, match="max_message is 1000"):
        member.multicast(0, [bytes(1001)])
    with pytest.raises(ValueError, match="exactly one payload"):
        member.multicast(0, [b"a", b"b"], Item("x"))
    with pytest.raises(ValueError, match="item of 0"):
        member.multicast(0, [b"a"], Item(""))
    assert member.stats.sent == 0
