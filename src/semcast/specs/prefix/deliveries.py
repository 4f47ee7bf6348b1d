"""What is delivered: once, in the order of its sender, and only if it was multicast."""

from collections.abc import Collection, Iterator

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event
from semcast.history.schema import Kind
from semcast.specs.prefix.alarm import Alarm


class Deliveries:
    """The last message of each sender that each process delivered: one number for each pair.

    Args:
        promised: the properties of the group.
    """

    def __init__(self, promised: Collection[str]) -> None:
        self._promised = promised
        self._highest: dict[tuple[MemberId, MemberId], Event] = {}
        self._sent: dict[MemberId, int] = {}
        self._ended: set[MemberId] = set()

    def feed(self, event: Event) -> Iterator[Alarm]:
        """One more event of a process, in its order there."""
        if event.kind is Kind.MULTICAST:
            self._sent[event.process] = max(event.last, self._sent.get(event.process, 0))
        elif event.kind is Kind.DELIVER:
            assert event.sender is not None
            pair = event.process, event.sender
            before = self._highest.get(pair)
            if before is not None and event.seq <= before.last:
                yield from self._behind(before, event)
            if before is None or event.last > before.last:
                self._highest[pair] = event

    def _behind(self, before: Event, event: Event) -> Iterator[Alarm]:
        """It is not above all that came before: it comes again, or too late."""
        assert event.sender is not None
        message = MessageId(event.sender, event.seq)
        shown = before.only(before.last), event.only(event.seq)
        if event.seq == before.last and "integrity" in self._promised:
            yield Alarm("integrity", f"{event.process} delivered {message} again", shown)
        elif "fifo_delivery" in self._promised and event.seq < before.last:
            late = MessageId(event.sender, before.last)
            yield Alarm("fifo_delivery", f"{event.process} delivered {message} after {late}", shown)

    def ended(self, process: MemberId) -> None:
        """The recording of a process is over, and whole: it multicast nothing else."""
        self._ended.add(process)

    def settle(self) -> Iterator[Alarm]:
        """What was delivered, though the whole recording of its sender has no such message."""
        if "integrity" not in self._promised:
            return
        for (process, sender), event in list(self._highest.items()):
            last = self._sent.get(sender, 0)
            if sender in self._ended and event.last > last:
                message = MessageId(sender, max(event.seq, last + 1))
                shown = event.only(message.seq)
                yield Alarm("integrity", f"{process} delivered {message}, which nobody multicast", (shown,))
                del self._highest[process, sender]

    def size(self) -> int:
        """How many rows are remembered."""
        return len(self._highest)
