"""Who was in which configuration: few rows, read on the driver by the code that the checkers in memory use.

There are as many as configurations times members, whatever was sent in them. Of each run a history of just
these rows is made, so that stays, com(c) and who owes what mean here exactly what they mean there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row

from semcast.core.ids import MemberId
from semcast.history import GONE, Event, History, Kind, RunInfo
from semcast.history.schema import kind_named
from semcast.pipeline.verify.events import member_of, of_kind
from semcast.specs.evs.configurations import Configurations, Stay, configurations_of

_KINDS = (Kind.VIEW, Kind.TRANSITIONAL, Kind.MERGED, *GONE)

Who = tuple[str, MemberId]
"""A run, and a process or sender there."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The rows of one process from one change on: of its configuration, or that it is gone."""

    who: Who
    first: int
    """The index of the first row."""

    stay: int | None
    view: int | None
    crashed: bool

    @property
    def outside(self) -> bool:
        """Whether nothing should happen here."""
        return self.stay is None or self.crashed


def changes(events: DataFrame) -> DataFrame:
    """The rows that say who is where."""
    return of_kind(events, *_KINDS).select(
        "run", "process", "index", "at_ns", "kind", "sender", "view", "members", "order"
    )


def skeletons(infos: Mapping[str, RunInfo], rows: Iterable[Row]) -> dict[str, History]:
    """Every run with only these rows."""
    found: dict[str, list[Event]] = {run: [] for run in infos}
    for row in rows:
        found[row["run"]].append(_event(infos[row["run"]].only.name, row))
    return {
        run: History(infos[run], sorted(events, key=lambda event: event.index))
        for run, events in found.items()
    }


class Stays:
    """The stays of all runs, numbered."""

    def __init__(self, histories: Mapping[str, History]) -> None:
        self.histories = histories
        self.runs: dict[str, Configurations] = {}
        self._offset: dict[str, int] = {}
        offset = 0
        for run, history in histories.items():
            self.runs[run] = configurations_of(history)
            self._offset[run] = offset
            offset += len(self.runs[run].stays)

    def number(self, run: str, stay: Stay) -> int:
        """The number of a stay among those of all runs."""
        return self._offset[run] + stay.slot

    def at(self, segment: Segment) -> Stay | None:
        """The stay that a segment is in; None before the first."""
        if segment.stay is None:
            return None
        run = segment.who[0]
        return self.runs[run].stays[segment.stay - self._offset[run]]

    def segments(self, processes: Iterable[Who]) -> list[Segment]:
        """What the rows of each process are cut into, process by process and in their order."""
        return [segment for who in processes for segment in self._segments(who)]

    def _segments(self, who: Who) -> list[Segment]:
        run, process = who
        known = self.runs[run]
        segments = [Segment(who, 0, None, None, crashed=False)]
        stays = {stay.event.index: stay for stay in known.life(process).stays}
        for event in known.rows.get(process, ()):
            last = segments[-1]
            if event.kind is Kind.MERGED:
                continue
            if event.kind in GONE:
                segments.append(Segment(who, event.index, last.stay, last.view, crashed=True))
            else:
                stay = self.number(run, stays[event.index])
                segments.append(Segment(who, event.index, stay, event.view, crashed=last.crashed))
        return segments


def _event(group: str, row: Row) -> Event:
    return Event(
        process=member_of(row["process"]),
        index=row["index"],
        at=row["at_ns"],
        kind=kind_named(row["kind"]),
        group=group,
        sender=None if row["sender"] is None else member_of(row["sender"]),
        view=row["view"],
        order=row["order"],
        members=None if row["members"] is None else tuple(map(member_of, row["members"])),
    )
