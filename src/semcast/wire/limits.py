"""Bounds on what one frame may carry. A decoder never accepts more; a sender is told so at once."""

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration

MAX_PAYLOAD = 60_000
MAX_MEMBERS = 1024
MAX_ITEM = 256
MAX_IDS = 1024
MAX_BITMAP = 512
MAX_SPANS = 256
MAX_SEQ = 1 << 62


def check_message(payload: bytes, annotation: Annotation | None) -> None:
    """Raise ValueError for a message that no peer would accept."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"payload of {len(payload)} bytes: at most {MAX_PAYLOAD} fit in a frame")
    if isinstance(annotation, Item) and not 0 < len(annotation.item) <= MAX_ITEM:
        raise ValueError(f"item of {len(annotation.item)} characters: 1 to {MAX_ITEM} are allowed")
    if isinstance(annotation, Enumeration) and len(annotation.ids) > MAX_IDS:
        raise ValueError(f"enumeration of {len(annotation.ids)} messages: at most {MAX_IDS} are allowed")
    if isinstance(annotation, KEnumeration):
        if annotation.bitmap < 0 or annotation.bitmap.bit_length() > 8 * MAX_BITMAP:
            raise ValueError(f"k-enumeration: the bitmap must have 0 to {8 * MAX_BITMAP} bits")
        if not 0 <= annotation.base <= MAX_SEQ:
            raise ValueError(f"k-enumeration: base {annotation.base} is not a sequence number")
