"""Drops obsolete messages from the queue of a slow client (Pereira 2002, chapter 3).

A message about an item is obsolete if the same client sent a later one about it to the same groups, and no
view of any of these groups lies between: what belongs to one view is never replaced by what belongs to the
next. The client is told what it missed, in one `Replaced` for each sender, groups and view.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import msgspec

from semcast.protocols.lightweight.events import (
    ClientEvent,
    Delivered,
    GroupView,
    LeftGroup,
    Replaced,
)
from semcast.protocols.lightweight.messages import Client

Stream = tuple[Client, tuple[str, ...]]
"""Messages of one sender to the same groups."""


class Pass:
    """One look through a queue, from the newest to the oldest."""

    barriers: ClassVar[tuple[type, ...]] = (GroupView, LeftGroup)

    def __init__(self) -> None:
        self._newest: dict[Stream, dict[str, int]] = {}  # the message about an item that replaces older ones
        self._receipts: dict[Stream, int] = {}  # where in what is kept
        self._kept: list[ClientEvent | None] = []  # newest first; None for a receipt that went elsewhere
        self.dropped = 0

    def over(self, events: Sequence[ClientEvent]) -> list[ClientEvent]:
        """What is left of these."""
        for event in reversed(events):
            if type(event) is Delivered and event.items is not None:
                self._look_at(event, event.items)
            elif type(event) is Replaced:
                self._note(event)
            else:
                if isinstance(event, self.barriers):
                    self._end_view(event)
                self._kept.append(event)
        return [event for event in reversed(self._kept) if event is not None]

    def _end_view(self, event: ClientEvent) -> None:
        assert isinstance(event, GroupView | LeftGroup)
        for stream in [stream for stream in self._newest if event.group in stream[1]]:
            del self._newest[stream]
        for stream in [stream for stream in self._receipts if event.group in stream[1]]:
            del self._receipts[stream]

    def _look_at(self, run: Delivered, items: list[str]) -> None:
        stream = run.sender, run.groups
        newest = self._newest.setdefault(stream, {})
        gone: list[int] = []
        by = 0
        for place in range(len(items) - 1, -1, -1):
            item = items[place]
            if item and item in newest:
                gone.append(place)
                by = max(by, newest[item])
            elif item:
                newest[item] = run.first + place
        if not gone:
            self._kept.append(run)
            return
        self.dropped += len(gone)
        lost = set(gone)
        left = [place for place in range(len(items)) if place not in lost]
        first, last = run.first + gone[-1], run.first + gone[0]
        self._kept.extend(reversed(list(_pieces(run, items, left))))
        self._note(Replaced(run.sender, run.groups, first, last, len(gone), by))

    def _note(self, receipt: Replaced) -> None:
        """One receipt for all of a stream in a view, where the oldest was: it comes before what is missed."""
        stream = receipt.sender, receipt.groups
        place = self._receipts.get(stream)
        if place is not None:
            other, self._kept[place] = self._kept[place], None
            assert isinstance(other, Replaced)
            receipt = Replaced(
                receipt.sender,
                receipt.groups,
                min(receipt.first, other.first),
                max(receipt.last, other.last),
                receipt.count + other.count,
                max(receipt.by, other.by),
            )
        self._receipts[stream] = len(self._kept)
        self._kept.append(receipt)


def _pieces(run: Delivered, items: list[str], left: list[int]) -> Iterator[Delivered]:
    """What is left of a run, in runs whose messages follow each other."""
    start, position = 0, run.position
    assert position is not None, "daemons order all runs"
    for end in range(1, len(left) + 1):
        if end == len(left) or left[end] != left[end - 1] + 1:
            here = left[start:end]
            payloads = [run.payloads[place] for place in here]
            yield msgspec.structs.replace(
                run,
                first=run.first + here[0],
                position=msgspec.structs.replace(position, index=position.index + here[0]),
                payloads=payloads,
                size=sum(map(len, payloads)),
                items=[items[place] for place in here],
            )
            start = end
