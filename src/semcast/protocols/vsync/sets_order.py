"""What the holder of the token says of the order of messages."""

from typing import Annotated

import msgspec

from semcast.protocols.semantic.frames import Rank, Seq
from semcast.wire.limits import MAX_MEMBERS


class SetsOrder(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which messages come next, and who says what comes after them."""

    number: Seq
    order: Annotated[list[tuple[Rank, Seq]], msgspec.Meta(max_length=MAX_MEMBERS)]
    token: Rank
