"""The sending side (3.1): numbers, what no logger has acknowledged yet, and the heartbeat of an idle sender.

Deviation: the window. The paper has no flow control; here a sender stops when it is `window` messages, or
`window_bytes`, beyond what is logged, and for no other reason. Without a logger nothing waits.
"""

from collections import deque

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.protocols.gossip.settings import GossipSettings
from semcast.protocols.gossip.spans import Span

RESENT = 64
"""Messages that are sent to a logger again at a time."""


class _Unlogged(msgspec.Struct):
    """Messages that left together."""

    batch: Batch
    at: Nanos
    """When they were sent to loggers last."""


class Sender:
    """The own stream of a member."""

    def __init__(self, me: MemberId, settings: GossipSettings) -> None:
        self.me = me
        self.seq = 0
        self.logged = 0
        """Everything up to here is logged, and forgotten here."""
        self.fenced = False
        """Whether a logger has closed this stream, though its sender is there."""
        self._durable = settings.logs
        self._window = settings.window
        self._resend = settings.resend
        self._window_bytes = settings.window_bytes
        self._sendbuf: deque[_Unlogged] = deque()
        self._bytes = 0  # of these
        self._least, self._most = settings.heartbeat_least, settings.heartbeat_most
        self._pause = settings.heartbeat_least

    def room(self) -> int:
        """How many more messages may be sent."""
        if self.fenced or self._bytes >= self._window_bytes:
            return 0
        return self._window - (self.seq - self.logged) if self._durable else 1 << 30

    def sent(self, now: Nanos, batch: Batch) -> None:
        """Messages left: kept until they are logged."""
        self.seq = batch.last
        self._pause = self._least
        if self._durable:
            self._sendbuf.append(_Unlogged(batch, now))
            self._bytes += batch.size
        else:
            self.logged = self.seq

    def acknowledged(self, upto: int) -> Span | None:
        """A logger has everything up to there; returns what can be let go for that."""
        upto = min(upto, self.seq)
        if upto <= self.logged:
            return None
        first, self.logged = self.logged + 1, upto
        sendbuf = self._sendbuf
        while sendbuf and sendbuf[0].batch.last <= upto:
            self._bytes -= sendbuf.popleft().batch.size
        if sendbuf and sendbuf[0].batch.first <= upto:
            whole = sendbuf[0].batch
            sendbuf[0].batch = whole.cut(upto + 1, whole.last)
            self._bytes -= whole.size - sendbuf[0].batch.size
        return first, upto

    def overdue(self, now: Nanos) -> list[Batch]:
        """What a logger should have acknowledged by now: it is sent to it once more."""
        due: list[Batch] = []
        count = 0
        for each in self._sendbuf:
            if count >= RESENT:
                break
            if now - each.at >= self._resend:
                each.at = now
                due.append(each.batch)
                count += len(each.batch.payloads)
        return due

    def unlogged(self, first: int, last: int) -> list[Batch]:
        """Messages between two numbers that no logger has acknowledged."""
        some = [each.batch for each in self._sendbuf if each.batch.first <= last and each.batch.last >= first]
        return [batch.cut(max(first, batch.first), min(last, batch.last)) for batch in some]

    def pause(self) -> Nanos:
        """How long to wait for the next heartbeat: doubled each time, up to a bound (1.3, 5.1)."""
        pause, self._pause = self._pause, min(2 * self._pause, self._most)
        return pause
