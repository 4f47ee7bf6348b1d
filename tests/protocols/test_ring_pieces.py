"""Control frames fit in a datagram of any network, whatever the names and numbers of members."""

from itertools import permutations
from random import Random

import msgspec
import pytest
from tests.protocols.ringlab import RingLab

from semcast.core import Batch, Enumeration, Frame, Item, MemberId, MessageId, Outbox
from semcast.lab import Application, Keeper
from semcast.protocols.pieces import Piece
from semcast.protocols.ring import Ring, RingSettings
from semcast.protocols.ring.frames import (
    FRAMES,
    NAME_BYTES,
    RTR_SPANS,
    AttemptJoin,
    ConfId,
    ConfRecord,
    FormRefused,
    FormToken,
    Join,
    Leave,
    NameTaken,
    Packet,
    Part,
    Presence,
    RecoveryToken,
    Token,
    TokenAck,
    TokenWanted,
)
from semcast.protocols.ring.pieces import CONTROL_BYTES, MOST_PIECES, Large, Puzzles, in_pieces, multicast
from semcast.sim.mutants.ring.pieces import _Mixed
from semcast.wire import Codec
from semcast.wire.limits import MAX_FRAME_PIECES, MAX_HOLES, MAX_SEQ
from semcast.wire.sealing import OVERHEAD

LIMIT = 1280 - 48 - OVERHEAD
"""What the smallest MTU leaves of a datagram: IPv6, UDP and the seal come on top."""
TERMS = RingSettings().terms()


def crowd(size: int, fill: str = "x") -> list[MemberId]:
    """Members with names as long as they may be, in bytes, and as high numbers."""
    names = [f"{number:04}" for number in range(size)]
    return [MemberId(name + fill * ((NAME_BYTES - 4) // len(fill.encode())), MAX_SEQ) for name in names]


LACKING = Random(1).randbytes(64)


def form_token(members: list[MemberId], number: int = 1) -> FormToken:
    """As it is when all were alone, and each lacks as much as can be."""
    memb_list = [(member, ConfId(MAX_SEQ - 1, member)) for member in members]
    records = [
        ConfRecord(conf, [member], MAX_SEQ, MAX_SEQ - MAX_HOLES, LACKING) for member, conf in memb_list
    ]
    return FormToken(ConfId(MAX_SEQ, members[0]), number, 1, members, memb_list, records)


def worst(members: list[MemberId]) -> list[Frame]:
    """One of each control frame, as large as the stack ever makes it."""
    conf = ConfId(MAX_SEQ, members[0])
    spans = [(MAX_SEQ - 2 * number, MAX_SEQ - 2 * number) for number in range(RTR_SPANS)]
    rtr = [(ConfId(MAX_SEQ - 1, member), spans) for member in members]
    large: list[Large] = [
        form_token(members),
        RecoveryToken(conf, MAX_SEQ, bytes(128), rtr),
        Join(conf, MAX_SEQ, True, members, members[1:], TERMS),
    ]
    return [
        *(frame for each in large for frame in in_pieces(each)),
        Token(conf, MAX_SEQ, MAX_SEQ, MAX_SEQ, 1023, spans, MAX_SEQ, 1023),
        AttemptJoin(conf, MAX_SEQ, True, TERMS),
        Presence(conf, TERMS),
        TokenAck(conf, MAX_SEQ),
        TokenWanted(conf),
        Leave(conf),
        FormRefused(conf, MAX_SEQ),
        NameTaken(members[-1], True),
    ]


@pytest.mark.parametrize("fill", ["x", "é", "漢"])
@pytest.mark.parametrize("size", [1, 3, 11, 22, 32, 64])
def test_no_control_frame_is_larger_than_any_network_carries(size: int, fill: str) -> None:
    members = crowd(size, fill)
    codec = Codec("g" * 100, [], LIMIT, FRAMES)
    frames = worst(members)
    assert {type(frame) for frame in frames} | {FormToken, Join, RecoveryToken, Piece} >= {*FRAMES[1:]}
    for frame in frames:
        assert len(msgspec.msgpack.encode(frame)) <= CONTROL_BYTES
        for datagram in codec.encode(members[-1], [frame]):
            assert len(datagram) <= LIMIT


def test_the_longest_list_of_requests_fits_on_a_token() -> None:
    """What `RingOrder.requests` makes of many holes."""
    settings = RingSettings(window=512)
    ring = Ring(MemberId("x" * NAME_BYTES), settings, Random(1), Outbox())
    ring.order.highest_seq = 2000
    asked = ring.order.requests(
        [(2 * each, 2 * each) for each in range(1, 900)], set(), 2000, accelerated=False
    )
    token = Token(ConfId(MAX_SEQ, ring.me), MAX_SEQ, MAX_SEQ, MAX_SEQ, 1023, asked, MAX_SEQ, 1023)
    assert len(msgspec.msgpack.encode(token)) <= CONTROL_BYTES


def test_names_are_bounded() -> None:
    with pytest.raises(ValueError, match="more than 64 bytes"):
        Ring(MemberId("é" * 33), RingSettings(), Random(1), Outbox())


def wholes(puzzles: Puzzles, source: MemberId, pieces: list[Frame]) -> list[Frame | None]:
    found = []
    for piece in pieces:
        assert isinstance(piece, Piece)
        data = puzzles.add(source, piece)
        if data is not None:
            found.append(puzzles.whole(data, piece.digest))
    return found


@pytest.mark.parametrize("size", [11, 22, 32])
def test_pieces_come_together_in_any_order_and_more_than_once(size: int) -> None:
    token = form_token(crowd(size))
    pieces = in_pieces(token)
    assert len(pieces) > 1
    rng = Random(size)
    for _ in range(20):
        shuffled = pieces + pieces[: len(pieces) // 2]
        rng.shuffle(shuffled)
        assert wholes(Puzzles(), token.join_list[0], shuffled)[:1] == [token]


def test_each_id_is_there_once() -> None:
    members = crowd(32)
    data = b"".join([piece.data for piece in in_pieces(form_token(members)) if isinstance(piece, Piece)])
    assert all(data.count(member.name.encode()) == 1 for member in members)


def test_pieces_of_two_attempts_never_make_a_third() -> None:
    """And a mutant that lets them does."""
    members = crowd(20)
    first, second = form_token(members, 7), form_token(members, 8)
    last = msgspec.structs.replace(second.confs_list[-1], aru=MAX_SEQ - MAX_HOLES + 1)
    second = msgspec.structs.replace(second, confs_list=[*second.confs_list[:-1], last])
    parts = [in_pieces(first), in_pieces(second)]
    assert len(parts[0]) == len(parts[1]) > 1
    made: list[Frame | None] = []
    mixed: list[Frame | None] = []
    for cut in range(1, len(parts[0])):
        for one, other in permutations(parts):
            sent = [*one[:cut], *other[cut:], *other[:cut]]
            made += wholes(Puzzles(), members[0], sent)
            mixed += wholes(_Mixed(), members[0], sent)
    assert made
    assert all(each in (first, second) for each in made)
    assert any(each not in (first, second) for each in mixed)


def test_a_piece_is_never_the_whole() -> None:
    pieces = in_pieces(form_token(crowd(32)))
    assert wholes(Puzzles(), MemberId("a"), [*pieces[:-1], *pieces[:-1]]) == []


def test_pieces_that_wait_are_bounded() -> None:
    puzzles = Puzzles()
    for number, member in enumerate(crowd(64)):
        for index in range(MAX_FRAME_PIECES - 1):
            piece = Piece(number.to_bytes(8, "big"), index, MAX_FRAME_PIECES, b"x")
            assert puzzles.add(member, piece) is None
        assert len(puzzles) <= MOST_PIECES


NO_FRAMES = [b"", b"\x00", b"\x92\xc4\x01\x90\xc0", b"\x92\xc4\x01\x90\x91\xd5\x01\xff\xff"]


@pytest.mark.parametrize("data", NO_FRAMES)
def test_what_is_no_frame_is_none(data: bytes) -> None:
    assert _Mixed().whole(data, b"") is None


# Packets


class KeeperLab(RingLab):
    """Its applications keep what they are given."""

    def application(self, name: str) -> Application:
        return Keeper()


@pytest.mark.parametrize("payload", [0, 890, 3000])
def test_a_message_with_a_long_annotation_fits_in_datagrams_and_arrives_whole(payload: int) -> None:
    """It went out in one datagram of 5 kB, which no path of an MTU of 1500 carries."""
    lab = KeeperLab("pq", RingSettings(packet_bytes=900))
    codec = Codec("lab", [], LIMIT, FRAMES)
    sizes: list[int] = []

    def carries(_source: str, _dest: str, frame: Frame) -> bool:
        sizes.extend(map(len, codec.encode(crowd(1)[0], [frame])))
        return True

    lab.carries = carries
    lab.start()
    lab.run_for(500)
    note = Enumeration(tuple(MessageId(member, 7) for member in crowd(60)))
    assert lab.seats["p"].multicast(bytes(payload), annotation=note) == 1
    assert lab.seats["p"].multicast(b"two", annotation=Item("y" * 256)) == 1
    assert lab.seats["p"].multicast(bytes(899), annotation=Item("\u20ac" * 256)) == 1
    lab.run_for(500)
    assert max(sizes) <= LIMIT
    application = lab.seats["q"].application
    assert isinstance(application, Keeper)
    heard = [each for each in application.taken if isinstance(each, Batch)]
    found = [(len(one.payload), one.annotation) for batch in heard for one in batch.messages()]
    assert found == [(payload, note), (3, Item("y" * 256)), (899, Item("\u20ac" * 256))]


def test_a_packet_that_fits_is_sent_as_it_is() -> None:
    out = Outbox()
    conf = ConfId(3, MemberId("p"))
    packets = [
        Packet(conf, 1, 0, False, [Part(1, [bytes(900)])]),
        Packet(conf, 2, 0, False, [Part(2, [bytes(900)], None, 0, ["x" * 100])]),
        Packet(conf, 3, 0, False, [Part(3, [bytes(300), bytes(300)], None, 0, ["x" * 200, "y" * 200])]),
    ]
    for packet in packets:
        multicast(out, packet, 900)
    assert [frame for _, frame in out.sends] == packets
