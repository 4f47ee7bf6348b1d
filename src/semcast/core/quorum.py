"""Quorums of a view: who may end it, and who must have a message for it to survive whoever ends the view.

More than half of the members are a quorum, and so is exactly half of them if the first of the view is among
them: of two members the first goes on when the other is silent. Any two quorums have a member in common.
Members are named by rank: their places in the list of members.
"""

from collections.abc import Collection, Sequence


def is_quorum(size: int, ranks: Collection[int]) -> bool:
    """Whether these may end a view of so many members.

    >>> is_quorum(3, {0, 2}), is_quorum(4, {0, 3}), is_quorum(4, {1, 2}), is_quorum(2, {0})
    (True, True, False, True)
    """
    twice = 2 * len(ranks)
    return twice > size or (twice == size and 0 in ranks)


def blocks(size: int, ranks: Collection[int]) -> bool:
    """Whether every quorum has one of these in it.

    >>> blocks(3, {1, 2}), blocks(3, {1}), blocks(4, {0, 1}), blocks(4, {2, 3}), blocks(2, {0})
    (True, False, True, False, True)
    """
    return not is_quorum(size, [rank for rank in range(size) if rank not in ranks])


def fewest(size: int) -> int:
    """How many members are a quorum, whoever they are."""
    return size // 2 + 1


def blocked_upto(column: Sequence[int]) -> int:
    """Given how far each member has something, by rank: how far those who have it block.

    >>> blocked_upto([5, 3, 1]), blocked_upto([5, 3]), blocked_upto([3, 5]), blocked_upto([1, 5, 5, 4])
    (3, 5, 3, 4)
    """
    ranked = sorted(column, reverse=True)
    half = len(column) // 2
    if len(column) % 2:
        return ranked[half]
    return max(ranked[half], min(column[0], ranked[half - 1]))
