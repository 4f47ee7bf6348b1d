"""Views: who is in the group, as agreed."""

import msgspec

from semcast.core.ids import MemberId


class View(msgspec.Struct, frozen=True):
    """An agreed membership. Members are in an order that is the same everywhere.

    Where the group may be partitioned, two sides may count to the same `id`: then only the id and the
    `representative`, who formed the view, name it together.

    A view that was *re-formed* follows another without a quorum of it, because nobody else of that one lived:
    what the dead knew and nobody else did is lost.
    """

    id: int
    members: tuple[MemberId, ...]
    primary: bool = True
    representative: MemberId | None = None
    reformed: int | None = None
    """Of a re-formed view: the number of the view that it follows."""

    @property
    def name(self) -> str:
        """How to call it: its number, and who formed it where several may have the same number.

        >>> View(7, (), representative=MemberId("a", 3)).name
        '7@a#3'
        """
        return str(self.id) if self.representative is None else f"{self.id}@{self.representative}"
