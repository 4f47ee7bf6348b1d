"""The profile of a trace: does it have obsolescence, and which buffers does it need (Pereira 2000, section 4.5).

The definitions are those of the model (Pereira 2002, 5.1.1): D is the distance between a message and the next
one that makes it obsolete, R_N the share of all messages with D of at most N.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from semcast.pipeline import distance
from semcast.pipeline.commits import commit_distances
from semcast.pipeline.positions import positioned
from semcast.pipeline.runs import CHUNK, Equal, Runs, Within, find_runs
from semcast.pipeline.session import partitions_for
from semcast.pipeline.summary import Bin, Distances, StreamProfile, items_of, sizes_of
from semcast.pipeline.survey import StreamFacts, Trace


@dataclass(frozen=True, slots=True)
class Settings:
    """What to work out, and how the work is cut (on which nothing depends)."""

    purge: float = 0.5
    """The share of messages that one wants purged."""

    gap: float = 0.0
    """Messages no further apart than so many seconds are one burst."""

    groups: str | None = None
    """The column, `ts` or `group`, whose equal values make messages one operation."""

    partitions: int | None = None
    chunk: int = CHUNK
    hot: int = distance.HOT


@dataclass(frozen=True, slots=True)
class Profile:
    """The profiles of all streams, and the tables that they came from (until it is closed)."""

    streams: tuple[StreamProfile, ...]
    tally: DataFrame
    items: DataFrame

    def close(self) -> None:
        """Give back what Spark keeps."""
        self.tally.unpersist()


def profile(trace: Trace, settings: Settings | None = None) -> Profile:
    """Profile every stream of a trace."""
    settings = settings or Settings()
    rows = positioned(trace, settings.partitions)
    operations = _operations(rows, settings)
    updates = _keyed(trace, rows, settings)
    if operations:
        marked = rows.withColumn("mark", F.col(settings.groups or "group"))
        found = commit_distances(marked, operations, _partitions(trace, settings), chunk=settings.chunk)
    else:
        found = distance.distances(updates)
    item = distance.items(updates)
    tally = distance.tallies(found, item).persist()
    bursts = find_runs(_marked(rows, "ts"), Within(settings.gap), chunk=settings.chunk)
    counted = _counted(trace, tally, operations)
    exact = _exact(tally, counted, settings.purge)
    streams = tuple(
        _stream(facts, counted[facts.stream], exact[facts.stream], bursts[facts.stream], operations, settings)
        for facts in trace.streams
    )
    return Profile(streams, tally, item)
