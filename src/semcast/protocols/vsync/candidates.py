"""Those who ask to join a view, and what their names say about its members.

A name stands for one process. A candidate with the name of a member replaces it once that one is silent: then
the former incarnation is dead. If the member is still heard, the candidate is refused.

Whose name keeps failing is let in less and less often (`Backoff`): behind a dead link it would be put out and
come back for as long as the link is dead.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import ClassVar

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.backoff import CAP, Backoff
from semcast.protocols.vsync.frames import Known
from semcast.wire.limits import MAX_NAME

_MOST = 64
"""Processes that ask to join at the same time, at most."""
_LATELY = 5
"""Periods for which a candidate counts as being here after it was heard."""

_HELP = 3
"""Periods after which another member than the first lets somebody in."""

_LONG = 2
"""Times that a member may be silent: what comes of it so long after its successor was not under way."""

Suspects = Callable[[MemberId], bool]


class Candidates:
    """Who looks for the view of this member.

    Args:
        period: how often they say so.
        silence: how long a member whose name a candidate has may be silent before it counts as dead.
        rng: where chance comes from.
    """

    backoff_kind: ClassVar[type[Backoff]] = Backoff

    def __init__(self, period: Nanos, silence: Nanos, rng: Random) -> None:
        self.novice_until: Nanos = 0
        """Until then this member has not been in the group for long enough to know who keeps failing."""
        self._period = period
        self._silence = silence
        self._backoff = self.backoff_kind(rng)  # by names: who is put out comes back as another incarnation
        self._heard: dict[MemberId, tuple[Nanos, Nanos]] = {}  # first, and last
        self._gone: dict[MemberId, Nanos] = {}  # who left, and when: a hello of it may still be under way

    def saw(self, now: Nanos, candidate: MemberId) -> None:
        """It says hello."""
        if candidate in self._gone or len(candidate.name) > MAX_NAME:
            return
        if candidate in self._heard or len(self._heard) < _MOST:
            first, _ = self._heard.get(candidate, (now, now))
            self._heard[candidate] = first, now

    def left(self, now: Nanos, candidate: MemberId) -> None:
        """It says goodbye: a hello of it may still be under way."""
        self._heard.pop(candidate, None)
        if len(self._gone) < _MOST:
            self._gone[candidate] = now

    def install(self, now: Nanos, members: Sequence[MemberId], left: Iterable[MemberId]) -> None:
        """Another view stands. Who left asks no more, however shortly it was a member."""
        for member in left:
            self._heard.pop(member, None)
            self._gone[member] = now
        self.forget(now, members)

    def judge(self, now: Nanos, failed: Iterable[MemberId], joined: Iterable[MemberId]) -> None:
        """A view ended without the ones, and the next began with the others."""
        for member in failed:
            self._backoff.failed(now, MemberId(member.name))
        for member in joined:
            self._backoff.joined(now, MemberId(member.name))

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
        self, now: Nanos, members: Sequence[MemberId], suspects: Suspects, *, helps: bool = False
    ) -> list[MemberId]:
        """Who may be let in: it has spoken twice, is not held off, and nobody who is alive has its name.

        Members after the first only help: they wait, as the first may let the candidate in.
        """
        names = {member.name: member for member in members}
        return [
            candidate
            for candidate, (first, last) in self._heard.items()
            if last > first
            and (not helps or now - first >= self._patience(now, candidate))
            and not self._backoff.holds(now, MemberId(candidate.name))
            and (candidate.name not in names or suspects(names[candidate.name]))
        ]

    def _patience(self, now: Nanos, candidate: MemberId) -> Nanos:
        """How long who helps waits: as long as the first may hold the candidate off, if it may do so."""
        failing = now < self.novice_until or self._backoff.suspects(MemberId(candidate.name))
        return CAP if failing else _HELP * self._period

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
        """Whether nobody can still be in a later view: each of its members lives here, or is dead.

        Dead is whose name has a later incarnation. One that looks for the group itself was let into that view
        and may yet enter it; and an earlier incarnation says nothing of a later one.
        """
        here = {member.name: member.incarnation for member in alive}
        for candidate in self._heard:
            here[candidate.name] = max(candidate.incarnation - 1, here.get(candidate.name, -1))
        return all(here.get(member.name, -1) >= member.incarnation for member in known.members)
