"""Admission, broken: a ring takes in who has its settings and a name that no living member has."""

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.ring import Ring
from semcast.protocols.ring.formation import Formation
from semcast.protocols.ring.frames import AttemptJoin, Join, NameTaken, Presence
from semcast.sim.mutants.mutant import Mutant


class _AnyTerms(Formation):
    def agrees(self, source: MemberId, frame: Join | AttemptJoin | Presence) -> bool:  # noqa: ARG002
        return True


class TermsIgnored(Ring):
    """Forms rings with members that have set something else."""

    formation_kind = _AnyTerms


class _AnyName(Formation):
    def admits(self, now: Nanos, source: MemberId, frame: Join | AttemptJoin | Presence) -> bool:  # noqa: ARG002
        return True


class NamesakesLetIn(Ring):
    """Lets newcomers in that have the name of a living member."""

    formation_kind = _AnyName


class _Obedient(Formation):
    def on_name_taken(self, now: Nanos, source: MemberId, frame: NameTaken) -> None:  # noqa: ARG002
        if frame.lives:
            self._operation.leaving.refuse("its name is taken", self._operation.order)


class NamesakesPutOut(Ring):
    """Two sides of a partition that have somebody of one name put each other out when they meet."""

    formation_kind = _Obedient


MUTANTS = {
    "terms-ignored": Mutant(TermsIgnored, by_chance=False),
    "namesakes-let-in": Mutant(NamesakesLetIn, by_chance=False),
    "namesakes-put-out": Mutant(NamesakesPutOut, by_chance=False),
}
