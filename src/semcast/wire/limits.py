"""Bounds on what one frame may carry. A decoder never accepts more; a sender is told so at once."""

from collections.abc import Sequence

from semcast.core import ids
from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration

MAX_PAYLOAD = 60_000
MAX_MEMBERS = 1024
MAX_ITEM = 256
MAX_NAME = ids.MAX_NAME
MAX_IDS = 1024
MAX_BITMAP = 512
MAX_SPANS = 256
MAX_HEAD = 16_384
MAX_HEADS = 256
MAX_PIECES = 1 << 15
MAX_FRAME_PIECES = 512
MAX_HOLES = 1 << 15
MAX_MESSAGE = 1 << 24
MAX_CONTACTS = 64
MAX_VALUE = 48_000
MAX_REPORT = 16_384
MAX_STATE = 1 << 28
MAX_SEQ = ids.MAX_NUMBER


_ID_OVERHEAD = 16
"""Bytes of an id in an enumeration besides the sender's name, at most."""


def check_message(payload: bytes, annotation: Annotation | None) -> None:
    """Raise ValueError for a message that no peer would accept."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"payload of {len(payload)} bytes: at most {MAX_PAYLOAD} fit in a frame")
    if isinstance(annotation, Item):
        check_item(annotation.item)
    elif isinstance(annotation, Enumeration):
        _check_enumeration(len(payload), annotation)
    elif isinstance(annotation, KEnumeration):
        if annotation.bitmap < 0 or annotation.bitmap.bit_length() > 8 * MAX_BITMAP:
            raise ValueError(f"k-enumeration: the bitmap must have 0 to {8 * MAX_BITMAP} bits")
        if not 0 <= annotation.base <= MAX_SEQ:
            raise ValueError(f"k-enumeration: base {annotation.base} is not a sequence number")


def check_annotations(payload: int, annotations: Sequence[Annotation]) -> None:
    """Raise ValueError if no peer would accept one of these annotations, on a payload of this size."""
    items = [each.item for each in annotations if type(each) is Item]
    for item in dict.fromkeys(items):
        check_item(item)
    if len(items) < len(annotations):
        for each in annotations:
            check_message(bytes(payload), each)


def check_item(item: str) -> None:
    """Raise ValueError for an item that no peer would accept."""
    if not 0 < len(item) <= MAX_ITEM:
        raise ValueError(f"item of {len(item)} characters: 1 to {MAX_ITEM} are allowed")
    try:
        item.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"item {item!r} is not text: {error.reason}") from error


def _check_enumeration(payload: int, annotation: Enumeration) -> None:
    ids = annotation.ids
    if len(ids) > MAX_IDS:
        raise ValueError(f"enumeration of {len(ids)} messages: at most {MAX_IDS} are allowed")
    if any(not 1 <= named.seq <= MAX_SEQ for named in ids):
        raise ValueError("enumeration: a sequence number is at least 1 and below 2^62")
    size = payload + sum(len(named.sender.name.encode()) + _ID_OVERHEAD for named in ids)
    if size > MAX_PAYLOAD:
        raise ValueError(f"payload and enumeration of {size} bytes: at most {MAX_PAYLOAD} fit in a frame")
