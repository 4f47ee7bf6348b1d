"""Round-trip estimate and congestion window for repairs (Pereira 2002, 5.2.1, after Jacobson 1988)."""

from semcast.core.ids import Nanos


class RoundTrip:
    """Smoothed round-trip time and the timeout that follows from it."""

    def __init__(self, initial: Nanos, least: Nanos, most: Nanos) -> None:
        self._least = least
        self._most = most
        self._srtt = 0
        self._rttvar = 0
        self.timeout = initial

    def sample(self, rtt: Nanos) -> None:
        """A measured round trip, of something that was asked for once only."""
        if self._srtt == 0:
            self._srtt, self._rttvar = rtt, rtt // 2
        else:
            self._rttvar += (abs(rtt - self._srtt) - self._rttvar) // 4
            self._srtt += (rtt - self._srtt) // 8
        # Where every round trip takes the same time, an answer must still not come just too late.
        spread = max(4 * self._rttvar, self._least // 2)
        self.timeout = min(max(self._srtt + spread, self._least), self._most)

    def after(self, tries: int) -> Nanos:
        """The timeout of the `tries`-th try: doubled each time."""
        return min(self.timeout << min(tries - 1, 10), self._most)


class CongestionWindow:
    """How many requests may be under way: slow start, then one more a round trip; 1 after a loss."""

    def __init__(self, initial: int = 4, most: int = 256) -> None:
        self._most = most
        self._size = float(initial)
        self._threshold = float(most)

    @property
    def size(self) -> int:
        """Requests allowed under way."""
        return int(self._size)

    def on_answer(self) -> None:
        """A request was answered."""
        grown = self._size + (1.0 if self._size < self._threshold else 1.0 / self._size)
        self._size = min(grown, float(self._most))

    def on_timeout(self) -> None:
        """Requests were lost, or their answers."""
        self._threshold = max(self._size / 2, 2.0)
        self._size = 1.0
