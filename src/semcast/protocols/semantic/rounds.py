"""Stability and safety tracking by gossip rounds (Pereira 2002, 5.2.1-5.2.2, after Guo 1998).

Each member votes with the prefixes it has queued; a round carries who voted and the least of their
votes, so a frame is O(n) whatever the number of messages. When enough voted, the minimum is a result:
everybody queued it (stability), or f+1 did (safety). Results spread with the next rounds.

A prefix counts a skipped message as queued. That is the safe(m) of figure 4.2, which asks for some m' that
replaces m: whoever skipped m was told of a safe replacement, so by induction one exists.
"""

from abc import ABC, abstractmethod

from semcast.protocols.semantic.frames import Round
from semcast.wire.limits import MAX_SEQ

_MAX_ROUND = MAX_SEQ // 2
"""No group lives to see this round; a peer that names a later one would stop all rounds for good."""


class Rounds(ABC):
    """One tracker. Subclasses say when a round has enough votes."""

    def __init__(self, me: int, size: int) -> None:
        self._me = 1 << me
        self._size = size
        self.number = 1
        self.voters = 0
        self.minimum = [0] * size
        self.result = [0] * size

    @abstractmethod
    def enough(self) -> bool:
        """Whether the votes of this round decide."""

    def vote(self, queued: list[int]) -> None:
        """Take part in the current round, if not done yet."""
        if not self.voters & self._me:
            self._join(0, queued, queued)

    def merge(self, theirs: Round, queued: list[int]) -> None:
        """A gossip arrived."""
        self.result = list(map(max, self.result, theirs.result))
        if theirs.number < self.number:
            return
        if theirs.number > self.number:
            self.number = theirs.number
            self.voters = 0
        voters = int.from_bytes(theirs.voters, "little")
        if self.voters & self._me:
            self._join(voters, self.minimum, theirs.minimum)
        else:
            self._join(voters, queued, theirs.minimum)

    def conclude(self, queued: list[int]) -> None:
        """End the round if it has enough votes, and open the next."""
        if self.enough():
            self.result = list(map(max, self.result, self.minimum))
            self.number += 1
            self.voters = self._me
            self.minimum = list(queued)

    def frame(self) -> Round:
        """What to tell others."""
        voters = self.voters.to_bytes((self.voters.bit_length() + 7) // 8, "little")
        return Round(self.number, voters, self.minimum, self.result)

    def well_formed(self, theirs: Round) -> bool:
        """Whether a frame can have come from a member of this group."""
        return (
            theirs.number <= _MAX_ROUND
            and len(theirs.minimum) == self._size
            and len(theirs.result) == self._size
            and int.from_bytes(theirs.voters, "little") >> self._size == 0
        )

    def _join(self, voters: int, mine: list[int], theirs: list[int]) -> None:
        self.voters |= voters | self._me
        self.minimum = list(map(min, mine, theirs))


class StabilityRounds(Rounds):
    """Decided by the votes of all members that have not failed."""

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        self._awaited = (1 << size) - 1

    def enough(self) -> bool:
        """Everybody alive voted."""
        return self._awaited & ~self.voters == 0

    def forget(self, rank: int) -> None:
        """A member crashed: nobody waits for it any more."""
        self._awaited &= ~(1 << rank)


class SafetyRounds(Rounds):
    """Decided by f+1 votes: whichever f members crash, one that queued the message stays."""

    def __init__(self, me: int, size: int, votes: int) -> None:
        super().__init__(me, size)
        self._votes = votes

    def enough(self) -> bool:
        """f+1 members voted."""
        return self.voters.bit_count() >= self._votes
