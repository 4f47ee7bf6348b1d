"""What messages contain, by the CRCs of the runs in which they were recorded.

Sender and receiver cut runs differently. Between two places where both cut, and with nothing missing on
either side, the CRCs of the rows can be put together and compared. Such a stretch is as short as can be.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from semcast.history.crc import crc32_combine
from semcast.history.events import Event


class Stretch(NamedTuple):
    """Rows of both sides about the same messages of one sender."""

    sent: Sequence[Event]
    delivered: Sequence[Event]

    @property
    def messages(self) -> int:
        """How many messages they are about."""
        return self.sent[-1].last - self.sent[0].seq + 1

    @property
    def differs(self) -> bool:
        """Whether their sizes or their contents are not the same."""
        return _sum(self.sent) != _sum(self.delivered)

    def __str__(self) -> str:
        first, last = self.sent[0].seq, self.sent[-1].last
        return f"({self.sent[0].process},{first if first == last else f'{first}..{last}'})"


def known_contents(rows: Sequence[Event]) -> list[Event]:
    """The rows about messages of one sender whose contents are known, in the order of their numbers.

    Rows that overlap are left out: one of their messages is there twice, and cannot be told apart.
    """
    known = sorted((row for row in rows if row.crc is not None), key=attrgetter("seq", "last"))
    found: list[Event] = []
    highest = 0
    for place, row in enumerate(known):
        following = known[place + 1].seq if place + 1 < len(known) else row.last + 1
        if row.seq > highest and following > row.last:
            found.append(row)
        highest = max(highest, row.last)
    return found


def stretches(sent: Sequence[Event], delivered: Sequence[Event]) -> Iterator[Stretch]:
    """The stretches in which rows of known contents line up."""
    one = other = 0
    while one < len(sent) and other < len(delivered):
        if sent[one].seq != delivered[other].seq:
            if sent[one].seq < delivered[other].seq:
                one += 1
            else:
                other += 1
            continue
        begin = one, other
        while sent[one].last != delivered[other].last:
            if sent[one].last < delivered[other].last:
                if not _goes_on(sent, one):
                    break
                one += 1
            else:
                if not _goes_on(delivered, other):
                    break
                other += 1
        else:
            yield Stretch(sent[begin[0] : one + 1], delivered[begin[1] : other + 1])
        one, other = one + 1, other + 1


def not_compared(messages: int) -> str:
    """A note on so many deliveries of unknown contents."""
    return f"contents not compared: {messages}" if messages else ""


def _goes_on(rows: Sequence[Event], place: int) -> bool:
    """Whether the next row follows without a gap."""
    return place + 1 < len(rows) and rows[place + 1].seq == rows[place].last + 1


def _sum(rows: Sequence[Event]) -> tuple[int, int]:
    """Size and CRC of all."""
    size = crc = 0
    for row in rows:
        assert row.crc is not None
        crc = crc32_combine(crc, row.crc, row.size)
        size += row.size
    return size, crc
