"""What is delivered is what was multicast: rows are remembered until both sides have them."""

from collections.abc import Iterator

from semcast.core.ids import MemberId
from semcast.history.events import Event
from semcast.history.schema import Kind
from semcast.specs.contents import known_contents, stretches
from semcast.specs.prefix.alarm import Alarm

_MOST = 1 << 14
"""Rows of one sender that are remembered; older ones are not compared any more."""


class Contents:
    """Rows with the CRC of their messages, of senders and of receivers, as far as they are not compared."""

    def __init__(self) -> None:
        self.passed_over = 0
        """Messages that were delivered and not compared, since others were too far behind."""
        self._sent: dict[MemberId, list[Event]] = {}
        self._delivered: dict[tuple[MemberId, MemberId], list[Event]] = {}

    def feed(self, event: Event) -> None:
        """One more event."""
        if event.crc is None:
            return
        if event.kind is Kind.MULTICAST:
            self._sent.setdefault(event.process, []).append(event)
        elif event.kind is Kind.DELIVER:
            assert event.sender is not None
            self._delivered.setdefault((event.process, event.sender), []).append(event)

    def settle(self) -> Iterator[Alarm]:
        """Compare what is there of both sides, and forget it."""
        reached: dict[MemberId, int] = {}
        for (process, sender), rows in self._delivered.items():
            upto = 0
            for stretch in stretches(known_contents(self._sent.get(sender, [])), known_contents(rows)):
                upto = stretch.sent[-1].last
                if stretch.differs:
                    yield Alarm(
                        "integrity",
                        f"{process} delivered {stretch} with other contents than were multicast",
                        (stretch.sent[0], stretch.delivered[0]),
                    )
            left = [row for row in rows if row.last > upto]
            self.passed_over += sum(row.count for row in left[:-_MOST])
            rows[:] = left[-_MOST:]
            least = rows[0].seq - 1 if rows else upto
            reached[sender] = min(reached.get(sender, least), least) if upto or rows else 0
        for sender, sent in self._sent.items():
            sent[:] = [row for row in sent if row.last > reached.get(sender, 0)][-_MOST:]

    def size(self) -> int:
        """How many rows are remembered."""
        return sum(map(len, self._sent.values())) + sum(map(len, self._delivered.values()))
