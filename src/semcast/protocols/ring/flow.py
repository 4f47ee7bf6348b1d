"""Flow control of the ring: how much one visit of the token may send (Amir 1995, 5.2.1 and 5.3).

The paper tunes two constants by hand. Here the limit of a visit follows loss: it shrinks when packets had
to be asked for again, and grows for each visit that used it up, by a quarter as long as nothing was ever
lost and by one from then on. Whoever sent at its last visit leaves some of the window to the others where
one of them has said that it wants to send, or one sender that never stops would starve them; where nobody
has, it leaves two packets, so that who begins need not wait. The window has room for a packet of every
member, however many they are. Where a slow reader makes room for a packet now and then, and others want to
send, the same holds for longer: who sent leaves room until the others have sent a packet each, and takes its
share of what there is. Else whoever has the token after the slow one would take all.
"""

from semcast.protocols.ring.settings import RingSettings

_SPARE = 2
"""Packets of the window that who sends alone leaves to others."""


class Flow:
    """The limit in force at one member of a ring of `size`."""

    def __init__(self, settings: RingSettings, size: int) -> None:
        self._settings = settings
        self._size = size
        self._window = settings.window_of(size)
        self.limit = settings.visit
        if settings.adaptive:
            self.limit = max(settings.visit // 4, settings.visit_least)
        self._lossless = True
        self._sent = 0  # at the last visit, which is in the fcc that comes back
        self._seq = 0  # of the token as it left
        self._last = -size  # the last number that this member gave to a packet

    def allowance(self, seq: int, aru: int, fcc: int, *, shared: bool = False) -> int:
        """Packets this visit may send, given what the others sent and what has not reached everybody.

        Where it is `shared`, others want to send, too.
        """
        window, others = self._window, self._others(seq, fcc)
        left = self._left(seq, aru, shared=shared)
        most = min(self.limit, window - others, left)
        if shared and not self._sent:
            most = min(most, max(1, left // self._size))
        if others:
            most = min(most, max(1, window // self._size))
        return max(0, most)

    def closed(self, seq: int, aru: int) -> bool:
        """Whether not even one more packet may be under way."""
        return seq - aru >= self._window

    def full(self, seq: int, aru: int, *, shared: bool) -> bool:
        """Whether too much is under way for another packet of this member."""
        return self._left(seq, aru, shared=shared) <= 0

    def account(self, seq: int, fcc: int, sent: int, onward_seq: int, *, lost: bool) -> int:
        """The visit is over; returns the new flow control count."""
        count = self._others(seq, fcc) + sent
        self._sent, self._seq = sent, onward_seq
        if onward_seq > seq:
            self._last = onward_seq
        if self._settings.adaptive:
            if lost:
                self._lossless = False
                self.limit = max(self._settings.visit_least, self.limit * 3 // 4)
            elif sent >= self.limit:
                step = self.limit // 4 if self._lossless else 0
                self.limit = min(self._settings.visit, self.limit + max(1, step))
        return count

    def _others(self, seq: int, fcc: int) -> int:
        """What the others sent in the last rotation: new packets, which are numbered, and repeated ones."""
        return min(max(fcc - self._sent, 0), max(seq - self._seq, 0) + self.limit)

    def _left(self, seq: int, aru: int, *, shared: bool) -> int:
        """What of the window is left to this member."""
        return self._window - self._reserve(seq, shared=shared) - (seq - aru)

    def _reserve(self, seq: int, *, shared: bool) -> int:
        """The part of the window that is left to those who did not send lately."""
        most = min(self._size - 1, self._window // 2)
        if not shared:
            return min(most, _SPARE)
        return most if self._sent else max(0, most - (seq - self._last))
