"""Views: who is in the group, as agreed."""

import msgspec

from semcast.core.ids import MemberId


class View(msgspec.Struct, frozen=True):
    """An agreed membership. Members are in an order that is the same everywhere.

    Where the group may be partitioned, two sides may count to the same `id`: then only the id and the
    `representative`, who formed the view, name it together.
    """

    id: int
    members: tuple[MemberId, ...]
    primary: bool = True
    representative: MemberId | None = None
