"""A folder of recordings that are still written, and what can be said of them so far."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from semcast.core.ids import SECOND, Nanos
from semcast.history import HistoryError
from semcast.history.events import GroupInfo
from semcast.history.following import Following
from semcast.history.journal import SUFFIX
from semcast.specs.prefix import Alarm, GroupWatch


class FolderLook(msgspec.Struct, frozen=True):
    """What one look at the folder came to."""

    events: int
    """That were judged so far."""
    new: int
    """Of these, since the look before."""
    processes: int
    running: int
    """Processes whose recordings are not over."""
    lag: float
    """Seconds since the oldest of the new events was recorded: so late they are judged."""
    silent: float
    """Seconds since the newest event was recorded."""
    unread: int
    """Bytes that came while this look went on."""
    judged: tuple[str, ...]
    suspected: int
    remembered: int
    """Rows in memory."""


class Watched(msgspec.Struct, frozen=True):
    """What is wrong with a run."""

    run: str
    group: str
    alarm: Alarm


class Folder:
    """All journals of a folder, or those of one group.

    Args:
        path: the folder. Journals of processes that begin later are found when they are there.
        group: the only group to look at; all, if it is empty.
    """

    def __init__(self, path: Path, group: str = "") -> None:
        self._path = path
        self._group = group
        self._journals: dict[Path, Following] = {}
        self._watches: dict[tuple[str, str], GroupWatch] = {}
        self._other: set[Path] = set()
        self._new = 0
        self._oldest = 0
        self._newest = 0

    def look(self) -> Iterator[Watched]:
        """Judge what came since the last look. Raises HistoryError where a journal is damaged."""
        self._new, self._oldest = 0, 0
        for file in sorted(self._path.glob(f"*{SUFFIX}")):
            if file not in self._other:
                yield from self._follow(self._journals.setdefault(file, Following(file)))
        for (run, group), watch in self._watches.items():
            for alarm in watch.settle():
                yield Watched(run, group, alarm)

    def _follow(self, journal: Following) -> Iterator[Watched]:
        before = journal.ended
        for events in journal.read():
            assert journal.info is not None
            info = journal.info.only
            if self._group and info.name != self._group:
                self._other.add(journal.path)
                return
            watch = self._watch(journal.info.run, info)
            self._new += len(events)
            self._oldest = min(self._oldest or events[0].at, events[0].at)
            self._newest = max(self._newest, events[-1].at)
            for alarm in watch.feed(events):
                yield Watched(journal.info.run, info.name, alarm)
        if journal.ended and not before and journal.info is not None:
            self._watch(journal.info.run, journal.info.only).ended(journal.process)

    def _watch(self, run: str, info: GroupInfo) -> GroupWatch:
        known = self._watches.get((run, info.name))
        if known is None:
            try:
                known = self._watches[run, info.name] = GroupWatch(info)
            except ValueError as error:
                raise HistoryError(f"run {run}: {error}") from error
        return known

    def told(self) -> FolderLook:
        """How far it is."""
        journals = [each for path, each in self._journals.items() if path not in self._other]
        watches = self._watches.values()
        return FolderLook(
            sum(each.events for each in watches),
            self._new,
            len(journals),
            sum(not each.ended for each in journals),
            _since(self._oldest) if self._new else 0.0,
            _since(self._newest) if self._newest else 0.0,
            sum(max(0, each.unread()) for each in journals),
            tuple(sorted({name for each in watches for name in each.judged})),
            sum(each.suspected for each in watches),
            sum(each.size() for each in watches),
        )


def _since(at: Nanos) -> float:
    return max(0.0, (time.time_ns() - at) / SECOND)
