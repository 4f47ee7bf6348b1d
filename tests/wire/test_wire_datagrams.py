"""Datagrams: what goes in comes out, and whatever else comes in is refused without harm."""

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import Enumeration, Frame, Item, KEnumeration, MemberId, MessageId
from semcast.protocols.semantic.frames import (
    FRAMES,
    ChannelAck,
    ChannelData,
    Data,
    Gossip,
    Notice,
    Request,
    Round,
    Terms,
)
from semcast.wire import Codec, Datagram, Malformed, check_message, from_wire, to_wire
from semcast.wire.limits import MAX_BITMAP, MAX_IDS, MAX_ITEM, MAX_PAYLOAD, MAX_SEQ

P = MemberId("p")
Q = MemberId("q", 3)
CODEC = Codec("prices", [P, Q], limit=1400, frames=FRAMES)

seqs = st.integers(0, MAX_SEQ)
ranks = st.integers(0, 1023)
annotations = st.none() | st.one_of(
    st.builds(Item, st.text(min_size=1, max_size=20)),
    st.builds(
        Enumeration,
        st.lists(st.builds(MessageId, st.sampled_from([P, Q]), seqs), max_size=5).map(tuple),
    ),
    st.builds(KEnumeration, seqs, st.integers(0, (1 << 300) - 1), st.booleans()),
)
rounds = st.builds(Round, seqs, st.binary(max_size=4), st.lists(seqs, max_size=5), st.lists(seqs, max_size=5))
frames: st.SearchStrategy[Frame] = st.one_of(
    st.builds(
        Data,
        ranks,
        seqs,
        st.lists(st.binary(max_size=50), min_size=1, max_size=5),
        annotations.map(to_wire),
    ),
    st.builds(Request, ranks, st.lists(st.tuples(seqs, seqs), min_size=1, max_size=5)),
    st.builds(Notice, ranks, seqs, st.binary(min_size=1, max_size=40)),
    st.builds(
        Gossip,
        st.lists(seqs, max_size=5),
        rounds,
        st.builds(Terms, seqs, st.booleans(), seqs, seqs),
        st.none() | rounds,
    ),
    st.builds(
        ChannelData, seqs, seqs, st.lists(st.binary(max_size=50), max_size=2), annotations.map(to_wire)
    ),
    st.builds(ChannelAck, seqs, seqs),
)


@settings(deadline=None)
@given(st.lists(frames, max_size=30))
def test_frames_survive_the_trip(sent: list[Frame]) -> None:
    datagrams = CODEC.encode(Q, sent)
    received: list[Frame] = []
    for data in datagrams:
        decoded = CODEC.decode(data)
        assert isinstance(decoded, Datagram)
        assert decoded.source == Q
        received.extend(decoded.frames)
    assert received == sent


@settings(deadline=None)
@given(annotations)
def test_annotations_survive_the_trip(annotation: Item | Enumeration | KEnumeration | None) -> None:
    assert from_wire(to_wire(annotation)) == annotation


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_datagram_or_a_reason(data: bytes) -> None:
    assert isinstance(CODEC.decode(data), Datagram | Malformed)
    [honest] = CODEC.encode(P, [Request(0, [(1, 2)])])
    assert isinstance(CODEC.decode(honest[:9] + data), Datagram | Malformed)


@settings(max_examples=300, deadline=None)
@given(st.lists(frames, min_size=1, max_size=5), st.data())
def test_damaged_datagrams_never_raise(sent: list[Frame], data: st.DataObject) -> None:
    [datagram, *_] = CODEC.encode(P, sent)
    cut = data.draw(st.integers(0, len(datagram) - 1))
    assert isinstance(CODEC.decode(datagram[:cut]), Malformed)
    flipped = bytearray(datagram)
    flipped[data.draw(st.integers(0, len(flipped) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert isinstance(CODEC.decode(bytes(flipped)), Datagram | Malformed)


def test_the_reason_is_named() -> None:
    [datagram] = CODEC.encode(P, [Request(0, [(1, 2)])])
    assert CODEC.decode(b"") is Malformed.TRUNCATED
    assert CODEC.decode(datagram[:8]) is Malformed.TRUNCATED
    assert CODEC.decode(b"\x07" + datagram[1:]) is Malformed.VERSION
    assert CODEC.decode(datagram + b"x") is Malformed.BODY
    assert CODEC.decode(bytes(70_000)) is Malformed.OVERSIZED
    other_name = Codec("quotes", [P, Q], limit=1400, frames=FRAMES)
    other_members = Codec("prices", [P], limit=1400, frames=FRAMES)
    assert other_name.decode(datagram) is Malformed.GROUP
    assert other_members.decode(datagram) is Malformed.GROUP


@pytest.mark.parametrize("header", [b"\xdd\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xc6\xff\xff\xff\xff"])
def test_a_claimed_length_allocates_nothing(header: bytes) -> None:
    [honest] = CODEC.encode(P, [Request(0, [(1, 2)])])
    prefix = honest[: honest.index(b"\xdc")]
    bombs = [prefix + header, prefix + b"\xdc\x00\x01\x94\x01\x00\x01" + header]
    tracemalloc.start()
    for bomb in bombs:
        assert CODEC.decode(bomb) is Malformed.BODY
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_deep_nesting_is_refused() -> None:
    [honest] = CODEC.encode(P, [Request(0, [(1, 2)])])
    prefix = honest[: honest.index(b"\xdc")]
    assert CODEC.decode(prefix + b"\x91" * 60_000) is Malformed.BODY


def test_packing_fills_datagrams_and_keeps_the_order() -> None:
    sent = [Data(0, seq, [bytes(100)]) for seq in range(1, 101)]
    datagrams = CODEC.encode(P, sent)
    assert all(len(data) <= 1400 for data in datagrams)
    assert len(datagrams) == -(-100 // 12), "twelve of 107 bytes and their heads fit in 1400"
    decoded = [CODEC.decode(data) for data in datagrams]
    assert [frame for d in decoded if isinstance(d, Datagram) for frame in d.frames] == sent


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 1300, 1372, 1373, 1374, 1400, 5000, MAX_PAYLOAD])
def test_payloads_of_every_size_around_the_boundaries(size: int) -> None:
    small = Data(0, 2, [b"x"])
    datagrams = CODEC.encode(P, [Data(0, 1, [bytes(size)]), small])
    decoded = [CODEC.decode(data) for data in datagrams]
    assert [f for d in decoded if isinstance(d, Datagram) for f in d.frames] == [
        Data(0, 1, [bytes(size)]),
        small,
    ]


@pytest.mark.parametrize(
    ("payload", "annotation", "says"),
    [
        (bytes(MAX_PAYLOAD + 1), None, "payload of"),
        (b"", Item(""), "item of 0 characters"),
        (b"", Item("x" * (MAX_ITEM + 1)), "item of"),
        (b"", Enumeration((MessageId(P, 1),) * (MAX_IDS + 1)), "enumeration of"),
        (b"", Item("\ud800"), "not text"),
        (b"", Enumeration((MessageId(P, 1 << 70),)), "sequence number"),
        (b"", Enumeration((MessageId(P, 0),)), "sequence number"),
        (bytes(MAX_PAYLOAD), Enumeration((MessageId(P, 1),) * MAX_IDS), "payload and enumeration"),
        (b"", KEnumeration(1, 1 << (8 * MAX_BITMAP)), "bitmap"),
        (b"", KEnumeration(1, -1), "bitmap"),
        (b"", KEnumeration(-1, 1), "base"),
    ],
)
def test_what_no_peer_would_accept_is_refused_at_the_sender(
    payload: bytes, annotation: Item | Enumeration | KEnumeration | None, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        check_message(payload, annotation)


def test_the_largest_messages_that_are_accepted_can_be_received() -> None:
    names = Enumeration(tuple(MessageId(MemberId("m" * 20, 1 << 40), MAX_SEQ) for _ in range(MAX_IDS)))
    for payload, annotation in (
        (bytes(MAX_PAYLOAD), None),
        (bytes(MAX_PAYLOAD), Item("\U0001f600" * MAX_ITEM)),
        (bytes(MAX_PAYLOAD), KEnumeration(MAX_SEQ, (1 << (8 * MAX_BITMAP)) - 1)),
        (bytes(20_000), names),
    ):
        check_message(payload, annotation)
        [datagram] = CODEC.encode(P, [Data(1023, MAX_SEQ, [payload], to_wire(annotation))])
        assert isinstance(CODEC.decode(datagram), Datagram)


def test_the_layout_is_what_the_docs_say() -> None:
    [datagram] = CODEC.encode(MemberId("p"), [ChannelAck(7, 3)])
    version, group = struct.unpack_from(">B8s", datagram)
    assert version == 1
    assert len(group) == 8
    assert datagram[9:] == b"\x92" + b"\x92\xa1p\x00" + b"\xdc\x00\x01" + b"\x93\x06\x07\x03"
