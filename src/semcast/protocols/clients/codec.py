"""Frames as bytes, and a stream of bytes as frames. Nothing that arrives is trusted."""

import enum

import msgspec

from semcast.protocols.clients.frames import Reply, Request

HEAD = 4
"""Bytes of a length, the highest first."""


class Malformed(ValueError):  # noqa: N818 (it says what arrived)
    """Bytes that are no frame."""


class Format(enum.Enum):
    """How frames are written."""

    MSGPACK = "msgpack"
    JSON = "json"


_encode_msgpack = msgspec.msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder().encode
_requests: "msgspec.msgpack.Decoder[Request]" = msgspec.msgpack.Decoder(Request)
_requests_json: "msgspec.json.Decoder[Request]" = msgspec.json.Decoder(Request)
_replies: "msgspec.msgpack.Decoder[Reply]" = msgspec.msgpack.Decoder(Reply)
_replies_json: "msgspec.json.Decoder[Reply]" = msgspec.json.Decoder(Reply)


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
        raise Malformed(str(error)[:200]) from None


def framed(body: bytes) -> bytes:
    r"""As it goes into a stream.

    >>> framed(b"abc")
    b'\x00\x00\x00\x03abc'
    """
    return len(body).to_bytes(HEAD, "big") + body


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
