"""Formation, broken: one ring at a time, with a name of its own, formed by those that hear each other."""

from collections.abc import Sequence

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.backoff import FIRST, Backoff
from semcast.protocols.ring import Ring
from semcast.protocols.ring.formation import Formation
from semcast.protocols.ring.forming import Forming
from semcast.protocols.ring.frames import ConfId
from semcast.protocols.ring.operation import Operation
from semcast.sim.mutants.mutant import Mutant


class _ConfIdReused(Operation):
    def conf_id(self, number: int) -> ConfId:
        return ConfId(number, MemberId(self._member.me.name))


class ConfIdReused(Ring):
    """Names configurations without the incarnation of who formed them: a restart counts from the start."""

    operation_kind = _ConfIdReused


class _AnyOrder(Forming):
    def _least_number(self) -> int:
        return 0


class _FormTokensInAnyOrder(Formation):
    forming_kind = _AnyOrder


class FormTokensInAnyOrder(Ring):
    """Follows a Form token though it has followed a later one since."""

    formation_kind = _FormTokensInAnyOrder


class _AnyConfiguration(Forming):
    def _still_in(self, conf: ConfId) -> bool:  # noqa: ARG002
        return True


class _FormTokenOfAnotherConfiguration(Formation):
    forming_kind = _AnyConfiguration


class FormTokenOfAnotherConfiguration(Ring):
    """Follows a Form token that lists it under a configuration it has left."""

    formation_kind = _FormTokenOfAnotherConfiguration


class _Lenient(Forming):
    def _to_blame(self, now: Nanos) -> list[MemberId]:  # noqa: ARG002
        return []

    def _take_stock(self, now: Nanos, old: Sequence[MemberId], new: Sequence[MemberId]) -> None:
        """Nor is anybody held off."""


class _NobodyFails(Formation):
    forming_kind = _Lenient


class NobodyFails(Ring):
    """Tries again with the same members when the Form token is lost."""

    formation_kind = _NobodyFails


class _Unforgiving(Backoff):
    def _wait(self, count: int) -> Nanos:
        return FIRST << count


class _UnforgivingForming(Forming):
    backoff_kind = _Unforgiving


class _BackoffWithoutCap(Formation):
    forming_kind = _UnforgivingForming


class BackoffWithoutCap(Ring):
    """Holds off who keeps failing for longer and longer."""

    formation_kind = _BackoffWithoutCap


MUTANTS = {
    "conf-id-reused": Mutant(ConfIdReused),
    "form-tokens-in-any-order": Mutant(FormTokensInAnyOrder, by_chance=False),
    "form-token-of-another-configuration": Mutant(FormTokenOfAnotherConfiguration, by_chance=False),
    "nobody-fails": Mutant(NobodyFails, by_chance=False),
    "backoff-without-cap": Mutant(BackoffWithoutCap, by_chance=False),
}
