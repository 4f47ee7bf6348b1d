"""The messages of a history, with those taken together that no row of it tells apart.

A part is a longest span of one sender's messages that every row has as a whole or not at all. So what
holds for one message of a part holds for all of it, checkers go through parts instead of messages, and no
verdict depends on how a recorder cut its rows. Parts are numbered in the order of (sender, seq).
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind

_MESSAGES = (Kind.MULTICAST, Kind.DELIVER, Kind.PURGE)


class Parts:
    """All parts of a history.

    >>> from semcast.core import MemberId
    >>> from semcast.core.messages import batch_of
    >>> from semcast.history import Recorder, RunInfo
    >>> a, b = MemberId("a"), MemberId("b")
    >>> recorder = Recorder(RunInfo.one("demo", "g", "ring", 1, (a, b), None, uniform=False, quiesced=False))
    >>> recorder.multicast(0, a, batch_of(a, 1, [b""] * 9))
    >>> recorder.deliver(0, b, batch_of(a, 3, [b""] * 4))
    >>> history = recorder.close(quiesced=True)
    >>> parts = Parts(history)
    >>> [parts.weigh([part]) for part in parts.of(history.events[0])]
    [2, 4, 3]
    """

    def __init__(self, history: History) -> None:
        cuts: dict[MemberId, set[int]] = {}
        for event in history.events:
            if event.kind in _MESSAGES:
                assert event.sender is not None
                cuts.setdefault(event.sender, set()).update((event.seq, event.last + 1))
                if event.by is not None:
                    cuts.setdefault(event.by.sender, set()).update((event.by.seq, event.by.seq + 1))
        self._sender: list[MemberId] = []
        self._firsts: list[int] = []
        self._starting: dict[MemberId, dict[int, int]] = {}
        for sender in sorted(cuts):
            places = sorted(cuts[sender])
            begin = len(self._firsts)
            self._starting[sender] = {seq: begin + place for place, seq in enumerate(places)}
            self._sender.extend([sender] * len(places))
            self._firsts.extend(places)

    def __len__(self) -> int:
        return len(self._firsts)

    def of(self, event: Event) -> range:
        """The parts that a row is about."""
        assert event.sender is not None
        starting = self._starting[event.sender]
        return range(starting[event.seq], starting[event.last + 1])

    def holding(self, message: MessageId) -> int:
        """The part of a message that some row is about, or names as a replacement, alone."""
        return self._starting[message.sender][message.seq]

    def around(self, message: MessageId) -> int:
        """The part of any message of the history."""
        starting = self._starting[message.sender]
        begin = next(iter(starting.values()))
        return begin + bisect_right(list(starting), message.seq) - 1

    def sender(self, part: int) -> MemberId:
        """Whose messages they are."""
        return self._sender[part]

    def first(self, part: int) -> MessageId:
        """The first message of a part."""
        return MessageId(self._sender[part], self._firsts[part])

    def last(self, part: int) -> MessageId:
        """The last message of a part."""
        return MessageId(self._sender[part], self._firsts[part + 1] - 1)

    def messages(self, parts: Iterable[int]) -> Iterator[MessageId]:
        """The messages one by one."""
        for part in parts:
            for seq in range(self._firsts[part], self._firsts[part + 1]):
                yield MessageId(self._sender[part], seq)

    def weigh(self, parts: Iterable[int]) -> int:
        """How many messages that is."""
        return sum(self._firsts[part + 1] - self._firsts[part] for part in parts)
