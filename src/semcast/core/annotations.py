"""What a message says about the earlier ones it makes obsolete (Pereira 2002, section 3.3).

These are the values only; `semcast.obsolescence` gives them their meaning. No annotation (`None`)
says: I replace nothing and nothing may replace me.
"""

import msgspec

from semcast.core.ids import MessageId


class Item(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """Item tag (3.3.1): replaces every earlier message of the same sender with the same tag."""

    item: str


class Enumeration(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Message enumeration (3.3.2): replaces exactly the messages it names, predecessors included."""

    ids: tuple[MessageId, ...]


class KEnumeration(msgspec.Struct, frozen=True, gc=False):
    """k-enumeration (3.3.3): bit n-1 of `bitmap` set means "replaces the message at `base` - n".

    Positions are sequence numbers of the sender, or, where `total` is set, positions in the total
    order, which lets a message replace those of other senders.
    """

    base: int
    bitmap: int
    total: bool = False

    def positions(self) -> list[int]:
        """The positions this annotation replaces, latest first."""
        found = []
        bits = self.bitmap
        while bits:
            low = bits & -bits
            found.append(self.base - low.bit_length())
            bits ^= low
        return found


Annotation = Item | Enumeration | KEnumeration
