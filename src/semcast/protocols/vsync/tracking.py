"""What is stable and what is safe in a view, as everybody tells everybody what it has queued (`Received`).

What all members have queued is stable. What is safe survives whoever ends the view: every quorum has a member
that has it; with an oracle, by whose word all but one may crash, all have it.
"""

from collections.abc import Sequence

from semcast.core.quorum import blocked_upto
from semcast.protocols.semantic.buffers import Buffers


class Tracker:
    """At one member. Vectors are indexed by rank, and so are rows of vectors: what each member has.

    Args:
        me: rank of this member.
        buffers: where it is acted on.
        reach: how far a correct member can be ahead of another.
        oracle: whether any member may be the only one that is left.
    """

    def __init__(self, me: int, buffers: Buffers, reach: int, *, oracle: bool = False) -> None:
        self._oracle = oracle
        self._me = me
        self._buffers = buffers
        self._reach = reach

    def safe_upto(self, column: Sequence[int]) -> int:
        """Given how far members have queued the messages of one of them: up to where these are safe."""
        return min(column) if self._oracle else blocked_upto(column)

    def credible(self, upto: Sequence[int]) -> bool:
        """Nobody can have what is far beyond us, nor more of ours than we sent."""
        queued = self._buffers.queued
        if len(upto) != len(queued) or upto[self._me] > queued[self._me]:
            return False
        return all(theirs <= ours + self._reach for theirs, ours in zip(upto, queued, strict=True))

    def track(self, received: Sequence[Sequence[int]]) -> bool:
        """Find what is stable and what is safe; returns whether something became stable."""
        buffers = self._buffers
        rows = list(received)
        rows[self._me] = buffers.queued
        safe, moved = [], False
        for rank, column in enumerate(zip(*rows, strict=True)):
            safe.append(self.safe_upto(column))
            stable = min(column)
            if stable > buffers.stable[rank]:
                buffers.trim(rank, stable)
                moved = True
        buffers.safe = list(map(max, buffers.safe, safe))
        buffers.purge_retained()
        return moved

    def laggards(self, received: Sequence[Sequence[int]], since: Sequence[int]) -> list[int]:
        """Ranks of those who have not queued yet what this member had queued at some time."""
        return [
            rank for rank, row in enumerate(received) if rank != self._me and any(map(int.__lt__, row, since))
        ]
