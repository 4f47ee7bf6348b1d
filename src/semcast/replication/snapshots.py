"""Snapshots: the state of the service at a position, and all that a server needs to go on from there.

The log of a server that has one begins anew: with its own books as of where it begins, then the state of the
service, then the actions behind the beginning. The state may be further than that: the service skips what is
in it already.
"""

from collections.abc import Sequence

import msgspec

from semcast.replication.colours import Painted
from semcast.replication.dedupe import Answered
from semcast.replication.ids import Number
from semcast.replication.membership import Roll
from semcast.replication.records import StatePiece

_PIECE = 1 << 20
"""Bytes of a state in one record."""


class KeptState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the service was after the action at a position."""

    position: Number
    state: bytes

    @classmethod
    def joined(cls, pieces: Sequence[StatePiece]) -> "KeptState | None":
        """As it was written down; None where there was none."""
        return cls(pieces[0].position, b"".join([piece.data for piece in pieces])) if pieces else None


class Snapshot(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """For another server: the order, the servers and the requests as of where the log of the giver begins."""

    colours: Painted
    members: Roll
    requests: Answered
    state: KeptState

    @property
    def start(self) -> int:
        """The actions behind this position are still to be had."""
        return self.colours.start


def pieces_of(state: KeptState) -> list[StatePiece]:
    """Records of a state: one at least."""
    data = state.state
    return [
        StatePiece(state.position, data[place : place + _PIECE])
        for place in range(0, max(1, len(data)), _PIECE)
    ]


_decode = msgspec.msgpack.Decoder(Snapshot).decode


def encode(snapshot: Snapshot) -> bytes:
    """As it is given to another server."""
    return msgspec.msgpack.encode(snapshot)


def decode(data: bytes) -> Snapshot:
    """As it was given."""
    return _decode(data)
