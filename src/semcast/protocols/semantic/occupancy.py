"""What is kept for others: a bound that cannot deadlock (Pereira 2002, 5.2.1).

Every sender keeps one slot of every buffer, and room for one message of the largest size, to itself. Take
the lowest message m of a sender that some member p lacks. Everything p queued of that sender is older than
m, hence stable, hence leaves p's retransmission buffer. So p comes to hold nothing of that sender, and there
is room for m, whatever waits for p's program: that is another account (`backlog.py`). It goes for crashed
senders, too: it is their messages that somebody may still miss. Messages that wait for a predecessor, or for
room in the other account, are a cache: they give way at any time.
"""


class Occupancy:
    """Messages and bytes that are not stable, by sender."""

    def __init__(
        self, size: int, senders: tuple[int, ...], messages: int, size_limit: int, largest: int
    ) -> None:
        self._limit = messages
        self._limit_bytes = size_limit
        self._largest = largest
        self._senders = frozenset(senders)
        self._held = [0] * size
        self._held_bytes = [0] * size
        self._idle = set(senders)  # senders that hold nothing: a slot is kept for each
        self._unused = len(self._senders) * largest  # bytes kept for senders and not used by them
        self.messages = 0
        self.bytes = 0
        self.cached = 0
        self.cached_bytes = 0

    def add(self, rank: int, messages: int, size: int) -> None:
        """Messages of `rank` were queued."""
        self._held[rank] += messages
        self.messages += messages
        self._resize(rank, size)
        self._idle.discard(rank)

    def remove(self, rank: int, messages: int, size: int) -> None:
        """Messages of `rank` are stable, or were purged."""
        self._held[rank] -= messages
        self.messages -= messages
        self._resize(rank, -size)
        assert self._held[rank] >= 0
        if self._held[rank] == 0 and rank in self._senders:
            self._idle.add(rank)

    def room(self, rank: int, spare: int = 0, size: int = 0) -> int:
        """How many more messages of `rank` may be queued.

        They are as large as messages can be, `spare` bytes less together, or unless their `size` is given.
        """
        kept = len(self._idle) - (rank in self._idle)
        kept_bytes = self._unused - max(self._largest - self._held_bytes[rank], 0)
        left = self._limit_bytes - self.bytes + spare - kept_bytes
        return max(min(self._limit - self.messages - kept, left // (size or self._largest)), 0)

    def cache(self, messages: int, size: int) -> None:
        """So many more messages (or fewer) wait to be queued."""
        self.cached += messages
        self.cached_bytes += size

    def cache_room(self, messages: int, size: int) -> bool:
        """Whether more messages may wait."""
        return not self.crowded(messages + len(self._idle), size)

    def crowded(self, coming: int, size: int) -> bool:
        """Whether cached messages must give way before these are queued."""
        messages = self.messages + self.cached + coming
        size += self.bytes + self.cached_bytes
        return messages > self._limit or size > self._limit_bytes

    def _resize(self, rank: int, by: int) -> None:
        before = self._held_bytes[rank]
        after = self._held_bytes[rank] = before + by
        self.bytes += by
        if rank in self._senders:
            largest = self._largest
            self._unused += max(largest - after, 0) - max(largest - before, 0)
