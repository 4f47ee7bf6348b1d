"""The two sets that representatives agree on (Amir 1995, 5.2.2): who there is, and who of them failed."""

from collections.abc import Iterable

from semcast.core.ids import MemberId
from semcast.wire.limits import MAX_MEMBERS

Sets = tuple[frozenset[MemberId], frozenset[MemberId]]
"""Representatives, and those of them that failed."""


class Agreement:
    """The sets as this member has them, and the proposals of the others. All of it is bounded."""

    def __init__(self, me: MemberId) -> None:
        self._me = me
        self.reps: set[MemberId] = set()
        self.failed: set[MemberId] = set()
        self.proposals: dict[MemberId, Sets] = {}
        self._highest: dict[MemberId, int] = {}  # the number of its last attempt that each has told
        self.awaits_form = False
        """Everybody agreed, and another member is to make the Form token."""

    def begin(self, failed: Iterable[MemberId]) -> None:
        """Nobody is known but those who failed the last attempt."""
        self.failed = {*failed} - {self._me}
        self.reps = {self._me, *self.failed}
        self.proposals.clear()
        self._highest.clear()
        self.awaits_form = False

    def adopt(self, proposal: Sets) -> None:
        """Begin with what a ring proposes that invites this member."""
        self.begin(())
        reps, failed = proposal
        self.reps |= reps
        self.failed |= failed

    def collect(self, rep: MemberId) -> bool:
        """Somebody speaks for a ring; False if it does not count."""
        counts = rep not in self.failed and len(self.reps) < MAX_MEMBERS
        if counts:
            self.reps.add(rep)
        return counts

    def exclude(self, rep: MemberId) -> None:
        """Go on without somebody."""
        self.reps.add(rep)
        self.failed.add(rep)

    def note(self, source: MemberId, proposal: Sets, highest: int) -> None:
        """Somebody proposed its sets, and has followed attempts up to this number."""
        if source in self.proposals or len(self.proposals) < MAX_MEMBERS:
            self.proposals[source] = proposal
            self._highest[source] = highest

    def highest(self) -> int:
        """The highest number that any of those who agree has seen."""
        return max((self._highest.get(rep, 0) for rep in self.needed()), default=0)

    def covers(self, source: MemberId, proposal: Sets) -> bool:
        """Whether the sets here have everything in them that somebody proposed."""
        reps, failed = proposal
        return source in self.reps and reps <= self.reps and failed <= self.failed

    def merge(self, source: MemberId, proposal: Sets) -> bool:
        """Take over what somebody proposed; False if that were too many."""
        reps, failed = proposal
        if len(self.reps | reps) > MAX_MEMBERS:
            return False
        self.reps |= {source, *reps}
        self.failed |= failed
        return True

    @property
    def alone(self) -> bool:
        """Whether nobody else is left."""
        return self.reps - self.failed == {self._me}

    def needed(self) -> set[MemberId]:
        """Those who have to propose the same."""
        return self.reps - self.failed - {self._me}

    def disagreeing(self) -> set[MemberId]:
        """Those of them who have not."""
        ours = (frozenset(self.reps), frozenset(self.failed))
        return {rep for rep in self.needed() if self.proposals.get(rep) != ours}
