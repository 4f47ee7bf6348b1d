"""Who is asked: the choice of targets, by measured round trips (4.2, 7.5)."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from random import Random

from semcast.core.ids import MemberId, Nanos
from semcast.protocols.gossip.settings import Choice
from semcast.protocols.gossip.weights import Weights

_POWERS = {Choice.UNIFORM: 0, Choice.LINEAR: 1, Choice.QUADRATIC: 2}
_ASKED = 64
"""Rounds of which it is remembered when they were, and whom they were for."""
_NEAR = 0.875
"""Of all rounds, those that go to a peer of the own region, where there is one."""
_UNIT = 10**18
"""A weight is a share of this: a whole number."""


class Peers:
    """The others, as far as they take part in gossip.

    A target's weight is 1/rtt (linear) or its square; who was not measured yet counts as the median. The text
    does not say what "linear" means; `models/convergence.py` has both readings.
    """

    def __init__(self, others: Iterable[MemberId], choice: Choice, rng: Random) -> None:
        self._power = _POWERS[choice]
        self._rng = rng
        self.near: tuple[str, ...] = ()
        """Names of those in the own region."""
        self._members: list[MemberId] = []
        self._places: dict[str, int] = {}
        self._weights = Weights()
        self.round_trips: dict[str, Nanos] = {}
        """Of those that were measured."""
        self._sorted: list[Nanos] = []  # all of them
        self._asked: dict[int, tuple[str, Nanos]] = {}
        self.begin(others)

    def begin(self, others: Iterable[MemberId]) -> None:
        """These are the first: in large groups they are many, and come at once."""
        assert not self._members
        self._members = list(others)
        self._places = {member.name: place for place, member in enumerate(self._members)}
        self._weights = Weights.unknown(len(self._members))

    def __len__(self) -> int:
        return len(self._members)

    def meet(self, member: MemberId) -> None:
        """There is another one, or another incarnation of one."""
        place = self._places.get(member.name)
        if place is not None:
            self._members[place] = member
            self._measure(member.name, None)
            return
        self._places[member.name] = len(self._members)
        self._members.append(member)
        self._weights.append(None)

    def forget(self, name: str) -> None:
        """It is not there any more; the last one takes its place."""
        if name not in self._places:
            return
        self._measure(name, None)
        place, last, weight = self._places.pop(name), self._members.pop(), self._weights.pop()
        if last.name != name:
            self._members[place] = last
            self._places[last.name] = place
            self._weights.put(place, weight)

    def choose(self) -> MemberId | None:
        """A target; None if there is nobody."""
        if not self._members:
            return None
        if self.near and self._rng.random() < _NEAR:
            place = self._places.get(self._rng.choice(self.near))
            if place is not None:
                return self._members[place]
        if self._power == 0 or not self._sorted:
            return self._rng.choice(self._members)
        median = self._sorted[len(self._sorted) // 2]
        return self._members[self._weights.choose(self._rng.random(), self._weight(median))]

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
        if target not in self._places:
            return
        before = self.round_trips.get(target)
        self._measure(target, now - at if before is None else before + (now - at - before) // 8)

    def _measure(self, name: str, round_trip: Nanos | None) -> None:
        """How far it is; None if that is not known any more."""
        before = self.round_trips.pop(name, None)
        if before is not None:
            del self._sorted[bisect_left(self._sorted, before)]
        if round_trip is not None:
            self.round_trips[name] = round_trip
            insort(self._sorted, round_trip)
        if self._power:
            weight = None if round_trip is None else self._weight(round_trip)
            self._weights.put(self._places[name], weight)

    def _weight(self, round_trip: Nanos) -> int:
        nearness = _UNIT // max(round_trip, 1)
        return nearness if self._power == 1 else nearness * nearness
