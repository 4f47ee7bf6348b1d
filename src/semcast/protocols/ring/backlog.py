"""How much waits for the program, and how much more is taken (rules 1 to 5 of docs/flow-control.md).

While the program reads, messages are taken up to the queue (Q). One that waits in `send` reads nothing, and
may wait for what others send first: then messages are taken into the reserve (R), too. The reserve is counted
in bytes, since it is there to bound memory: what exceeds the queue counts at the mean size of what waits.
"""

from semcast.protocols.ring.delivery import DeliveryQueue
from semcast.protocols.ring.member import Member
from semcast.protocols.ring.settings import OVERHEAD


class Backlog:
    """The D of the formulas: messages in the delivery queue, and those in the mailbox beyond its bound."""

    def __init__(self, member: Member, queue: DeliveryQueue) -> None:
        self._member = member
        self._queue = queue
        self._most = member.settings.queue_messages
        self._reserve_bytes = member.settings.reserve_bytes
        self._mean = OVERHEAD  # bytes of a message, when that was looked at last

    def __len__(self) -> int:
        return len(self._queue) + self._member.reader.excess

    @property
    def limit(self) -> int:
        """How many messages the queue may hold without the reserve."""
        return self._most - self._member.reader.excess

    @property
    def reserve(self) -> int:
        """How many more fit into the reserve, which is for programs that wait."""
        queue = self._queue
        if len(queue):
            self._mean = OVERHEAD + queue.bytes // len(queue)
        return -(-self._reserve_bytes // self._mean)

    @property
    def full(self) -> bool:
        """Whether the queue is full; more may wait, in the reserve or because a change handed it over."""
        return len(self) >= self._most

    @property
    def stops(self) -> bool:
        """Whether nobody should send anything new before the program has taken something.

        Not with a queue that is just full: under the policy to purge it must go on receiving, or nothing
        comes that replaces what is obsolete.
        """
        reader = self._member.reader
        return self._queue.messages + reader.excess > self._most and reader.receives and not reader.closing

    @property
    def overflowing(self) -> bool:
        """Whether the reserve is full, too: nothing more is taken, whoever waits."""
        return self.full and len(self) >= self._most + self.reserve

    @property
    def overfull(self) -> bool:
        """Whether more waits than queue and reserve hold: a change of configuration has forced it in."""
        return self.stops and len(self) > self._most + self.reserve
