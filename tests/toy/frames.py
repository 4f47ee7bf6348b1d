"""What members of the toy say to each other."""

from typing import Annotated

import msgspec

from semcast.core import Frame
from semcast.wire.annotations import WireAnnotation
from semcast.wire.limits import MAX_SEQ

Seq = Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)]


class Said(Frame, frozen=True, array_like=True, tag=210, gc=False):
    """A message, by its number."""

    seq: Seq
    payload: bytes
    annotation: WireAnnotation | None = None


class Heard(Frame, frozen=True, array_like=True, tag=211, gc=False):
    """All your messages up to this one are here."""

    upto: Seq


FRAMES: tuple[type[Frame], ...] = (Said, Heard)
