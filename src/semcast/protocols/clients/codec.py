"""Frames as bytes, and a stream of bytes as frames. Nothing that arrives is trusted."""

import enum
from collections.abc import Iterable

import msgspec

from semcast.protocols.clients.frames import Deliver, DeliverAny, Reply, Request
from semcast.protocols.lightweight.written import Written, list_of

HEAD = 4
"""Bytes of a length, the highest first."""


class Malformed(ValueError):  # noqa: N818 (it says what arrived)
    """Bytes that are no frame."""


class Format(enum.Enum):
    """How frames are written."""

    MSGPACK = "msgpack"
    JSON = "json"


def _as_it_is(run: object) -> msgspec.Raw:
    """A run of messages that nobody took apart."""
    if isinstance(run, Written):
        return run.raw
    raise TypeError(f"{type(run).__name__} is no part of a frame")


_encode_msgpack = msgspec.msgpack.Encoder(enc_hook=_as_it_is).encode
_encode_json = msgspec.json.Encoder(enc_hook=list_of).encode
_requests: "msgspec.msgpack.Decoder[Request]" = msgspec.msgpack.Decoder(Request)
_requests_json: "msgspec.json.Decoder[Request]" = msgspec.json.Decoder(Request)
_replies: "msgspec.msgpack.Decoder[Reply]" = msgspec.msgpack.Decoder(Reply)
_replies_json: "msgspec.json.Decoder[Reply]" = msgspec.json.Decoder(Reply)
_runs: "msgspec.msgpack.Decoder[DeliverAny]" = msgspec.msgpack.Decoder(DeliverAny)


def encode(frame: Request | Reply, form: Format = Format.MSGPACK) -> bytes:
    """The body of a frame."""
    return _encode_msgpack(frame) if form is Format.MSGPACK else _encode_json(frame)


def decode_request(body: bytes, form: Format = Format.MSGPACK) -> Request:
    """What a client says. Raises Malformed."""
    try:
        return _requests.decode(body) if form is Format.MSGPACK else _requests_json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(str(error)[:200]) from None


def decode_reply(body: bytes, form: Format = Format.MSGPACK) -> Reply:
    """What a daemon says. Raises Malformed."""
    try:
        return _replies.decode(body) if form is Format.MSGPACK else _replies_json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        broken = _broken_run(body) if form is Format.MSGPACK else None
        if broken is None:
            raise Malformed(str(error)[:200]) from None
        return broken


def _broken_run(body: bytes) -> Deliver | None:
    """A run that another daemon wrote, and wrote wrongly; the client's own has passed it on as it was."""
    try:
        said = _runs.decode(body)
        run = Written(said.payloads).apart()
    except (ValueError, RecursionError):
        return None
    return Deliver(said.groups, said.sender, said.first, said.position, run, said.items)


def framed(body: bytes) -> bytes:
    r"""As it goes into a stream.

    >>> framed(b"abc")
    b'\x00\x00\x00\x03abc'
    """
    return len(body).to_bytes(HEAD, "big") + body


def all_framed(bodies: Iterable[bytes]) -> bytes:
    r"""Several, one behind the other.

    >>> all_framed([b"abc", b"d"])
    b'\x00\x00\x00\x03abc\x00\x00\x00\x01d'
    """
    pieces: list[bytes] = []
    for body in bodies:
        pieces += len(body).to_bytes(HEAD, "big"), body
    return b"".join(pieces)


class Stream:
    """Finds the frames in a stream.

    >>> stream = Stream(100)
    >>> stream.feed(framed(b"abc") + framed(b"de")[:5]), stream.feed(b"e")
    ([b'abc'], [b'de'])
    """

    def __init__(self, most: int) -> None:
        self.most = most
        """Bytes of a frame."""
        self._pieces: list[bytes] = []  # of the frame that is not complete
        self._have = 0  # bytes of these
        self._need = HEAD  # bytes without which nothing more is complete

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete with these bytes. Raises Malformed where one is too long."""
        if self._pieces:
            self._pieces.append(data)
            self._have += len(data)
            if self._have < self._need:
                return []
            data = b"".join(self._pieces)
            self._pieces = []
        found = []
        start, end, need = 0, len(data), HEAD
        while end - start >= HEAD:
            size = int.from_bytes(data[start : start + HEAD], "big")
            if size > self.most:
                raise Malformed(f"a frame of {size} bytes: at most {self.most}")
            need = HEAD + size
            if end - start < need:
                break
            found.append(data[start + HEAD : start + need])
            start, need = start + need, HEAD
        if start < end:
            self._pieces = [data[start:]]
            self._have, self._need = end - start, need
        return found
