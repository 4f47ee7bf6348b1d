"""Frames about messages that may be larger than a datagram: what they carry besides payloads is long.

Payloads fill a frame up to `frame_bytes`. An annotation or a timestamp comes on top of that.
"""

from semcast.protocols.pieces import CONTROL_BYTES
from semcast.protocols.semantic.frames import Data
from semcast.wire.annotations import WireAnnotation, WireBitmap, WireItem
from semcast.wire.limits import MAX_NAME

OVERHEAD = 64
"""Bytes that a frame has besides payloads, annotation and head, and those of a short head."""
_CHARACTER = 4
_ID = MAX_NAME + 24
_SEQ = 9
"""Bytes of a character, an id of a message and a sequence number, at most."""


def most_bytes(frame_bytes: int) -> int:
    """Of a frame that is sent as one: what any network carries, or what was asked for."""
    return max(CONTROL_BYTES, frame_bytes + OVERHEAD)


def is_wide(members: int) -> bool:
    """Whether a number for each member may fill more than half a datagram: then every frame is measured."""
    return members * _SEQ > CONTROL_BYTES // 2


def is_bulky(frame: Data, most: int) -> bool:
    """Whether it may have more than so many bytes."""
    note = frame.annotation
    if note is None and len(frame.head) <= OVERHEAD // 2:
        return False
    extra = len(frame.head) + OVERHEAD if note is None else len(frame.head) + OVERHEAD + _weight(note)
    return sum(map(len, frame.payloads)) + extra > most


def _weight(note: WireAnnotation) -> int:
    if isinstance(note, WireItem):
        return _CHARACTER * len(note.item)
    return len(note.bitmap) if isinstance(note, WireBitmap) else _ID * len(note.ids)
