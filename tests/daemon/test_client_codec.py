"""Frames of clients: what arrives is bounded, and never more than an error."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcast.core import MemberId
from semcast.protocols.clients import frames
from semcast.protocols.clients.codec import (
    Format,
    Malformed,
    Stream,
    decode_reply,
    decode_request,
    encode,
    framed,
)
from semcast.protocols.lightweight.ids import Epoch, Position, ViewId
from semcast.wire import websocket
from semcast.wire.websocket import Messages, WebSocketError

A = MemberId("a@d", 1_700_000_000_000)
EPOCH = Epoch(3, False, MemberId("d", 7))
REQUESTS: list[frames.Request] = [
    frames.Hello(1, "a", "secret", frames.Resume("token", 7), "leave", 12),
    frames.Join(1, "g", "vs"),
    frames.Leave(2, "g"),
    frames.Cast(3, ("g", "h"), "safe", [b"", b"\x00\xff"], ["x", ""]),
    frames.Private(5, A, b"p"),
    frames.Taken(9),
    frames.Ready("g", ViewId(EPOCH, 4)),
    frames.Ping(1),
    frames.Bye(),
    frames.Ask(1, "groups", "g"),
]
REPLIES: list[frames.Reply] = [
    frames.Welcome(1, A, A, "d", (A,), 10, 20, 30, "t", 4, 5.0),
    frames.Done(1),
    frames.Error(None, "code", "text"),
    frames.Deliver(("g",), A, 3, Position(EPOCH, 9), [b"x"], ["i"]),
    frames.View("g", ViewId(EPOCH, 1), (A,), (A,), (), (), "join", True, (A,)),
    frames.Transitional("g", ViewId(EPOCH, 1), (A,)),
    frames.Placed(4),
    frames.Credits(1, 2),
    frames.Block("g", ViewId(EPOCH, 1)),
    frames.Purged(("g",), A, 1, 9, 4, 12),
    frames.Left("why"),
    frames.OutOf("g"),
    frames.Undeliverable(3, A),
    frames.DeliverPrivate(A, 3, Position(EPOCH, 9), b"x"),
    frames.Answer(1, "{}"),
]


@pytest.mark.parametrize("form", Format)
def test_frames_come_back_as_they_were(form: Format) -> None:
    assert [decode_request(encode(each, form), form) for each in REQUESTS] == REQUESTS
    assert [decode_reply(encode(each, form), form) for each in REPLIES] == REPLIES


def test_newer_clients_may_say_more() -> None:
    assert decode_request(b"\x94\x13\x01\x02\xa1x") == frames.Ping(1)


@pytest.mark.parametrize("form", Format)
@given(data=st.binary(max_size=300), seed=st.integers(0, 1 << 30))
def test_garbage_is_malformed_and_nothing_else(form: Format, data: bytes, seed: int) -> None:
    rng = Random(seed)
    whole = bytearray(encode(rng.choice(REQUESTS), form))
    for _ in range(rng.randint(1, 4)):
        whole[rng.randrange(len(whole))] = rng.randrange(256)
    for body in (data, bytes(whole), bytes(whole[: rng.randrange(len(whole))])):
        try:
            request = decode_request(body, form)
        except Malformed:
            continue
        assert decode_request(encode(request, form), form) == request


def test_deep_nesting_is_malformed() -> None:
    with pytest.raises(Malformed):
        decode_request(b"\x91" * 100_000)
    with pytest.raises(Malformed):
        decode_request(b"[" * 100_000, Format.JSON)


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 9), max_size=60))
def test_a_stream_is_cut_anywhere(bodies: list[bytes], cuts: list[int]) -> None:
    data, found, stream = b"".join(map(framed, bodies)), [], Stream(40)
    for cut in cuts:
        found += stream.feed(data[:cut])
        data = data[cut:]
    assert found + stream.feed(data) == bodies


def test_a_long_frame_is_refused_before_it_came() -> None:
    with pytest.raises(Malformed, match="of 41 bytes: at most 40"):
        Stream(40).feed(framed(bytes(41))[:4])


# WebSockets


def masked(kind: int, body: bytes, *, last: bool = True, mask: bytes = b"abcd") -> bytes:
    """A frame of a client."""
    size = len(body)
    head = bytes([(0x80 if last else 0) | kind])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += bytes([0x80 | 126]) + size.to_bytes(2, "big")
    else:
        head += bytes([0x80 | 127]) + size.to_bytes(8, "big")
    return head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(body))


def test_the_example_of_the_rfc() -> None:
    """RFC 6455, 1.3."""
    request = websocket.parse_request(
        b"GET /chat HTTP/1.1\r\nHost: server\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: chat, superchat\r\n"
        b"Sec-WebSocket-Version: 13\r\n\r\n"
    )
    assert request.upgrades
    assert websocket.offered(request) == ["chat", "superchat"]
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in websocket.accept(request, "chat")
    with pytest.raises(WebSocketError):
        websocket.accept(websocket.parse_request(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=5), st.lists(st.integers(1, 50), max_size=40))
def test_messages_come_in_fragments_with_pings_between(parts: list[bytes], cuts: list[int]) -> None:
    data = b""
    for place, part in enumerate(parts):
        data += masked(0 if place else websocket.BINARY, part, last=place == len(parts) - 1)
        data += masked(websocket.PING, b"?")
    messages, found = Messages(2000), []
    for cut in cuts:
        found += messages.feed(data[:cut])
        data = data[cut:]
    found += messages.feed(data)
    assert [body for kind, body in found if kind == websocket.BINARY] == [b"".join(parts)]
    assert [body for kind, body in found if kind == websocket.PING] == [b"?"] * len(parts)


def read_in(pieces: list[bytes]) -> tuple[list[tuple[int, bytes]], int | None]:
    """The messages in pieces of a stream, and the code of the error that ended it, if one did."""
    messages, found = Messages(100), []
    for piece in pieces:
        try:
            found += messages.feed(piece)
        except WebSocketError as error:
            return found, error.code
    return found, None


NEARLY_FRAMES = st.lists(
    st.builds(masked, st.integers(0, 15), st.binary(max_size=130), last=st.booleans()), max_size=4
).map(b"".join)


@given(st.one_of(st.binary(max_size=200), st.builds(bytes.__add__, NEARLY_FRAMES, st.binary(max_size=9))))
def test_garbage_in_a_websocket_is_an_error_and_nothing_else(data: bytes) -> None:
    """One of the protocol's errors; what is no error is bounded, and the same however it arrives."""
    found, code = read_in([data])
    slowly, same_code = read_in([data[place : place + 1] for place in range(len(data))])
    assert code == same_code
    assert code in (None, 1002, 1009)
    assert slowly == found or code is not None
    assert {kind for kind, _ in slowly} <= {1, 2, 8, 9, 10}
    assert all(len(body) <= 100 or (kind >= 8 and len(body) <= 125) for kind, body in slowly)
    if len(data) >= 2 and (data[0] & 0x70 or not data[1] & 0x80):
        assert (slowly, code) == ([], 1002), "reserved bits, or not masked"


@given(
    st.one_of(st.binary(max_size=200), st.binary(max_size=40).map(lambda more: b"GET /a HTTP/1.1\r\n" + more))
)
def test_garbage_in_a_request_of_http_is_an_error_and_nothing_else(data: bytes) -> None:
    request, code = None, None
    try:
        request = websocket.parse_request(data)
    except WebSocketError as error:
        code = error.code
    assert code == (1002 if request is None else None)
    if request is not None:
        first = data.split(b"\r\n")[0].decode("ascii").split(" ")
        assert (first[0], first[1].split("?")[0], first[2]) == (request.method, request.path, "HTTP/1.1")
        assert all(name == name.strip().lower() and name for name in request.headers)


@pytest.mark.parametrize(
    "data",
    [
        b"\x82\x01x",  # not masked
        masked(websocket.BINARY, bytes(101)),  # too long
        masked(websocket.BINARY, bytes(60), last=False) + masked(0, bytes(60)),
        masked(0, b"x"),  # goes on with nothing
        masked(websocket.PING, bytes(126)),
        masked(websocket.TEXT, b"x", last=False) + masked(websocket.TEXT, b"y"),
    ],
)
def test_what_a_websocket_may_not_say(data: bytes) -> None:
    with pytest.raises(WebSocketError):
        Messages(100).feed(data)
