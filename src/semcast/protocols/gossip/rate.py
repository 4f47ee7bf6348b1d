"""How fast a sender sends: as fast as most receivers can take it (R-36; the paper has no such thing).

Receivers tell what they lack: who lacks a large part of what was sent last cannot take it, or the network
before it cannot. A sender hears of them by gossip, and halves its rate when that is true of most of
those it heard in the last rounds; else it adds a little each round. A minority that is slow does not slow it:
what those miss, they fetch from the log. Nor does one that happens to be all that was heard: there must be
most of four, or of all, where there are fewer. So there is no rate without a logger. Whether that can follow
is for the window to see.

Gossip that asks for a gap at once does not count: who loses much sends much of it, and would be heard too
often.
"""

from collections import deque

from semcast.core.ids import SECOND, Nanos
from semcast.protocols.gossip.streams import WANTED

_ROUNDS = 4
"""For how long an opinion counts, and how much of what was sent counts as sent last."""
_ENOUGH = 4
"""Of so many it takes most to slow a sender down, unless there are fewer."""
_LACKS = 4
"""Who lacks one in so many cannot follow."""
_STEPS = 8
"""Steps in which a rate that was halved is reached again; and turns in which a round's messages are sent."""
_LEAST = 10
"""Messages a second at least."""


class Rate:
    """Of one sender; none, as long as nobody complains.

    Args:
        period: of rounds.
        on: whether there is a rate at all.
    """

    def __init__(self, period: Nanos, *, on: bool) -> None:
        self.limit: int | None = None
        """Messages a second; None for as many as there are."""
        self._on = on
        self._period = period
        self._step = 0
        self._tokens = 0  # in messages times nanoseconds a second
        self._at: Nanos = 0
        self._sent: deque[int] = deque([0], maxlen=_ROUNDS)  # the last number given, at each round
        self._opinions: dict[str, tuple[int, bool]] = {}  # by name: the round, and whether it cannot follow
        self._round = 0

    # Sending

    def room(self, now: Nanos) -> int:
        """How many messages may be sent now."""
        if self.limit is None:
            return 1 << 30
        most = max(SECOND, self.limit * self._period // _STEPS)
        self._tokens = min(most, self._tokens + self.limit * (now - self._at))
        self._at = now
        return self._tokens // SECOND

    def sent(self, count: int) -> None:
        """So many were."""
        self._tokens -= count * SECOND

    def pause(self) -> Nanos:
        """How long to wait for the next."""
        return self._period // _STEPS + 1

    # What is heard

    def heard(self, name: str, lacks: int, last: int) -> None:
        """A member lacks so many of the messages up to `last`. In the first rounds it may not have begun."""
        if self._on and len(self._sent) == _ROUNDS:
            recent = min(last - self._sent[0], WANTED)
            self._opinions[name] = self._round, lacks * _LACKS > recent > 0

    def on_round(self, now: Nanos, last: int, others: int) -> None:
        """A round is over, in which the numbers up to `last` were given; there are so many others."""
        if not self._on:
            return
        self._round += 1
        recent = last - self._sent[0]
        lasted = self._period * len(self._sent)
        self._sent.append(last)
        for name in [name for name, (at, _) in self._opinions.items() if at < self._round - _ROUNDS]:
            del self._opinions[name]
        if recent > 0 and self._too_fast(others):
            self._slow_down(now, recent * SECOND // lasted)
        elif self.limit is not None:
            self.limit += self._step
            if self.limit * lasted > _STEPS * SECOND * max(1, recent):
                self.limit = None

    def _too_fast(self, others: int) -> bool:
        """Whether most of those that were heard cannot follow."""
        against = sum(cannot for _, cannot in self._opinions.values())
        return 2 * against > max(len(self._opinions), min(others, _ENOUGH))

    def _slow_down(self, now: Nanos, rate: int) -> None:
        """Half of what was sent; and from there on up again."""
        if self.limit is None:
            self._at, self._tokens = now, 0
        self.limit = max(_LEAST, min(rate, self.limit or rate) // 2)
        self._step = max(1, self.limit // _STEPS)
        self._opinions.clear()
