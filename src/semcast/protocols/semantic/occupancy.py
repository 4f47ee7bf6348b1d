"""Flow control: a bound on the total of buffered messages that cannot deadlock (Pereira 2002, 5.2.1).

Every sender keeps one slot of every buffer to itself. Take the lowest message m of a sender that some
member p lacks. Everything p queued of that sender is older than m, hence stable, hence leaves p's
retransmission buffer; the application takes the rest. So p comes to hold nothing of that sender, and
the slot is free for m. Messages that wait for a predecessor are a cache: they give way at any time.
"""


class Occupancy:
    """Messages and bytes held for retransmission or delivery, by sender; each message counts once."""

    def __init__(
        self, size: int, senders: tuple[int, ...], messages: int, size_limit: int, largest: int
    ) -> None:
        self._limit = messages
        self._limit_bytes = size_limit
        self._largest = largest
        self._held = [0] * size
        self._idle = set(senders)  # senders that hold nothing: a slot is kept for each
        self._senders = frozenset(senders)
        self.messages = 0
        self.bytes = 0
        self.cached = 0

    def add(self, rank: int, messages: int, size: int) -> None:
        """Messages of `rank` were queued."""
        self._held[rank] += messages
        self.messages += messages
        self.bytes += size
        self._idle.discard(rank)

    def remove(self, rank: int, messages: int, size: int) -> None:
        """Messages of `rank` are neither wanted for retransmission nor for delivery any more."""
        self._held[rank] -= messages
        self.messages -= messages
        self.bytes -= size
        assert self._held[rank] >= 0
        if self._held[rank] == 0 and rank in self._senders:
            self._idle.add(rank)

    def retire(self, rank: int) -> None:
        """A failed sender needs no slot."""
        self._senders -= {rank}
        self._idle.discard(rank)

    def room(self, rank: int) -> int:
        """How many more messages of `rank` may be queued."""
        kept = len(self._idle) - (rank in self._idle)
        by_bytes = (self._limit_bytes - self.bytes) // self._largest
        return max(min(self._limit - self.messages, by_bytes) - kept, 0)

    def excess(self, coming: int) -> int:
        """How many cached messages must give way before `coming` are queued."""
        return max(self.messages + self.cached + coming - self._limit, 0)

    def cache_room(self) -> bool:
        """Whether one more message may wait for its predecessor."""
        return self.messages + self.cached + len(self._idle) < self._limit
