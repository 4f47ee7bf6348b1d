"""Who is not let in, and is told so: other settings, the name of a member that lives, or no room."""

from collections.abc import Callable, Iterable, Sequence

from semcast.core.events import NotAdmitted
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.protocols.vsync.candidates import Candidates
from semcast.protocols.vsync.frames import Refused, Terms

LONGEST_CAUSE = 100


class Admission:
    """At one member.

    Args:
        terms: what all must have set alike.
        candidates: those who ask.
        stats: where to count.
        out: where frames and events go.
    """

    def __init__(self, terms: Terms, candidates: Candidates, stats: Statistics, out: Outbox) -> None:
        self._terms = terms
        self._candidates = candidates
        self._stats = stats
        self._out = out

    def agrees(self, source: MemberId, terms: Terms, *, stands: bool) -> bool:
        """Whether somebody has set alike what must be alike.

        If a group `stands`, it tells who has not; founders ignore each other.
        """
        difference = self._terms.differs(terms)
        if difference is None:
            return True
        self._stats.refused_members += 1
        self._out.deliver(NotAdmitted(source, f"its settings differ: {difference}"))
        if stands:
            self._turn_away(source, f"the settings of the group differ: {terms.differs(self._terms)}")
        return False

    def refuse_namesakes(self, members: Sequence[MemberId], heard_at: Callable[[MemberId], Nanos]) -> None:
        """Those whose names belong to living members."""
        for candidate in self._candidates.refused(members, heard_at):
            self._turn_away(candidate, f"a living member is called {candidate.name[:60]}")
            self._out.deliver(NotAdmitted(candidate, "a living member has its name"))

    def refuse_for_room(self, candidates: Iterable[MemberId], members: int) -> None:
        """The group is full: they wait until somebody leaves."""
        for candidate in candidates:
            self._turn_away(candidate, f"the group is full: it has {members} members", ever=True)
            self._out.deliver(NotAdmitted(candidate, "the group is full"))

    def _turn_away(self, candidate: MemberId, cause: str, *, ever: bool = False) -> None:
        self._out.send(candidate, Refused(cause[:LONGEST_CAUSE], ever))
