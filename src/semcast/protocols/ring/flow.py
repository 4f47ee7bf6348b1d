"""Flow control of the ring: how much one visit of the token may send (Amir 1995, 5.2.1 and 5.3).

The paper tunes two constants by hand. Here the limit of a visit follows loss: it shrinks when packets had
to be asked for again, and grows by one for each visit that used it up.
"""

from semcast.protocols.ring.settings import RingSettings


class Flow:
    """The limit in force at one member."""

    def __init__(self, settings: RingSettings) -> None:
        self._settings = settings
        self.limit = (
            settings.visit if not settings.adaptive else max(settings.visit // 4, settings.visit_least)
        )
        self._sent = 0  # at the last visit, which is in the fcc that comes back

    def allowance(self, fcc: int, under_way: int) -> int:
        """Packets this visit may send, given what the others sent and what has not reached everybody."""
        others = max(fcc - self._sent, 0)
        window = self._settings.window
        return max(0, min(self.limit, window - others, window - under_way))

    def account(self, fcc: int, sent: int, *, lost: bool) -> int:
        """The visit is over; returns the new flow control count."""
        count = max(fcc - self._sent, 0) + sent
        self._sent = sent
        if self._settings.adaptive:
            if lost:
                self.limit = max(self._settings.visit_least, self.limit * 3 // 4)
            elif sent >= self.limit:
                self.limit = min(self._settings.visit, self.limit + 1)
        return count
