"""No frame of virtual synchrony is larger than any network carries, whatever the names and numbers."""

from random import Random
from typing import Any

import msgspec
import pytest
from tests.protocols.vsync.vsynclab import TERMS, Lab, Node

from semcast.core import Enumeration, Frame, Item, KEnumeration, MemberId, MessageId, Outbox
from semcast.core.annotations import Annotation
from semcast.core.ids import MAX_NAME, MILLISECOND, SECOND
from semcast.core.messages import Batch
from semcast.protocols.pieces import CONTROL_BYTES, Courier, Piece, Puzzles
from semcast.protocols.semantic.frames import Data, Notice, Request
from semcast.protocols.semantic.repair import Repairs
from semcast.protocols.vsync import DetectorSettings, Order, VsyncSettings, changes
from semcast.protocols.vsync.batches import InstanceStanding as Adopted
from semcast.protocols.vsync.bulk import is_bulky, is_wide, most_bytes
from semcast.protocols.vsync.changes import Change
from semcast.protocols.vsync.consensus_frames import Ack, Decision, Estimate, Instance, Proposal, Summons
from semcast.protocols.vsync.frames import (
    FRAMES,
    Accept,
    Accepted,
    Ballot,
    Farewell,
    Goodbye,
    Hello,
    Init,
    InView,
    Known,
    Pred,
    Prepare,
    Promise,
    Received,
    Refused,
    Standing,
    StateChunk,
    StateWanted,
    Superseded,
    Welcome,
    WholeFrame,
)
from semcast.wire import Codec
from semcast.wire.annotations import to_wire
from semcast.wire.limits import MAX_BITMAP, MAX_SEQ
from semcast.wire.sealing import OVERHEAD

LIMIT = 1280 - 48 - OVERHEAD
"""What the smallest MTU leaves of a datagram: IPv6, UDP and the seal come on top."""
FRAME_BYTES = 900
CAUSE = "漢" * 33


def crowd(size: int, fill: str = "x") -> list[MemberId]:
    """Members with names as long as they may be, in bytes, and as high numbers."""
    names = [f"{number:04}" for number in range(size)]
    return [MemberId(name + fill * ((MAX_NAME - 4) // len(fill.encode())), MAX_SEQ) for name in names]


def worst(members: list[MemberId]) -> list[Frame]:
    """One of each control frame, as large as the stack ever makes it."""
    size, me = len(members), members[0]
    everybody, seqs = list(range(size)), [MAX_SEQ] * size
    known, ballot, instance = Known(MAX_SEQ, members), Ballot(MAX_SEQ, me), Instance(MAX_SEQ, 0)
    report = msgspec.msgpack.encode(Adopted(MAX_SEQ, MAX_SEQ, seqs))
    causes = [(member, CAUSE) for member in members]
    others = [msgspec.structs.replace(member, incarnation=1) for member in members]
    change = Change([*members, *others], others, causes, seqs, members, report, MAX_SEQ)
    value = changes.encode(change, members)
    return [
        Received(MAX_SEQ, seqs, MAX_SEQ, True, True),
        Init(MAX_SEQ, causes, others, members),
        Pred(MAX_SEQ, seqs, causes, others, True, report, gone=members, avoid=me),
        Hello(True, known, TERMS),
        Welcome(MAX_SEQ, members, seqs, everybody, everybody, MAX_SEQ, MAX_SEQ),
        Standing(known),
        Refused(CAUSE),
        Farewell(MAX_SEQ),
        Goodbye(),
        Superseded(MAX_SEQ, me, CAUSE),
        Prepare(ballot, MAX_SEQ, TERMS),
        Promise(ballot, ballot, members, MAX_SEQ),
        Accept(ballot, members, MAX_SEQ, TERMS),
        Accepted(ballot, MAX_SEQ),
        StateWanted(MAX_SEQ, MAX_SEQ, MAX_SEQ),
        StateChunk(MAX_SEQ, MAX_SEQ, MAX_SEQ, bytes(FRAME_BYTES)),
        Estimate(instance, MAX_SEQ, MAX_SEQ, value),
        Proposal(instance, MAX_SEQ, value),
        Decision(instance, value),
        Ack(instance, MAX_SEQ, True),
        Summons(instance, MAX_SEQ),
    ]


def parts(frame: Frame, most: int = CONTROL_BYTES) -> list[Frame]:
    """What leaves of it."""
    out = Outbox()
    Courier(out).pass_on(None, frame, most)
    return [part for _, part in out.sends]


def put_together(pieces: list[Frame]) -> Frame | None:
    puzzles = Puzzles(WholeFrame)
    found: Frame | None = None
    for piece in pieces:
        assert isinstance(piece, Piece)
        data = puzzles.add(MemberId("p"), piece)
        if data is not None:
            found = puzzles.whole(data, piece.digest)
    return found


@pytest.mark.parametrize("fill", ["x", "é", "漢"])
@pytest.mark.parametrize("size", [1, 3, 12, 32, 64, 128])
def test_no_control_frame_is_larger_than_any_network_carries(size: int, fill: str) -> None:
    members = crowd(size, fill)
    codec = Codec("g" * 100, [], LIMIT, FRAMES)
    frames = worst(members)
    assert {type(frame) for frame in frames} | {InView, Piece} == {*FRAMES}
    for frame in frames:
        sent = parts(frame)
        assert sent == [frame] or put_together(sent) == frame
        for part in sent:
            assert len(msgspec.msgpack.encode(part)) <= CONTROL_BYTES
            for datagram in codec.encode(members[-1], [part]):
                assert len(datagram) <= LIMIT


def test_a_change_names_only_newcomers() -> None:
    members = crowd(32)
    joined = [msgspec.structs.replace(members[0], incarnation=1)]
    left = [(members[0], "started again")]
    change = Change([*members[1:], *joined], joined, left, [7] * 32, members[1:], b"report", 2)
    value = changes.encode(change, members)
    assert changes.decode(value, members) == change
    assert len(value) < 400
    assert changes.decode(value, members[:-1]) is None


def test_a_welcome_names_each_member_once() -> None:
    members = crowd(6)
    welcome = Welcome(2, members, [0] * 6, [4, 5], [3, 1])
    assert welcome.newcomers() == members[4:]
    assert welcome.holders() == [members[3], members[1]]
    data = msgspec.msgpack.encode(welcome)
    assert all(data.count(member.name.encode()) == 1 for member in members)


def test_several_frames_of_one_source_come_together_though_they_are_mixed() -> None:
    frames = [frame for frame in worst(crowd(32)) if len(parts(frame)) > 1]
    assert len(frames) > 6
    mixed = [part for frame in frames[:8] for part in parts(frame)]
    Random(1).shuffle(mixed)
    puzzles, found = Puzzles(WholeFrame, 8), []
    for part in mixed:
        assert isinstance(part, Piece)
        data = puzzles.add(MemberId("p"), part)
        if data is not None:
            found.append(puzzles.whole(data, part.digest))
    assert sorted(map(repr, found)) == sorted(map(repr, frames[:8]))
    assert len(puzzles) == 0


# Messages


LONG: list[Annotation] = [
    Item("漢" * 256),
    KEnumeration(MAX_SEQ, (1 << 8 * MAX_BITMAP) - 1),
    Enumeration(tuple(MessageId(member, MAX_SEQ) for member in crowd(40))),
]


@pytest.mark.parametrize("annotation", LONG)
@pytest.mark.parametrize("head", [0, 400])
@pytest.mark.parametrize("size", [0, 300, FRAME_BYTES])
def test_whoever_may_exceed_a_datagram_is_measured(annotation: Annotation, head: int, size: int) -> None:
    data = Data(1023, MAX_SEQ, [bytes(size)], to_wire(annotation), bytes(head))
    frame = InView(MAX_SEQ, data)
    large = len(msgspec.msgpack.encode(frame)) > most_bytes(FRAME_BYTES)
    assert is_bulky(data, most_bytes(FRAME_BYTES)) or not large
    sent = parts(frame, most_bytes(FRAME_BYTES))
    assert (len(sent) > 1) == large
    assert sent == [frame] or put_together(sent) == frame


def test_a_plain_frame_is_not_measured() -> None:
    data = Data(3, 7, [bytes(300)] * 3, None, bytes(20))
    assert not is_bulky(data, most_bytes(FRAME_BYTES))
    assert len(msgspec.msgpack.encode(InView(7, data))) <= most_bytes(FRAME_BYTES)


def test_requests_and_notices_fit() -> None:
    settings = VsyncSettings(frame_bytes=FRAME_BYTES).stream()
    repairs = Repairs(0, 3, settings, Random(1))
    missing = [MAX_SEQ - 5000 + 2 * number for number in range(2000)]
    asked = repairs.ask(0, 1, missing, handful=1000)
    assert sum(len(request.spans) for _, request in asked) > 500
    frames: list[Request | Notice] = [request for _, request in asked]
    assert not is_wide(32)
    frames.append(Notice(1023, MAX_SEQ - 4096, bytes(MAX_BITMAP)))
    for frame in frames:
        assert len(msgspec.msgpack.encode(InView(MAX_SEQ, frame))) <= CONTROL_BYTES


class Reader(Node):
    """Keeps the annotations, too."""

    def __init__(self, lab: Lab, member: MemberId, given: VsyncSettings) -> None:
        self.notes: list[tuple[int, Annotation | None]] = []
        super().__init__(lab, member, given)

    def on_delivery(self, each: object) -> None:
        if isinstance(each, Batch):
            self.notes += [(len(one.payload), one.annotation) for one in each.messages()]
        super().on_delivery(each)  # type: ignore[arg-type]


def test_messages_with_long_annotations_fit_in_datagrams_and_arrive_whole() -> None:
    lab = Lab()
    sizes: list[int] = []
    codec = Codec("lab", [], LIMIT, FRAMES)

    def lost(_source: str, _dest: str, frame: Frame) -> bool:
        sizes.extend(map(len, codec.encode(crowd(1)[0], [frame])))
        return False

    lab.lost = lost
    nodes = [lab.add(name, kind=Reader, frame_bytes=FRAME_BYTES, order=Order.CAUSAL) for name in "pqr"]
    lab.run(SECOND)
    notes = [Item("漢" * 256), Item("é" * 256)]
    for note in notes:
        assert nodes[0].multicast(bytes(FRAME_BYTES - 1), annotation=note) == 1
    lab.run(SECOND)
    assert max(sizes) <= LIMIT
    for node in nodes:
        assert isinstance(node, Reader)
        assert node.notes == [(FRAME_BYTES - 1, note) for note in notes]


# Groups


def test_a_group_of_long_names_founds_itself_changes_and_lets_others_in() -> None:
    """With names of 60 bytes and an MTU of 1280 nobody heard of a view of six or more."""
    detector = DetectorSettings(
        heartbeat=250 * MILLISECOND, timeout_initial=SECOND, timeout_min=SECOND, timeout_max=2 * SECOND
    )
    lab = Lab()
    sizes: list[int] = []
    encode = msgspec.msgpack.encode

    def lost(_source: str, _dest: str, frame: Frame) -> bool:
        sizes.append(len(encode(frame)))
        return False

    lab.lost = lost
    names = [member.name for member in crowd(32)]
    given: dict[str, Any] = {
        "minimum": 17,
        "detector": detector,
        "order": Order.CAUSAL,
        "frame_bytes": FRAME_BYTES,
    }
    for name in names:
        lab.add(name, **given)
    lab.run(SECOND)
    assert {len(node.views[-1]) for node in lab.nodes.values()} == {32}
    for name in names[:5]:
        lab.nodes[name].leave("it is time " * 8)
    lab.run(3 * SECOND)
    assert {len(lab.nodes[name].views[-1]) for name in names[5:]} == {27}
    lab.add(names[0], 1, **{**given, "minimum": 0})
    lab.run(SECOND)
    assert {len(lab.nodes[name].views[-1]) for name in (names[0], *names[5:])} == {28}
    assert max(sizes) <= CONTROL_BYTES
