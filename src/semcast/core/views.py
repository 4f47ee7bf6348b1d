"""Views: who is in the group, as agreed."""

import msgspec

from semcast.core.ids import MemberId


class View(msgspec.Struct, frozen=True):
    """The members of a group at one time, in the same order everywhere.

    In a partition two sides may use the same `id`: the id and the `representative`, who formed the view,
    together identify it.

    A *re-formed* view follows another without a quorum of it, because no other member of that one is alive;
    messages that only the dead members had are lost.
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
