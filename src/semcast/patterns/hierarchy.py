"""Hierarchical groups (Birman, Schiper and Stephenson 1991, section 2): which leaf a key belongs to.

A root group is asked once; after that a program deals with one leaf group only, which has a share of the keys
and of the servers. The pure part: what members of the root are asked, and what they answer.
"""

from collections.abc import Iterable
from zlib import crc32

_KEY = b"k"
_PLACE = b"p"


class Branching:
    """A root group and its leaves.

    Args:
        name: of the root group.
        leaves: how many leaf groups there are.

    >>> tree = Branching("accounts", 4)
    >>> tree.leaf_of(b"ann"), tree.leaf_of(b"bob")
    ('accounts/3', 'accounts/0')
    >>> tree.emptiest(["accounts/0", "accounts/1", "accounts/3", "accounts/0"], rank=0)
    'accounts/2'
    """

    def __init__(self, name: str, leaves: int) -> None:
        if leaves < 1:
            raise ValueError(f"{leaves} leaves: at least 1")
        self.name = name
        self.leaves = tuple(f"{name}/{number}" for number in range(leaves))

    def leaf_of(self, key: bytes) -> str:
        """The leaf group that a key belongs to: the same for all who say the same number of leaves."""
        return self.leaves[crc32(key) % len(self.leaves)]

    def emptiest(self, places: Iterable[str], rank: int) -> str:
        """Where another server is needed most, by the leaves that others serve.

        Several who come at once may be told the same: so each begins with another leaf, by its rank.
        """
        counts = dict.fromkeys(self.leaves, 0)
        for place in places:
            if place in counts:
                counts[place] += 1
        start = rank % len(self.leaves)
        return min((*self.leaves[start:], *self.leaves[:start]), key=counts.__getitem__)

    def answer(self, question: bytes, place: str) -> bytes:
        """What a server of one leaf answers; an empty place is that of one who has none yet."""
        if question[:1] == _KEY:
            return self.leaf_of(question[1:]).encode()
        if question == _PLACE:
            return place.encode()
        raise ValueError(f"a root group is asked for a key or a place, not {question!r:.40}")


def ask_for(key: bytes) -> bytes:
    """A question to the root: which leaf has this key?"""
    return _KEY + key


def ask_for_places() -> bytes:
    """A question to the root: which leaves do its servers serve?"""
    return _PLACE
