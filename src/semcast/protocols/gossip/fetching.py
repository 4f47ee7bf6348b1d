"""Catching up from a log: who comes late, or back, asks its logger for a window of messages after the other.

Deviation: the paper asks once a round (4.3), and peers first. What is that old, peers have forgotten; and a
round for every window makes a session that was away for an hour wait for another.

So does who had no room for what came, because its program did not read: it lacks more than one request asks
for.

The window is the credit of the logger, which sends nothing that was not asked for. It is one for all streams
together, and no larger than the room there is for what comes: a session of a log with hundreds of streams
must not be sent hundreds of windows, nor anything while its program does not read. It is a number of bytes,
which have to fit into the buffer of a socket; how many messages that is follows from the size of those that
came last.
"""

from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.spans import Span, first_of, within
from semcast.protocols.gossip.streams import WANTED, Stream

WINDOW = 8192
"""Messages that are asked for and have not come, at most."""
WINDOW_BYTES = 1 << 21
"""Bytes of these, about."""
_FIRST = 1024
"""Bytes that a message is taken to have before any has come."""
_BESIDE = 64
"""Bytes that a message takes besides its payload."""
_OLD = 64
"""Who hears of so many more at once, and they are logged, does not ask peers for them."""


class Fetching:
    """What one member asks its logger for between rounds."""

    __slots__ = (
        "_before",
        "_desk",
        "_each",
        "_most",
        "_streams",
        "behind",
    )

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._streams = desk.receiver.streams
        self._most = min(WINDOW, desk.settings.hold)
        self._each = _FIRST + _BESIDE  # bytes of a message, as of those that came last
        self.behind: dict[MemberId, int] = {}
        """Streams that are fetched, and up to where was asked."""
        self._before: dict[MemberId, tuple[int, int]] = {}  # how far they were in the last round
        desk.fetched = self.behind

    def learn(self, stream: Stream, logged: int) -> None:
        """The log has a stream up to there."""
        if self._desk.logger is not None and logged - stream.known > _OLD:
            stream.leave_to_logger(logged)
            self.behind.setdefault(stream.sender, stream.next)

    def came(self, batch: Batch) -> None:
        """Messages came while something is fetched: the next will have about the same size."""
        self._each += (batch.size // len(batch.payloads) + _BESIDE - self._each) // 4

    def go_on(self) -> None:
        """Ask for more when half of the window has come."""
        if not self.behind:
            return
        under_way = self._look()
        window = max(1, min(self._most, WINDOW_BYTES // self._each))
        free = min(window, self._desk.receiver.credit()) - under_way
        if free < 1 or 2 * under_way > window:
            return
        lacking: list[tuple[MemberId, list[Span]]] = []
        for sender, asked in self.behind.items():
            if free < 1:
                break
            stream = self._streams[sender]
            missing = stream.missing(peers=False, most=self._desk.settings.hold)
            spans = first_of(within(missing, asked + 1, stream.known), free)
            free -= sum([last - first + 1 for first, last in spans])
            lacking.append((sender, spans))
        for sender, spans in self._desk.ask_logger(lacking):
            del self.behind[sender]  # the others come first the next time
            self.behind[sender] = spans[-1][1]

    def _look(self) -> int:
        """Forget what has come; returns how many messages are under way."""
        under_way = 0
        for sender, asked in list(self.behind.items()):
            stream = self._streams.get(sender)
            if stream is None or stream.is_through_log():  # what came since is asked for as usual
                del self.behind[sender]
                self._before.pop(sender, None)
            elif asked > stream.next:
                under_way += stream.lacks(asked)
        return under_way

    def _see_who_spilled(self) -> None:
        """Streams of which much is missing that was heard of, because there was no room for it."""
        desk, logger = self._desk, self._desk.logger
        if logger is None:
            return
        for stream in desk.receiver.lagging():
            logged = desk.logged.at(logger.name, stream.sender)
            far = logged - stream.next > WANTED and stream.sender not in self.behind
            if far and stream.lacks(logged) > WANTED:
                stream.leave_to_logger(logged)
                self.behind[stream.sender] = stream.next

    def on_round(self) -> None:
        """What was asked for and does not come was lost: ask for it again."""
        self._look()
        self._see_who_spilled()
        for sender, asked in self.behind.items():
            stream = self._streams[sender]
            came = stream.next, stream.holds
            if self._before.get(sender) == came and asked > stream.next:
                self.behind[sender] = stream.next
            self._before[sender] = came
        self.go_on()
