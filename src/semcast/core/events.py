"""What a protocol tells the application besides messages."""

import msgspec

from semcast.core.ids import MemberId, MessageId
from semcast.core.views import View


class ViewChange(msgspec.Struct, frozen=True):
    """A new view, and how it differs from the one before."""

    view: View
    joined: tuple[MemberId, ...] = ()
    left: tuple[MemberId, ...] = ()
    failed: tuple[MemberId, ...] = ()


class Blocked(msgspec.Struct, frozen=True):
    """Flow control refuses multicasts from now on."""


class Unblocked(msgspec.Struct, frozen=True):
    """A refused multicast is worth another try."""


class Purged(msgspec.Struct, frozen=True, gc=False):
    """A receipt: `id` will not be delivered here, because of `by`.

    `by` is None where the message was skipped on a peer's word: a replacement exists and is safe,
    but which one it is was not said.
    """

    id: MessageId
    by: MessageId | None = None


Event = ViewChange | Blocked | Unblocked | Purged
