"""Frames within any MTU from 1280 bytes up (a deviation: in the paper each is one datagram).

A Form token, a recovery token or a Join can be larger than a datagram may be. Then it travels in pieces: each
id of a member stands in it once and is an index elsewhere, and every piece names the whole by a digest, so
that pieces of two frames never make a third and a piece is never taken for the whole. So does a packet with
one message whose annotation leaves no room for it: an enumeration of long names may exceed any packet.
"""

import hashlib
from typing import Any

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame, Outbox
from semcast.protocols.ring.frames import FormToken, Join, Packet, Piece, RecoveryToken
from semcast.wire.limits import MAX_FRAME_PIECES

CONTROL_BYTES = 1080
"""Of one control frame, at most: 1280 less IPv6 and UDP, the seal, and the longest name of who sends it."""
PIECE_BYTES = 1040
"""Of them, those that a piece carries."""
MOST_PIECES = 4 * MAX_FRAME_PIECES
"""Pieces that wait for their others at one member, from all sources together."""

Large = FormToken | RecoveryToken | Join
_ID = 1
_encoder = msgspec.msgpack.Encoder()
_ids = msgspec.msgpack.Decoder(list[MemberId])


def in_pieces(frame: Large) -> list[Frame]:
    """The frame if it is small enough, else its pieces."""
    if len(_encoder.encode(frame)) <= CONTROL_BYTES:
        return [frame]
    ids: dict[tuple[str, int], int] = {}
    return _cut(_indexed(msgspec.to_builtins(frame, builtin_types=(bytes,)), ids), list(ids))


def multicast(out: Outbox, packet: Packet, packet_bytes: int) -> None:
    """Multicast a packet: as it is, if it has no more than a fourth beyond the bytes that it should have."""
    part = packet.parts[0]
    if (part.annotation is None and part.items is None) or len(packet.parts) + len(part.payloads) > 2:
        out.multicast(packet)  # it was filled with what fits
    elif len(_encoder.encode(packet)) <= max(CONTROL_BYTES, packet_bytes * 5 // 4):
        out.multicast(packet)
    else:
        for piece in _cut(msgspec.to_builtins(packet, builtin_types=(bytes,)), []):
            out.multicast(piece)


def _cut(body: Any, ids: list[tuple[str, int]]) -> list[Frame]:
    data = _encoder.encode([_encoder.encode(ids), body])
    cuts = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
    digest = _digest(data)
    return [Piece(digest, index, len(cuts), cut) for index, cut in enumerate(cuts)]


class Puzzles:
    """Frames of which only some pieces have come: one for each source, the last it began to send."""

    def __init__(self) -> None:
        self._begun: dict[MemberId, tuple[bytes, int, dict[int, bytes]]] = {}

    def __len__(self) -> int:
        return sum([len(pieces) for _, _, pieces in self._begun.values()])

    def add(self, source: MemberId, piece: Piece) -> bytes | None:
        """Keep a piece; the whole, if this was the last that was missing."""
        digest, count, pieces = self._begun.get(source) or (b"", 0, {})
        if not self._belongs(piece, digest, count):
            count, pieces = piece.count, {}
        self._begun.pop(source, None)
        pieces[piece.index] = piece.data
        if self._complete(piece, pieces):
            return b"".join([pieces[index] for index in sorted(pieces)])
        while self._begun and len(self) + len(pieces) > MOST_PIECES:
            del self._begun[next(iter(self._begun))]
        self._begun[source] = (piece.digest, count, pieces)
        return None

    def _belongs(self, piece: Piece, digest: bytes, count: int) -> bool:
        """Whether it is one of those that are here."""
        return piece.digest == digest and piece.count == count

    def _complete(self, piece: Piece, pieces: dict[int, bytes]) -> bool:
        return len(pieces) == piece.count

    def whole(self, data: bytes, digest: bytes) -> Large | Packet | None:
        """The frame whose pieces these bytes were; None if it is none."""
        if not self._genuine(data, digest):
            return None
        try:
            table, body = msgspec.msgpack.decode(data, type=tuple[bytes, Any])
            ids = _ids.decode(table)
            frame: Large | Packet = msgspec.convert(_named(body, ids), Large | Packet)
        except (msgspec.MsgspecError, ValueError, IndexError, RecursionError):
            return None
        return frame

    def _genuine(self, data: bytes, digest: bytes) -> bool:
        return _digest(data) == digest


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()


def _indexed(value: Any, ids: dict[tuple[str, int], int]) -> Any:
    """The same with an index for each id: what is a name and a number."""
    if not isinstance(value, list | tuple):
        return value
    if len(value) == 2 and isinstance(value[0], str):
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
