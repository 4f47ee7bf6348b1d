"""Those who ask to join a view, and what their names say about its members.

A name stands for one process. A candidate with the name of a member replaces it once that one is silent: then
the former incarnation is dead. If the member is still heard, the candidate is refused.
"""

from collections.abc import Callable, Iterable, Sequence

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.vsync.frames import Known
from semcast.wire.limits import MAX_NAME

_MOST = 64
"""Processes that ask to join at the same time, at most."""
_LATELY = 5
"""Periods for which a candidate counts as being here after it was heard."""

_LONG = 2
"""Times that a member may be silent: what comes of it so long after its successor was not under way."""

Suspects = Callable[[MemberId], bool]


class Candidates:
    """Who looks for the view of this member.

    Args:
        period: how often they say so.
        silence: how long a member whose name a candidate has may be silent before it counts as dead.
    """

    def __init__(self, period: Nanos, silence: Nanos) -> None:
        self._period = period
        self._silence = silence
        self._heard: dict[MemberId, tuple[Nanos, Nanos]] = {}  # first, and last
        self._gone: dict[MemberId, Nanos] = {}  # who left, and when: a hello of it may still be under way

    def saw(self, now: Nanos, candidate: MemberId) -> None:
        """It says hello."""
        if candidate in self._gone or len(candidate.name) > MAX_NAME:
            return
        if candidate in self._heard or len(self._heard) < _MOST:
            first, _ = self._heard.get(candidate, (now, now))
            self._heard[candidate] = first, now

    def install(self, now: Nanos, members: Sequence[MemberId], left: Iterable[MemberId]) -> None:
        """Another view stands. Who left asks no more, however shortly it was a member."""
        for member in left:
            self._heard.pop(member, None)
            self._gone[member] = now
        self.forget(now, members)

    def forget(self, now: Nanos, members: Sequence[MemberId]) -> None:
        """Those who are silent, or members by now, or older than a member of their name."""
        names = {member.name: member.incarnation for member in members}
        for candidate, (_, last) in list(self._heard.items()):
            outdated = candidate.name in names and names[candidate.name] >= candidate.incarnation
            if outdated or now - last > _LATELY * self._period:
                del self._heard[candidate]
        for member, left_at in list(self._gone.items()):
            if now - left_at > _LATELY * self._period:
                del self._gone[member]

    def ready(
        self, now: Nanos, members: Sequence[MemberId], suspects: Suspects, patience: Nanos
    ) -> list[MemberId]:
        """Who may be let in: it has spoken twice, and nobody who is alive has its name."""
        names = {member.name: member for member in members}
        return [
            candidate
            for candidate, (first, last) in self._heard.items()
            if last > first
            and now - first >= patience
            and (candidate.name not in names or suspects(names[candidate.name]))
        ]

    def back(self, members: Sequence[MemberId], suspects: Suspects) -> list[MemberId]:
        """Members that are dead for certain: silent, and here again as other incarnations."""
        latest = {
            candidate.name: candidate
            for candidate, (first, last) in sorted(self._heard.items())
            if last > first
        }
        return [
            member
            for member in members
            if member.name in latest
            and latest[member.name].incarnation > member.incarnation
            and suspects(member)
        ]

    def refused(self, members: Sequence[MemberId], heard_at: Callable[[MemberId], Nanos]) -> list[MemberId]:
        """Candidates whose names belong to members that were heard long after the candidates were."""
        names = {member.name: member for member in members}
        return [
            candidate
            for candidate, (first, _) in self._heard.items()
            if candidate.name in names and heard_at(names[candidate.name]) >= first + _LONG * self._silence
        ]

    def accounts_for(self, known: Known, alive: Sequence[MemberId]) -> bool:
        """Whether nobody can still be in a later view: all its members are here, and not in it."""
        here = {member.name for member in alive} | {candidate.name for candidate in self._heard}
        return all(member.name in here for member in known.members)
