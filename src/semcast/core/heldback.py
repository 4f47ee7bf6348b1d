"""Why a member cannot send."""

import msgspec

from semcast.core.ids import MemberId


class HeldBack(msgspec.Struct, frozen=True):
    """Why a member cannot send what it has."""

    by: MemberId | None
    """Who is in the way, where that is one member."""
    why: str
    """In a few words: "its program does not read", "the view is changing"."""
