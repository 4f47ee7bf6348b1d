"""Who may have how much under way, so that senders leave each other room; and when others must hear of it.

Beyond the papers, whose only limit is the buffer of whoever sends: where several send at once, each fills its
own, and then refuses what the others send, which must be repaired.
"""

from collections.abc import Iterable

from semcast.core.ids import Nanos
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.semantic.exchange import Window
from semcast.protocols.semantic.stops import Stops
from semcast.protocols.vsync.settings import VsyncSettings


class Shares:
    """Of one member in a view of `size`. Who sends alone has all; where several do, each has its share."""

    def __init__(self, settings: VsyncSettings, size: int) -> None:
        self._fair = settings.fair
        self._messages = settings.buffer_messages
        self._bytes = settings.window_bytes or settings.buffer_bytes
        self.tell_every = max(min(self._messages // 8, self.messages(size) // 2), 1)
        """So many messages that came are worth a word, lest their sender waits for it."""
        self.tell_bytes = self.bytes(size) // 2
        """Or so many bytes."""

    def messages(self, senders: int) -> int:
        """What one of so many senders may have under way, with room left for one more."""
        return max(self._messages // (senders + 1), 1) if self._fair else self._messages

    def bytes(self, senders: int) -> int:
        """The same in bytes."""
        return self._bytes // senders


class FairWindow(Window):
    """Of one member in a view: nothing before those who joined are there, then its share among the senders.

    Args:
        me: rank of this member.
        buffers: what is under way.
        settings: of the group.
        stops: who wants nothing new.
        newcomers: ranks of those who joined with this view.
    """

    def __init__(
        self, me: int, buffers: Buffers, settings: VsyncSettings, stops: Stops, newcomers: Iterable[int]
    ) -> None:
        super().__init__(me, buffers, stops)
        self.shares = Shares(settings, len(buffers.members))
        self._awaited = set(newcomers)  # and not heard yet
        self._until: Nanos = 0

    def begin(self, until: Nanos) -> None:
        """Nobody is waited for longer than that."""
        self._until = until

    def heard(self, rank: int) -> None:
        """A member is there."""
        self._awaited.discard(rank)

    def tick(self, now: Nanos) -> None:
        """Time passes."""
        if now >= self._until:
            self._awaited.clear()

    def allowance(self) -> int:
        """How many more messages of this member may be under way, whether there is room for them or not.

        What everybody has and nobody can deliver, since it has no place in the order yet, is under way.
        """
        if self._awaited:
            return 0
        mine, senders = self._buffers.retained[self._me], self._sending()
        if mine.bytes >= self.shares.bytes(senders):
            return 0
        unplaced = self._buffers.order.unplaced(self._me, self._buffers.stable[self._me])
        return min(super().allowance(), self.shares.messages(senders) - len(mine)) - unplaced

    def _sending(self) -> int:
        """Members that have messages under way, this one included."""
        queued, stable = self._buffers.queued, self._buffers.stable
        return sum(map(int.__gt__, queued, stable)) + (queued[self._me] == stable[self._me])
