"""What all members of a group must have set alike, and how they tell that somebody has not."""

from typing import Self

import msgspec


class Agreed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Settings that members say to each other."""

    def differs(self, other: Self) -> str | None:
        """The first setting in which others differ from this, in words; None if there is none."""
        for name in self.__struct_fields__:
            here, there = getattr(self, name), getattr(other, name)
            if here != there:
                return f"{name} is {here} here and {there} there"
        return None
