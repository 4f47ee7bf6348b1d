"""Runs that are judged by their certificates, and excerpts of them: what rings and vector times share.

Where a certificate does not prove a property, nothing is called violated on its word: the rows at fault and
those around them, an excerpt, are judged by the checkers in memory. What is about order alone and breaks
there is broken in the whole run: fewer rows only mean fewer demands. A run that is small enough is its own
excerpt, and then every verdict is final. If an excerpt shows nothing, the verdict is `unknown`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast.history import Event, History, HistoryError, Kind
from semcast.history.decoding import decode, rows_of
from semcast.pipeline.verify.folds import INDEX_IN_PACKET_BITS
from semcast.pipeline.verify.forms import Findings, Given
from semcast.pipeline.verify.run_index import RunIndex, numbered_violations
from semcast.specs import Status, Verdict, check
from semcast.specs.evs.configurations import Configuration

MOST_ROWS = 20_000
"""So many rows the driver reads of a run."""

AROUND = 500
"""Rows before and after one that is at fault."""

_ABOUT_MESSAGES = (Kind.MULTICAST.value, Kind.DELIVER.value)

Spot = tuple[int, int]
"""The number of a process, and the index of a row there."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some rows of a run."""

    history: History
    whole: bool
    """Whether these are all rows."""

    @property
    def has_messages(self) -> bool:
        """Whether anything was read."""
        return any(event.kind in (Kind.MULTICAST, Kind.DELIVER) for event in self.history.events)

    def judged(self, names: Iterable[str]) -> list[Verdict]:
        """The verdicts that stand for the whole run."""
        found = check(self.history, names)
        return [each for each in found if self.whole or each.status is Status.VIOLATED]


class Excerpts:
    """Reads them."""

    def __init__(self, run_index: RunIndex, rows: DataFrame) -> None:
        """`rows` are those of histories as stored, by the names of runs."""
        self._run_index = run_index
        self._rows = rows
        self._sizes: Counter[str] = Counter()
        for (run, _), size in run_index.sizes.items():
            self._sizes[run] += size

    def has_all(self, run: str) -> bool:
        """Whether a run is its own excerpt, so that it does not matter which rows are at fault."""
        return self._sizes[run] <= MOST_ROWS

    def around(self, run: str, faults: Collection[Spot]) -> Excerpt:
        """What happened to the messages around some rows: fewer if they are many, all if the run is small."""
        if self.has_all(run):
            return Excerpt(history_of(self._run_index, run, self._whole(run)), whole=True)
        around, table = AROUND, self._around(run, faults, AROUND)
        while table.num_rows > MOST_ROWS and around:
            around //= 8
            table = self._around(run, faults, around)
        return Excerpt(history_of(self._run_index, run, table.slice(0, MOST_ROWS)), whole=False)

    def _around(self, run: str, faults: Collection[Spot], around: int) -> pa.Table:
        """All rows about the messages in so many rows before and after those at fault."""
        near = self._near(run, faults, around)
        table = near.select(
            "sender", "sender_incarnation", fn.col("seq").alias("from"), _last().alias("upto")
        )
        same = (fn.col("r.sender") == fn.col("n.sender")) & (
            fn.col("r.sender_incarnation") == fn.col("n.sender_incarnation")
        )
        meet = (fn.col("r.seq") <= fn.col("n.upto")) & (
            fn.col("n.from") <= fn.col("r.seq") + fn.col("r.count") - 1
        )
        others = fn.broadcast(table.distinct().alias("n"))
        rows = self._messages(run).alias("r").join(others, same & meet, "left_semi")
        return rows.limit(MOST_ROWS + 1).toArrow()

    def beyond(self, run: str, lows: Mapping[Configuration, int]) -> Excerpt | None:
        """All that has a position from some on, in each of these configurations; None if that is too much."""
        if self.has_all(run):
            return Excerpt(history_of(self._run_index, run, self._whole(run)), whole=True)
        position = fn.shiftleft("ring.packet", INDEX_IN_PACKET_BITS) + fn.col("ring.index")
        beyond = fn.lit(False)
        for conf, low in lows.items():
            same = fn.col("ring.configuration") == conf.number
            if conf.formed_by is not None:
                same &= fn.col("ring.representative") == conf.formed_by.name
                same &= fn.col("ring.incarnation") == conf.formed_by.incarnation
            beyond |= same & (position + fn.col("count") > low)
        rows = self._messages(run).where(beyond)
        if rows.count() > MOST_ROWS:
            return None
        history = history_of(self._run_index, run, rows.toArrow())
        clipped = [_clipped(event, lows) for event in history.events]
        return Excerpt(History(history.info, clipped), whole=False)

    def _whole(self, run: str) -> pa.Table:
        """All rows of a run; those of all runs that are small enough are read at once."""
        rows = self._small.filter(pc.equal(self._small["run"], run))
        if rows.num_rows != self._sizes[run]:
            raise HistoryError(
                f"run {run}: {self._sizes[run]} rows were there at first, then {rows.num_rows}"
            )
        return rows

    @cached_property
    def _small(self) -> pa.Table:
        runs = [run for run, size in self._sizes.items() if size <= MOST_ROWS]
        return self._rows.where(fn.col("run").isin(runs)).toArrow()

    def _of(self, run: str) -> DataFrame:
        return self._rows.where(fn.col("run") == run)

    def _messages(self, run: str) -> DataFrame:
        return self._of(run).where(fn.col("kind").isin(*_ABOUT_MESSAGES))

    def _near(self, run: str, faults: Collection[Spot], around: int) -> DataFrame:
        chosen = fn.lit(False)
        for who, index in sorted(faults)[:8]:
            _, process = self._run_index.everybody[who]
            mine = (fn.col("process") == process.name) & (fn.col("incarnation") == process.incarnation)
            chosen |= mine & fn.col("index").between(index - around, index + around)
        return self._messages(run).where(chosen)


def history_of(run_index: RunIndex, run: str, rows: pa.Table) -> History:
    """Some rows of a run, with those that say who was where."""
    known = run_index.stays.histories[run]
    changes = {(event.process, event.index): event for event in known.events}
    events = {(e.process, e.index): e for e in map(decode, rows_of(rows))}
    return History(known.info, sorted((changes | events).values(), key=lambda event: event.index))


@dataclass(slots=True)
class Told:
    """What the rows of one run say of its certificates."""

    recorded: bool = False
    """Whether there are any."""

    without: str = ""
    """Who recorded messages without one, if anybody did."""

    wrong: set[Spot] = field(default_factory=set)
    """Rows with one that does not fit those before."""


class Certified:
    """The judgement on some runs, as far as it is the same for every kind of certificate."""

    def __init__(self, given: Given, property_: str, what: str) -> None:
        """`property_` says whether certificates are right, `what` is their name."""
        self.property = property_
        self._what = what
        self._run_index = given.run_index
        self.excerpts = Excerpts(given.run_index, given.rows)
        self.found = Findings()

    def readable(self, run: str, told: Told, names: Iterable[str]) -> bool:
        """Whether there is anything to judge by; if some is missing, nothing is known to hold."""
        if not told.recorded:
            self.cannot_tell(run, names, f"no {self._what} was recorded")
        elif told.without:
            reason = f"{told.without} recorded messages without a {self._what}"
            self.found.doubts.update({(run, name): reason for name in names})
        return told.recorded

    def cannot_tell(self, run: str, names: Iterable[str], why: str) -> None:
        """Nothing can be said of these."""
        self.found.unknown.update({(run, name): why for name in names})

    def ask_excerpt(
        self, run: str, names: Iterable[str], spots: Collection[Spot], about_order: Collection[str]
    ) -> list[str]:
        """Judge an excerpt around some rows; what it does not settle comes back, and is unknown so far.

        Of a part of the rows only what is about order can be told.
        """
        asked = [name for name in names if name != self.property]
        excerpt = self.excerpts.around(run, spots)
        told = excerpt.judged([name for name in asked if excerpt.whole or name in about_order])
        self.found.verdicts += [(run, verdict) for verdict in told]
        left = [name for name in asked if name not in {verdict.property for verdict in told}]
        why = f"the recorded {self._what}s do not prove it, and the rows around the fault do not show why"
        self.cannot_tell(run, left, why)
        return left

    def blame(self, rows: DataFrame, reason: str) -> None:
        """Rows (who, index, author, first) break the property of the certificate itself."""
        cases = rows.withColumn("last", fn.col("first"))
        found = numbered_violations(cases, self.property, reason, index=fn.col("index"))
        self.found.violations.append(self._run_index.named(found))

    def blame_rows(self, rows: Iterable[tuple[int | None, ...]], reason: str) -> None:
        """The same of rows that the driver knows of."""
        self.blame(self._run_index.table(rows, "who", "index", "author", "first"), reason)


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
