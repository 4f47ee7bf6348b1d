"""Excerpts of a run, judged in memory.

Where certificates do not prove that a property holds, nothing is called violated on their word: the rows at
fault and those around them are read, and the checkers in memory judge them. What is about order alone and
breaks there is broken in the whole run, for fewer rows only mean fewer demands. A run that is small enough is
its own excerpt, and then every verdict is final.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast.history import Event, History, Kind
from semcast.history.decoding import decode, rows_of
from semcast.pipeline.verify.folds import INDEX_IN_PACKET_BITS
from semcast.pipeline.verify.scene import Scene
from semcast.pipeline.verify.stays import Who
from semcast.specs import Status, Verdict, check
from semcast.specs.evs.configurations import Configuration

MOST_ROWS = 20_000
"""So many rows the driver reads of a run."""

AROUND = 500
"""Rows before and after one that is at fault."""

_CHANGES = (Kind.VIEW, Kind.TRANSITIONAL, Kind.MERGED, Kind.CRASH, Kind.LEFT)
_ABOUT_MESSAGES = (Kind.MULTICAST.value, Kind.DELIVER.value)

Spot = tuple[int, int]
"""The number of a process, and the index of a row there."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some rows of a run."""

    history: History
    whole: bool
    """Whether these are all rows."""

    def judged(self, names: Iterable[str]) -> list[Verdict]:
        """The verdicts that stand for the whole run."""
        found = check(self.history, names)
        return [each for each in found if self.whole or each.status is Status.VIOLATED]


class Excerpts:
    """Reads them."""

    def __init__(self, scene: Scene, rows: DataFrame) -> None:
        """`rows` are those of histories as stored, by the names of runs."""
        self._scene = scene
        self._rows = rows
        sizes = scene.totals.groupBy("run").agg(fn.sum("rows").alias("rows")).collect()
        self._sizes: Mapping[str, int] = {row["run"]: row["rows"] for row in sizes}

    def around(self, run: str, faults: Callable[[], Collection[Spot]]) -> Excerpt:
        """What happened to the messages around some rows: all of them, if there are few.

        Where rows are at fault is asked only if it matters: that may take Spark jobs for each run.
        """
        if self._sizes[run] <= MOST_ROWS:
            return Excerpt(self._history(run, self._whole(run)), whole=True)
        near = self._near(run, faults())
        table = near.select(
            "sender", "sender_incarnation", fn.col("seq").alias("from"), _last().alias("upto")
        )
        about = self._messages(run).join(
            fn.broadcast(table.distinct()), ["sender", "sender_incarnation"], "left_semi"
        )
        told = fn.col("r.seq") <= fn.col("n.upto")
        same = (fn.col("r.sender") == fn.col("n.sender")) & (
            fn.col("r.sender_incarnation") == fn.col("n.sender_incarnation")
        )
        rows = about.alias("r").join(
            fn.broadcast(table.alias("n")),
            same & told & (fn.col("n.from") <= fn.col("r.seq") + fn.col("r.count") - 1),
            "left_semi",
        )
        return Excerpt(self._history(run, rows.limit(MOST_ROWS).toArrow()), whole=False)

    def beyond(self, run: str, lows: Mapping[Configuration, int]) -> Excerpt | None:
        """All that has a position from some on, in each of these configurations; None if that is too much."""
        if self._sizes[run] <= MOST_ROWS:
            return Excerpt(self._history(run, self._whole(run)), whole=True)
        position = fn.shiftleft("ring.packet", INDEX_IN_PACKET_BITS) + fn.col("ring.index")
        beyond = fn.lit(False)
        for conf, low in lows.items():
            same = fn.col("ring.configuration") == conf.number
            if conf.formed_by is not None:
                same &= fn.col("ring.representative") == conf.formed_by.name
            beyond |= same & (position + fn.col("count") > low)
        rows = self._messages(run).where(beyond)
        if rows.count() > MOST_ROWS:
            return None
        history = self._history(run, rows.toArrow())
        clipped = [_clipped(event, lows) for event in history.events]
        return Excerpt(History(history.info, clipped), whole=False)

    def _whole(self, run: str) -> pa.Table:
        """All rows of a run; those of all runs that are small enough are read at once."""
        return self._small.filter(pc.equal(self._small["run"], run))

    @cached_property
    def _small(self) -> pa.Table:
        runs = [run for run, size in self._sizes.items() if size <= MOST_ROWS]
        return self._rows.where(fn.col("run").isin(runs)).toArrow()

    def _of(self, run: str) -> DataFrame:
        return self._rows.where(fn.col("run") == run)

    def _messages(self, run: str) -> DataFrame:
        return self._of(run).where(fn.col("kind").isin(*_ABOUT_MESSAGES))

    def _near(self, run: str, faults: Collection[Spot]) -> DataFrame:
        chosen = fn.lit(False)
        for who, index in sorted(faults)[:8]:
            _, process = self._scene.everybody[who]
            mine = (fn.col("process") == process.name) & (fn.col("incarnation") == process.incarnation)
            chosen |= mine & fn.col("index").between(index - AROUND, index + AROUND)
        return self._messages(run).where(chosen)

    def _history(self, run: str, rows: pa.Table) -> History:
        known = self._scene.stays.histories[run]
        changes = {(event.process, event.index): event for event in known.events}
        events = {(e.process, e.index): e for e in map(decode, rows_of(rows))}
        return History(known.info, sorted((changes | events).values(), key=lambda event: event.index))


def _last() -> Column:
    return fn.col("seq") + fn.col("count") - 1


def _clipped(event: Event, lows: Mapping[Configuration, int]) -> Event:
    """Without the messages that are below."""
    place = event.ring
    if place is None:
        return event
    low = lows[Configuration(place.configuration, place.representative)]
    off = low - ((place.packet << INDEX_IN_PACKET_BITS) + place.index)
    if off <= 0:
        return event
    return msgspec.structs.replace(
        event, seq=event.seq + off, count=event.count - off, size=0, crc=None, ring=place.after(off)
    )


def runs_of(scene: Scene, whos: Iterable[int]) -> set[str]:
    """The runs of some processes."""
    everybody: list[Who] = scene.everybody
    return {everybody[who][0] for who in whos}
