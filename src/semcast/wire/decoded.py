"""What is left of a datagram once its bytes are read."""

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame


class Datagram(msgspec.Struct, frozen=True, gc=False):
    """A decoded datagram."""

    source: MemberId
    frames: list[Frame]
