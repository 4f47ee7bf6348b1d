"""Who is asked: the choice of targets, by measured round trips (4.2, 7.5)."""

from collections.abc import Iterable
from random import Random

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.settings import Choice

_POWERS = {Choice.UNIFORM: 0, Choice.LINEAR: 1, Choice.QUADRATIC: 2}
_ASKED = 64
"""Rounds of which it is remembered when they were, and whom they were for."""


class Peers:
    """The others, as far as they take part in gossip.

    A target's weight is 1/rtt (linear) or its square; who was not measured yet counts as the median. The text
    does not say what "linear" means; `models/convergence.py` has both readings.
    """

    def __init__(self, others: Iterable[MemberId], choice: Choice, rng: Random) -> None:
        self._others = {member.name: member for member in others}
        self._power = _POWERS[choice]
        self._rng = rng
        self._round_trips: dict[str, Nanos] = {}
        self._asked: dict[int, tuple[str, Nanos]] = {}

    def meet(self, member: MemberId) -> None:
        """There is another one, or another incarnation of one."""
        self.forget(member.name)
        self._others[member.name] = member

    def forget(self, name: str) -> None:
        """It is not there any more."""
        self._others.pop(name, None)
        self._round_trips.pop(name, None)

    def choose(self) -> MemberId | None:
        """A target; None if there is nobody."""
        others = list(self._others.values())
        if not others:
            return None
        if self._power == 0 or not self._round_trips:
            return self._rng.choice(others)
        median = sorted(self._round_trips.values())[len(self._round_trips) // 2]
        weights = [
            (1 / max(self._round_trips.get(member.name, median), 1)) ** self._power for member in others
        ]
        return self._rng.choices(others, weights)[0]

    def asked(self, number: int, target: MemberId, now: Nanos) -> None:
        """A round began: its answer is a measurement."""
        self._asked[number] = target.name, now
        self._asked.pop(number - _ASKED, None)

    def answered(self, number: int, source: MemberId, now: Nanos) -> None:
        """Something came that answers a round."""
        target, at = self._asked.get(number, ("", 0))
        if target != source.name or now < at:
            return
        del self._asked[number]
        before = self._round_trips.get(target)
        self._round_trips[target] = now - at if before is None else before + (now - at - before) // 8
