"""The variations of the buffer simulation (Pereira 2002, section 5.1.2).

Lazy purging: only to let a message into a full section, the oldest obsolete message first. A split
buffer: a section at the sender feeds one at the receiver, and each is purged only because of messages
that got that far. A safety delay: a message purges nothing until it has been in the buffer that long.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice

from semcast.core.ids import SECOND, Nanos
from semcast.models.distance import Key
from semcast.models.scenario import Scenario, Tally
from semcast.obsolescence import Purging

NEVER: Nanos = 1 << 62


@dataclass(slots=True, eq=False)
class _Message:
    seq: int
    key: Key
    usable_at: Nanos
    sum_sent: Nanos
    first_sent: Nanos
    stands_for: int = 1  # itself and what it replaced; their send times are in the two fields above
    entered: Nanos = 0
    section: "_Section | None" = None

    def replace(self, victim: "_Message") -> None:
        """Stand for another message and for all that it stood for."""
        self.stands_for += victim.stands_for
        self.sum_sent += victim.sum_sent
        self.first_sent = min(self.first_sent, victim.first_sent)


class _Section:
    """A part of the buffer: a queue, an index by key, and who is known to be obsolete."""

    __slots__ = ("_by_key", "_capacity", "_condemned", "_oldest", "messages")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.messages: OrderedDict[int, _Message] = OrderedDict()
        self._by_key: dict[Key, deque[_Message]] = {}
        self._condemned: dict[int, _Message] = {}  # victim -> because of whom
        self._oldest: list[int] = []  # the victims as a heap

    def full(self) -> bool:
        return len(self.messages) >= self._capacity

    def append(self, message: _Message) -> None:
        self.messages[message.seq] = message
        message.section = self
        if message.key is not None:
            self._by_key.setdefault(message.key, deque()).append(message)

    def remove(self, seq: int) -> _Message:
        """Remove the oldest message or the oldest victim: either is first in the heap, if in it."""
        message = self.messages.pop(seq)
        message.section = None
        if message.key is not None:
            related = self._by_key[message.key]
            related.remove(message)
            if not related:
                del self._by_key[message.key]
        if self._condemned.pop(seq, None) is not None:
            heappop(self._oldest)
        return message

    def condemn(self, by: _Message, reach: int) -> None:
        """`by`, in here or about to be, may be relied on: what it makes obsolete may go.

        Those with its key that came before became usable before: who is in reach of them is condemned.
        """
        for victim in reversed(self._by_key.get(by.key, ())):
            if victim.seq >= by.seq:
                continue
            if by.seq - victim.seq > reach or victim.seq in self._condemned:
                break
            self._condemned[victim.seq] = by
            heappush(self._oldest, victim.seq)

    def purge(self) -> _Message | None:
        """Remove the oldest obsolete message, if there is one."""
        if not self._oldest:
            return None
        by = self._condemned[self._oldest[0]]
        victim = self.remove(self._oldest[0])
        by.replace(victim)
        return victim


class Sections:
    """Any scenario, event by event."""

    def __init__(self, scenario: Scenario, gaps: Iterator[Nanos], keys: Iterator[Key]) -> None:
        self._stream = zip(gaps, keys, strict=False)
        self._lazy = scenario.purging is Purging.LAZY
        self._reach = scenario.reach
        self._service = scenario.service
        self._safety_delay = round(scenario.safety_delay * SECOND)
        self._receiver = _Section(scenario.n)
        self._sender = _Section(scenario.sender_n) if scenario.sender_n else self._receiver
        self._maturing: deque[_Message] = deque()  # in the order in which they become usable
        self._backlog = scenario.backlog
        self._seq = 0
        self._due = 0
        self._now = 0
        self._free_at = 0
        self._tally = Tally()

    def run(self, messages: int) -> Tally:
        """Send that many messages; returns what happened meanwhile."""
        self._tally = tally = Tally(began=self._now, peak=self._held())
        tally.stay -= sum(self._now - message.entered for message in self._present())
        for gap, key in islice(self._stream, messages):
            self._due = self._due + gap if self._backlog else self._now + gap
            self._send(key, self._due)
            tally.produced += 1
            tally.peak = max(tally.peak, self._held())
        tally.stay += sum(self._now - message.entered for message in self._present())
        tally.waiting = sum(message.stands_for for message in self._present())
        tally.ended = self._now
        return tally

    def _held(self) -> int:
        single = self._sender is self._receiver
        return len(self._receiver.messages) + (0 if single else len(self._sender.messages))

    def _send(self, key: Key, sent: Nanos) -> None:
        offered = max(self._now, sent)
        self._advance(offered)
        self._seq += 1
        message = _Message(self._seq, key, NEVER if self._safety_delay else 0, sent, sent)
        while not self._admit(message, self._sender):
            self._advance(self._next_event())
        self._sender.append(message)
        self._tally.blocked += self._now - offered
        message.entered = self._now
        if self._safety_delay:
            message.usable_at = self._now + self._safety_delay
            self._maturing.append(message)
        self._settle()

    def _present(self) -> Iterator[_Message]:
        yield from self._receiver.messages.values()
        if self._sender is not self._receiver:
            yield from self._sender.messages.values()

    def _next_event(self) -> Nanos:
        free_at = self._free_at if self._receiver.messages else NEVER
        return min(free_at, self._maturing[0].usable_at) if self._maturing else free_at

    def _advance(self, until: Nanos) -> None:
        """Let everything happen that happens up to then."""
        while (at := self._next_event()) <= until:
            self._now = at
            self._settle()
            while self._maturing and self._maturing[0].usable_at <= at:
                self._mature(self._maturing.popleft())
            self._settle()
        self._now = until

    def _mature(self, message: _Message) -> None:
        if message.section is not None:
            message.section.condemn(message, self._reach)
            self._purge_eagerly(message.section)

    def _settle(self) -> None:
        """Whoever can move on does."""
        moved = True
        while moved:
            moved = self._take() or self._feed()

    def _take(self) -> bool:
        if not self._receiver.messages or self._free_at > self._now:
            return False
        message = self._receiver.remove(next(iter(self._receiver.messages)))
        now, tally = self._now, self._tally
        self._free_at = now + self._service
        tally.consumed += 1
        tally.conveyed += message.stands_for
        tally.stay += now - message.entered
        tally.delay += now - message.entered
        tally.delay_max = max(tally.delay_max, now - message.entered)
        tally.latency += message.stands_for * now - message.sum_sent
        tally.latency_max = max(tally.latency_max, now - message.first_sent)
        return True

    def _feed(self) -> bool:
        if self._sender is self._receiver or not self._sender.messages:
            return False
        first = next(iter(self._sender.messages.values()))
        if not self._admit(first, self._receiver):
            return False
        self._receiver.append(self._sender.remove(first.seq))
        return True

    def _admit(self, message: _Message, section: _Section) -> bool:
        """Whether a section has room for a message, or purging makes some."""
        if message.usable_at <= self._now:
            section.condemn(message, self._reach)
            self._purge_eagerly(section)
        return not section.full() or (self._lazy and self._purge(section))

    def _purge_eagerly(self, section: _Section) -> None:
        while not self._lazy and self._purge(section):
            pass

    def _purge(self, section: _Section) -> bool:
        victim = section.purge()
        if victim is None:
            return False
        self._tally.purged += 1
        self._tally.stay += self._now - victim.entered
        return True
