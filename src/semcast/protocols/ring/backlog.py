"""How much waits for the program, and how much more is taken (rules 1 to 5 of docs/flow-control.md).

While the program reads, messages are taken up to the queue (Q), which has a bound in messages and one in
bytes. One that waits in `send` reads nothing, and may wait for what others send first: then messages are
taken into the reserve (R), too. The reserve is counted in bytes, since it is there to bound memory: messages
that exceed the queue count at the mean size of what waits.
"""

from semcast.core.messages import Batch
from semcast.protocols.ring.delivery import DeliveryQueue
from semcast.protocols.ring.member import Member
from semcast.protocols.ring.settings import OVERHEAD


class Backlog:
    """The D of the formulas: messages in the delivery queue, and those in the mailbox beyond its bound."""

    def __init__(self, member: Member, queue: DeliveryQueue) -> None:
        self._member = member
        self._queue = queue
        self._most = member.settings.queue_messages
        self._most_bytes = member.settings.queue_bytes
        self._reserve = member.settings.reserve_bytes

    def __len__(self) -> int:
        return len(self._queue) + self._member.reader.excess

    @property
    def bytes(self) -> int:
        """Of all that waits."""
        return self._queue.bytes + self._member.reader.excess_bytes

    @property
    def limit(self) -> int:
        """How many messages the queue may hold without the reserve."""
        return self._most - self._member.reader.excess

    @property
    def limit_bytes(self) -> int:
        """And how many bytes."""
        return self._most_bytes - self._member.reader.excess_bytes

    def room_for(self, batch: Batch) -> int:
        """How many messages like these the reserve has room for, which is for programs that wait."""
        used = max((len(self) - self._most) * self._mean(), self.bytes - self._most_bytes, 0)
        each = max(self._mean(), OVERHEAD + batch.size // len(batch.payloads))
        return max(-(-(self._reserve - used) // each), 0)

    def _mean(self) -> int:
        """What each message counts for in the reserve."""
        queue = self._queue
        return OVERHEAD + (queue.bytes // len(queue) if len(queue) else 0)

    @property
    def full(self) -> bool:
        """Whether the queue is full; more may wait, in the reserve or because a change handed it over."""
        return len(self) >= self._most or self.bytes >= self._most_bytes

    @property
    def stops(self) -> bool:
        """Whether nobody should send anything new before the program has taken something.

        Not with a queue that is just full: under the policy to purge it must go on receiving, or nothing
        comes that replaces what is obsolete.
        """
        reader, queue = self._member.reader, self._queue
        over = queue.messages + reader.excess > self._most or queue.bytes > max(
            queue.limit_bytes, queue.tolerated
        )
        return over and reader.receives and not reader.closing

    @property
    def overflowing(self) -> bool:
        """Whether the reserve is full, too: nothing more is taken, whoever waits."""
        return self.full and self._exceeds(len(self) - self._most, self.bytes - self._most_bytes)

    @property
    def overfull(self) -> bool:
        """Whether more waits than queue and reserve hold: a change of configuration has forced it in.

        What comes last may exceed the reserve.
        """
        size = self._queue.bytes - max(self._queue.limit_bytes, self._queue.tolerated) - self._queue.newest
        return self.stops and self._exceeds(len(self) - self._most - 1, size)

    def _exceeds(self, messages: int, size: int) -> bool:
        """Whether so much beyond the queue fills the reserve."""
        return messages * self._mean() >= self._reserve or size >= self._reserve
