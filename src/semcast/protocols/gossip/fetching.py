"""Catching up from a log: who comes late, or back, asks its logger for a window of messages after the other.

Deviation: the paper asks once a round (4.3), and peers first. What is that old, peers have forgotten; and a
round for every window makes a session that was away for an hour wait for another. Here the next window is
asked for when half of the one before is there: that is the credit, since a full queue does not go on.
"""

from semcast.core.ids import MemberId
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.spans import within
from semcast.protocols.gossip.streams import WANTED, Stream

_OLD = 64
"""Who lacks so many at once that are logged does not ask peers for them."""


class Fetching:
    """What one member asks its logger for between rounds."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._window = max(1, min(WANTED, desk.settings.hold))
        self.behind: dict[MemberId, tuple[int, int]] = {}
        """Streams that are fetched: when to ask again, and up to where was asked."""

    def learn(self, stream: Stream, logged: int) -> None:
        """The log has a stream up to there."""
        if self._desk.logger is not None and logged - stream.known > _OLD:
            stream.leave_to_logger(logged)
            self.behind[stream.sender] = stream.next, stream.next

    def go_on(self) -> None:
        """Ask for what comes next of every stream that has come far enough."""
        for sender in list(self.behind):
            stream = self._desk.receiver.streams.get(sender)
            again, asked = self.behind[sender]
            if stream is None or stream.next >= stream.known:
                del self.behind[sender]
            elif stream.next >= again:
                spans = within(stream.missing(peers=False, most=self._window), asked + 1, stream.known)
                self.behind[sender] = stream.next + self._window // 2 + 1, stream.next + self._window
                self._desk.ask_logger([(sender, spans)] if spans else [])
