"""Annotations on the wire: as they are, except that bitmaps of any length travel as bytes."""

from typing import Annotated

import msgspec

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.ids import MessageId
from semcast.wire.limits import MAX_BITMAP, MAX_IDS, MAX_ITEM, MAX_SEQ


class WireItem(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """An item tag."""

    item: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ITEM)]


class WireEnumeration(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """An enumeration of message ids."""

    ids: Annotated[tuple[MessageId, ...], msgspec.Meta(max_length=MAX_IDS)]


class WireBitmap(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A k-enumeration; the bitmap is little-endian."""

    base: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)]
    bitmap: Annotated[bytes, msgspec.Meta(max_length=MAX_BITMAP)]
    total: bool


WireAnnotation = WireItem | WireEnumeration | WireBitmap


def to_wire(annotation: Annotation | None) -> WireAnnotation | None:
    """The wire form of an annotation."""
    if annotation is None:
        return None
    if isinstance(annotation, Item):
        return WireItem(annotation.item)
    if isinstance(annotation, Enumeration):
        return WireEnumeration(annotation.ids)
    bitmap = annotation.bitmap
    return WireBitmap(
        annotation.base, bitmap.to_bytes((bitmap.bit_length() + 7) // 8, "little"), annotation.total
    )


def from_wire(annotation: WireAnnotation | None) -> Annotation | None:
    """The annotation a wire form stands for."""
    if annotation is None:
        return None
    if isinstance(annotation, WireItem):
        return Item(annotation.item)
    if isinstance(annotation, WireEnumeration):
        return Enumeration(annotation.ids)
    return KEnumeration(annotation.base, int.from_bytes(annotation.bitmap, "little"), annotation.total)
