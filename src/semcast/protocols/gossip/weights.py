"""Weighted choice among many, whose weights change one at a time (a Fenwick tree).

Whole numbers, so that sums stay exact however often weights change. Whatever has no weight of its own has the
same one as all of its kind, which is said only when something is chosen.
"""

Weight = int | None


class Weights:
    """Weights of places 0, 1, ...; to change one or to choose takes as many steps as their number has bits.

    >>> weights = Weights()
    >>> for each in (1, None, 3):
    ...     weights.append(each)
    >>> [weights.choose(share / 10, 6) for share in range(10)]  # 1, 6 and 3 of 10
    [0, 1, 1, 1, 1, 1, 1, 2, 2, 2]
    """

    def __init__(self) -> None:
        self._weights: list[Weight] = []
        self._sums = [0]  # of a place and some before it: as many as its lowest bit says, counted from 1
        self._others = [0]  # those among them that have no weight of their own
        self._total = 0
        self._without = 0

    @classmethod
    def unknown(cls, count: int) -> "Weights":
        """So many places that have no weights of their own: what as many `append(None)` give, at once."""
        weights = cls()
        weights._weights = [None] * count
        weights._sums = [0] * (count + 1)
        weights._others = [place & -place for place in range(count + 1)]
        weights._without = count
        return weights

    def append(self, weight: Weight) -> None:
        """Another place, behind all others."""
        place = len(self._weights) + 1
        first, below = place - (place & -place), place - 1
        sums, others = weight or 0, int(weight is None)
        self._weights.append(weight)
        self._total += sums
        self._without += others
        while below > first:  # the parts that this place sums up are there already
            sums += self._sums[below]
            others += self._others[below]
            below -= below & -below
        self._sums.append(sums)
        self._others.append(others)

    def put(self, place: int, weight: Weight) -> None:
        """Change the weight of a place."""
        before = self._weights[place]
        self._weights[place] = weight
        self._add(place + 1, (weight or 0) - (before or 0), (weight is None) - (before is None))

    def pop(self) -> Weight:
        """The last place is none any more; returns its weight."""
        weight = self._weights[-1]
        self.put(len(self._weights) - 1, 0)
        del self._weights[-1], self._sums[-1], self._others[-1]
        return weight

    def choose(self, share: float, weight: int) -> int:
        """The place where `share` (0 to 1) of all weights end; `weight` is that of places without one."""
        left = share * (self._total + weight * self._without)
        place, sums, others = 0, self._sums, self._others
        step = 1 << len(self._weights).bit_length()
        while step:
            after = place + step
            if after < len(sums):
                part = sums[after] + weight * others[after]
                if part <= left:
                    place, left = after, left - part
            step >>= 1
        return min(place, len(self._weights) - 1)

    def _add(self, place: int, weight: int, others: int) -> None:
        self._total += weight
        self._without += others
        while place < len(self._sums):
            self._sums[place] += weight
            self._others[place] += others
            place += place & -place
