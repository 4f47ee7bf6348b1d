"""Recorded runs on the page: what members did, as if it happened now, faster or slower."""

import asyncio
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.dashboard.feed import Feed
from semcast.dashboard.picture import Picture, Seen
from semcast.history import History, Kind, read_histories
from semcast.history.events import Event
from semcast.history.schema import GONE

_STEP: Nanos = SECOND // 2
"""Recorded time between two pictures."""
_SPAN = 4
"""Steps that a rate is the mean of."""


class Film:
    """The pictures of one recorded group, in order.

    Args:
        history: of the group.
    """

    def __init__(self, history: History) -> None:
        self.group = history.info.only.name
        self._events = sorted(history.events, key=lambda event: (event.at, event.process, event.index))
        self.begin = self._events[0].at if self._events else 0
        self.end = self._events[-1].at if self._events else 0

    def frames(self, begin: Nanos, end: Nanos) -> Iterator[list[Seen]]:
        """Who was where at the end of each step of a run that all groups share."""
        there: dict[MemberId, _Track] = {}
        steps = iter(groupby(self._events, key=lambda event: (event.at - begin) // _STEP))
        step, events = next(steps, (None, iter(())))
        for number in range((end - begin) // _STEP + 1):
            if step == number:
                for event in events:
                    _take(there, event)
                step, events = next(steps, (None, iter(())))
            yield [track.seen(number * _STEP) for _, track in sorted(there.items()) if track.view is not None]


class _Track:
    """What one process did so far."""

    def __init__(self, event: Event) -> None:
        self._member = event.process
        self._began = event.at
        self.view: Event | None = None
        self._counts = {"sent": 0, "delivered": 0, "purged": 0}
        self._past: list[dict[str, int]] = []
        self._buffered = 0

    def take(self, event: Event) -> None:
        """It did this."""
        if event.kind is Kind.VIEW:
            self.view = event
        elif event.kind is Kind.MULTICAST:
            self._counts["sent"] += event.count
        elif event.kind is Kind.DELIVER:
            self._counts["delivered"] += event.count
        elif event.kind is Kind.PURGE:
            self._counts["purged"] += event.count
        elif event.kind is Kind.BUFFER:
            self._buffered = event.count

    def seen(self, since: Nanos) -> Seen:
        """As it stands now."""
        self._past = [*self._past[-_SPAN:], dict(self._counts)]
        seconds = (len(self._past) - 1) * _STEP / SECOND
        rates: dict[str, float | None] = {
            name: None if not seconds else (now - self._past[0][name]) / seconds
            for name, now in self._counts.items()
        }
        view = self.view
        assert view is not None
        return Seen(
            member=self._member,
            phase="recorded",
            view=view.view or 0,
            representative="" if view.sender is None else view.sender.name,
            size=len(view.members or ()),
            rates={**rates, "retransmitted": None},
            purged=self._counts["purged"],
            retransmitted=0,
            buffered=self._buffered,
            unread=0,
            unsent=0,
            uptime=since / SECOND,
        )


def _take(there: dict[MemberId, _Track], event: Event) -> None:
    if event.kind in GONE:
        there.pop(event.process, None)
        return
    if event.process not in there:
        there[event.process] = _Track(event)
    there[event.process].take(event)


def films(folder: Path) -> list[Film]:
    """The recorded groups in a folder. Raises HistoryError where there are none."""
    histories = [alone for history in read_histories(folder) for alone in history.by_group()]
    return [film for film in map(Film, histories) if film.end > film.begin]


async def play(feed: Feed, shown: list[Film], speed: float) -> None:
    """Show them once, so many times as fast as it was; what was there at the end stays on the page."""
    begin, end = min(film.begin for film in shown), max(film.end for film in shown)
    pictures = [(Picture(film.group), film.frames(begin, end)) for film in shown]
    total = (end - begin) // _STEP + 1
    for number in range(total):
        for picture, frames in pictures:
            picture.progress = (number + 1) / total
            picture.update((begin + number * _STEP) / SECOND, next(frames))
            feed.show(picture)
        await asyncio.sleep(_STEP / SECOND / speed)
