"""What became of this member's messages, for who asks (`Stack.confirm`).

A message is delivered once all packets before it are here, and safe where that was asked for: then it is
handed over in this configuration, even if the next one begins before the application has taken it. Everybody
has what `aru` has confirmed. Positions are the numbers of packets.
"""

from collections import deque
from collections.abc import Sequence

from semcast.core.confirming import Asked, Confirming
from semcast.core.outbox import Outbox
from semcast.core.views import View
from semcast.protocols.ring.frames import Packet
from semcast.protocols.ring.ordering import RingOrder


class Answers:
    """First a message waits for its number, then for what becomes of its packet."""

    def __init__(self, out: Outbox) -> None:
        self._waiting: deque[Asked] = deque()
        self._sent = Confirming(out)
        self._left = (0, 0)  # the last message that has left, and the number of its packet

    def ask(self, ticket: int, message: int, *, safe: bool) -> int:
        """About the message that was queued last; returns its packet, if it has left and has to be safe."""
        upto, seq = self._left
        if message > upto:
            self._waiting.append(Asked(ticket, message, safe))
            return 0
        self._sent.ask(Asked(ticket, seq, safe))
        return seq if safe else 0

    def numbered(self, packets: Sequence[Packet]) -> int:
        """Packets of this member got their numbers; returns the highest of those that have to be safe."""
        if packets:
            self._left = _last_message(packets[-1]), packets[-1].seq
        safe = 0
        for packet in packets if self._waiting else ():
            upto = _last_message(packet)
            while self._waiting and self._waiting[0].number <= upto:
                asked = self._waiting.popleft()
                self._sent.ask(Asked(asked.ticket, packet.seq, asked.safe))
                safe = packet.seq if asked.safe else safe
        return safe

    def settle(self, order: RingOrder, view: View) -> None:
        """Answer what is known by now."""
        if self._sent:
            delivered = order.in_order(self._sent.last)
            self._sent.settle(view, delivered=delivered, safe=order.confirmed_aru)

    def end(
        self, order: RingOrder, last: Sequence[Packet], view: View, following: View, *, together: bool
    ) -> None:
        """The configuration is over, and these packets are the last that are delivered in it.

        If all of its members but those who left go on `together`, everybody has them.
        """
        delivered = last[-1].seq if last else order.delivered
        known = max([packet.seq for packet in last if packet.safe], default=0)
        safe = delivered if together else max(known, order.confirmed_aru)
        self._sent.settle(view, delivered=delivered, safe=safe)
        self._sent.end(view, following)


def _last_message(packet: Packet) -> int:
    """The last that is complete with it."""
    last = packet.parts[-1]
    return last.first - 1 if last.left else last.first + len(last.payloads) - 1
