"""Frames within any MTU from 1280 bytes up: what is larger than a datagram may be travels in pieces.

Each id of a member stands in the whole once and is an index elsewhere, and every piece names the whole by a
digest, so that pieces of two frames never make a third and a piece is never taken for the whole.
"""

import hashlib
from typing import Annotated, Any

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Dest, Frame, Outbox
from semcast.wire.limits import MAX_FRAME_PIECES

CONTROL_BYTES = 1080
"""Of one control frame, at most: 1280 less IPv6 and UDP, the seal, and the longest name of who sends it."""
PIECE_BYTES = 1040
"""Of them, those that a piece carries."""
MOST_PIECES = 4 * MAX_FRAME_PIECES
"""Pieces that wait for their others at one member, from all sources together."""

_ID = 1
_encoder = msgspec.msgpack.Encoder()
_ids = msgspec.msgpack.Decoder(list[MemberId])


class Piece(Frame, frozen=True, array_like=True, tag=26, gc=False):
    """One of `count` pieces of a frame that is too large for a datagram; `digest` is that of the whole."""

    digest: Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]
    index: Annotated[int, msgspec.Meta(ge=0, lt=MAX_FRAME_PIECES)]
    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_FRAME_PIECES)]
    data: Annotated[bytes, msgspec.Meta(min_length=1, max_length=2048)]

    def __post_init__(self) -> None:
        if self.index >= self.count:
            raise ValueError(f"piece {self.index} of {self.count}")


def in_pieces(frame: Frame, most: int = CONTROL_BYTES) -> list[Frame]:
    """The frame if it has no more bytes than that, else its pieces."""
    if len(_encoder.encode(frame)) <= most:
        return [frame]
    ids: dict[tuple[str, int], int] = {}
    return _cut(_indexed(msgspec.to_builtins(frame, builtin_types=(bytes,)), ids), list(ids))


def in_plain_pieces(frame: Frame, most: int) -> list[Frame]:
    """The same, where ids are left as they are."""
    if len(_encoder.encode(frame)) <= most:
        return [frame]
    return _cut(msgspec.to_builtins(frame, builtin_types=(bytes,)), [])


def _cut(body: Any, ids: list[tuple[str, int]]) -> list[Frame]:
    data = _encoder.encode([_encoder.encode(ids), body])
    cuts = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
    digest = _digest(data)
    return [Piece(digest, index, len(cuts), cut) for index, cut in enumerate(cuts)]


class Courier:
    """Sends control frames, in pieces where that must be.

    Args:
        out: where frames go.
    """

    def __init__(self, out: Outbox) -> None:
        self._out = out

    def send(self, dest: MemberId, frame: Frame) -> None:
        """To one member."""
        for part in in_pieces(frame):
            self._out.send(dest, part)

    def multicast(self, frame: Frame) -> None:
        """To every other member."""
        for part in in_pieces(frame):
            self._out.multicast(part)

    def pass_on(self, dest: Dest, frame: Frame, most: int) -> None:
        """To whom it is for; whole, if it has no more than `most` bytes."""
        for part in in_pieces(frame, most):
            self._out.sends.append((dest, part))

    def announce(self, frame: Frame) -> None:
        """To every other member, and to those who are not known yet."""
        for part in in_pieces(frame):
            self._out.announce(part)


class _Begun:
    """A frame of which only some pieces have come."""

    __slots__ = ("count", "digest", "pieces")

    def __init__(self, digest: bytes, count: int) -> None:
        self.digest = digest
        self.count = count
        self.pieces: dict[int, bytes] = {}


class Puzzles:
    """Frames of which only some pieces have come: of each source, the last that it began to send.

    Args:
        kinds: the types of frames that travel in pieces, as a union.
        at_once: frames that one source may send at the same time.
    """

    def __init__(self, kinds: Any, at_once: int = 1) -> None:
        self._kinds = kinds
        self._at_once = at_once
        self._begun: dict[MemberId, list[_Begun]] = {}

    def __len__(self) -> int:
        return sum(map(_count, self._begun.values()))

    def add(self, source: MemberId, piece: Piece) -> bytes | None:
        """Keep a piece; the whole, if this was the last that was missing."""
        begun = self._begun.pop(source, [])
        found = next((each for each in begun if self._belongs(piece, each.digest, each.count)), None)
        if found is None:
            found = _Begun(piece.digest, piece.count)
            begun = [*begun, found][-self._at_once :]
        found.pieces[piece.index] = piece.data
        whole = None
        if self._complete(piece, found.pieces):
            whole = b"".join([found.pieces[index] for index in sorted(found.pieces)])
            begun.remove(found)
        while self._begun and len(self) + _count(begun) > MOST_PIECES:
            del self._begun[next(iter(self._begun))]
        if begun:
            self._begun[source] = begun
        return whole

    def _belongs(self, piece: Piece, digest: bytes, count: int) -> bool:
        """Whether it is one of those that are here."""
        return piece.digest == digest and piece.count == count

    def _complete(self, piece: Piece, pieces: dict[int, bytes]) -> bool:
        return len(pieces) == piece.count

    def whole(self, data: bytes, digest: bytes) -> Frame | None:
        """The frame whose pieces these bytes were; None if it is none."""
        if not self._genuine(data, digest):
            return None
        try:
            table, body = msgspec.msgpack.decode(data, type=tuple[bytes, Any])
            ids = _ids.decode(table)
            frame: Frame = msgspec.convert(_named(body, ids), self._kinds)
        except (msgspec.MsgspecError, ValueError, IndexError, RecursionError):
            return None
        return frame

    def _genuine(self, data: bytes, digest: bytes) -> bool:
        return _digest(data) == digest


def _count(begun: list[_Begun]) -> int:
    return sum([len(each.pieces) for each in begun])


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()


def _indexed(value: Any, ids: dict[tuple[str, int], int]) -> Any:
    """The same with an index for each id: what is a name and a number."""
    if not isinstance(value, list | tuple):
        return value
    if len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int):
        index = ids.setdefault((value[0], value[1]), len(ids))
        return msgspec.msgpack.Ext(_ID, index.to_bytes(2, "big"))
    return [_indexed(each, ids) for each in value]


def _named(value: Any, ids: list[MemberId]) -> Any:
    if isinstance(value, msgspec.msgpack.Ext):
        member = ids[int.from_bytes(bytes(value.data), "big")]
        return [member.name, member.incarnation]
    if isinstance(value, list):
        return [_named(each, ids) for each in value]
    return value
