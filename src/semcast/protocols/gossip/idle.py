"""Heartbeats of idle senders, by hash (5.1).

A sender that goes idle says so once, by multicast; afterwards members compare hashes of all they know. A
receiver cannot know that a sender is idle before it said so, hence a mark for each that did, which later data
clears. Senders of which nothing is known count as idle with 0: they are not in the hash at all.

Deviation: the hash is salted with the gossiper and its round. The paper's "collision-free" hash could hide
a difference for as long as both are idle; here a collision lasts one round. What is salted is a sum of one
number for each mark, which costs as much as changed, and not as much as there is.

Deviation: who has another hash is not told all marks, but some: where hundreds of senders pause now and then,
hashes hardly ever agree, and a difference is most likely about what was marked last.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b

from semcast.core.ids import MemberId
from semcast.protocols.gossip.frames import Entry

_MODULUS = 1 << 256
_TOLD = 64
"""Marks in one answer: half of them the latest, the others in turn with the rounds, so that none is left out
for good."""


class IdleMarks:
    """What idle senders said last."""

    __slots__ = (
        "_marks",
        "_sum",
    )

    def __init__(self) -> None:
        self._marks: dict[MemberId, int] = {}
        self._sum = 0

    def mark(self, stream: MemberId, seq: int) -> None:
        """Its sender is idle with this number."""
        before = self._marks.get(stream, 0)
        if seq > before:
            if before:
                self._clear(stream)  # to be the latest
            self._marks[stream] = seq
            self._sum += _number(stream, seq)

    def news(self, marks: Iterable[Entry]) -> list[Entry]:
        """Of what somebody else knows, what is not known here. Most of a list is: that has to cost little."""
        known = self._marks.get
        return [mark for mark in marks if mark[1] > known(mark[0], 0)]

    def data(self, stream: MemberId, seq: int) -> None:
        """Its sender sent this: if that is news, it is not idle."""
        if seq > self._marks.get(stream, seq):
            self._clear(stream)

    def forget(self, stream: MemberId) -> None:
        """The stream is over: everybody hears that from a logger."""
        self._clear(stream)

    def hash(self, gossiper: MemberId, number: int) -> bytes | None:
        """Of all marks, as the gossiper of a round would have it; None without any."""
        return _salted(self._sum, gossiper, number) if self._marks else None

    def some(self, number: int) -> list[Entry]:
        """What who asks in this round is told.

        >>> marks, p = IdleMarks(), [MemberId(f"p{number}") for number in range(128)]
        >>> for each in p: marks.mark(each, 1)
        >>> [[str(told[place][0]) for place in (0, 31, 32, 63)] for told in (marks.some(1), marks.some(2))]
        [['p127', 'p96', 'p63', 'p32'], ['p127', 'p96', 'p31', 'p0']]
        """
        latest = list(reversed(self._marks.items()))  # in the order in which they were marked
        if len(latest) <= _TOLD:
            return latest
        half = _TOLD // 2
        rest = latest[half:]
        turn = number * half % len(rest)
        return latest[:half] + (rest[turn:] + rest[:turn])[:half]

    def _clear(self, stream: MemberId) -> None:
        before = self._marks.pop(stream, None)
        if before is not None:
            self._sum -= _number(stream, before)


def salted(marks: Mapping[MemberId, int], gossiper: MemberId, number: int) -> bytes:
    """64 bits of a hash of marks, different for every gossiper and round."""
    return _salted(sum(_number(stream, seq) for stream, seq in marks.items()), gossiper, number)


def _salted(total: int, gossiper: MemberId, number: int) -> bytes:
    data = (total % _MODULUS).to_bytes(32)
    return blake2b(data, digest_size=8, salt=salt_of(gossiper, number)).digest()


def salt_of(gossiper: MemberId, number: int) -> bytes:
    """What makes a hash of a gossiper and a round differ from all others."""
    return blake2b(f"{gossiper}/{number}".encode(), digest_size=16).digest()


@lru_cache(maxsize=1 << 14)
def _number(stream: MemberId, seq: int) -> int:
    """What stands for a mark in the sum."""
    data = f"{stream.name}\0{stream.incarnation}\0{seq}"
    return int.from_bytes(blake2b(data.encode(), digest_size=32).digest())
