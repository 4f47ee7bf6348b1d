"""Frames within any MTU from 1280 bytes up (a deviation: in the paper each is one datagram).

A Form token, a recovery token or a Join can be larger than a datagram may be. Then it travels in pieces (see
`protocols/pieces.py`). So does a packet with one message whose annotation leaves no room for it: an
enumeration of long names may exceed any packet.
"""

from semcast.core.outbox import Frame, Outbox
from semcast.protocols import pieces
from semcast.protocols.pieces import CONTROL_BYTES, MOST_PIECES
from semcast.protocols.ring.frames import FormToken, Join, Packet, RecoveryToken

__all__ = ["CONTROL_BYTES", "MOST_PIECES", "Large", "Puzzles", "in_pieces", "multicast"]

Large = FormToken | RecoveryToken | Join


def in_pieces(frame: Large) -> list[Frame]:
    """The frame if it is small enough, else its pieces."""
    return pieces.in_pieces(frame)


def multicast(out: Outbox, packet: Packet, packet_bytes: int) -> None:
    """Multicast a packet: as it is, if it has no more than a fourth beyond the bytes that it should have."""
    part = packet.parts[0]
    if (part.annotation is None and part.items is None) or len(packet.parts) + len(part.payloads) > 2:
        out.multicast(packet)  # it was filled with what fits
    else:
        for frame in pieces.in_plain_pieces(packet, max(CONTROL_BYTES, packet_bytes * 5 // 4)):
            out.multicast(frame)


class Puzzles(pieces.Puzzles):
    """Frames of the ring of which only some pieces have come."""

    def __init__(self) -> None:
        super().__init__(Large | Packet)
