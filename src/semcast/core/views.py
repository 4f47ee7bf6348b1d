"""Views: who is in the group, as agreed."""

import msgspec

from semcast.core.ids import MemberId


class View(msgspec.Struct, frozen=True):
    """An agreed membership. Members are in an order that is the same everywhere."""

    id: int
    members: tuple[MemberId, ...]
    primary: bool = True
