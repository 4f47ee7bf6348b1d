"""What the checkers of gossip judge themselves, a logger, a stream or a range of a stream in one task.

Positions of a log are judged by the rows of its logger, the others by those of a stream and by the outline of
the run: no row of another log, or of another stream, is looked at. Where each message is judged by itself,
streams are cut into ranges, so that one of any length can be judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.history.columns import SCHEMA
from semcast.history.schema import Kind
from semcast.pipeline.verify.forms import Findings, Given
from semcast.pipeline.verify.gossip.outline import Outline
from semcast.pipeline.verify.obligations import chunked
from semcast.pipeline.verify.parts import Checker, Task, judge_in_parts
from semcast.specs.gossip.filtering import gossip_filter
from semcast.specs.gossip.kinds import CLOSED, COLLECT, KEPT, LETGO, LOG, LOST, OPENED, PLACED
from semcast.specs.gossip.logs import (
    gossip_chains,
    gossip_closed,
    gossip_compacted,
    gossip_durable,
    gossip_logged,
)
from semcast.specs.gossip.positions import gossip_positions
from semcast.specs.gossip.starting import gossip_beginning

_RANGE = 1 << 14
"""So many messages of a stream are judged in one task, where each is judged by itself."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A checker, and the rows that it gets: of a logger, or of a stream with the outline of the run."""

    checker: Checker
    kinds: tuple[Kind, ...]
    by_stream: bool = True
    by_message: bool = False
    """Whether no message of a stream matters to another."""


BY_PARTS: dict[str, Parts] = {
    "gossip_positions": Parts(gossip_positions, (OPENED, LOG, PLACED), by_stream=False),
    "gossip_logged": Parts(gossip_logged, (Kind.MULTICAST, LOG, KEPT), by_message=True),
    "gossip_durable": Parts(gossip_durable, (LOG, KEPT, COLLECT, LETGO), by_message=True),
    "gossip_closed": Parts(gossip_closed, (CLOSED,)),
    "gossip_filter": Parts(gossip_filter, (Kind.MULTICAST, Kind.DELIVER, LOST), by_message=True),
    "gossip_beginning": Parts(gossip_beginning, (Kind.MULTICAST, LOG, PLACED, COLLECT), by_message=True),
    "gossip_chains": Parts(gossip_chains, (Kind.MULTICAST, LOG, KEPT, COLLECT)),
    "gossip_compacted": Parts(gossip_compacted, (Kind.MULTICAST, LOG, KEPT, COLLECT)),
}


_TASKS = {name: Task(name, each.checker) for name, each in BY_PARTS.items()}


def judge_parts(given: Given, known: Mapping[str, Outline], runs: Mapping[str, Sequence[str]]) -> Findings:
    """What is judged so, of these runs by property."""
    asked = {name: each for name, each in BY_PARTS.items() if name in runs}
    if not asked:
        return Findings()
    rows = reduce(DataFrame.union, [_parts(given, name, runs[name], each) for name, each in asked.items()])
    histories = {run: outline.history for run, outline in known.items()}
    beside = {
        (run, name): histories[run].events if each.by_stream else ()
        for name, each in asked.items()
        for run in runs[name]
    }
    return judge_in_parts(given, rows, _TASKS, histories, beside)


def _parts(given: Given, name: str, runs: Sequence[str], parts: Parts) -> DataFrame:
    """The rows of some kinds, with the task that they are for and the part that they belong to."""
    chosen = fn.col("run").isin(*runs) & fn.col("kind").isin(*(kind.value for kind in parts.kinds))
    rows = given.rows.where(chosen).select(*SCHEMA.names)
    by = ["sender", "sender_incarnation"] if parts.by_stream else ["process"]
    if parts.by_message:
        rows, by = _in_ranges(rows), [*by, "chunk"]
    part = fn.concat_ws("#", *by).alias("part")
    return rows.select(*SCHEMA.names, fn.lit(name).alias("task"), part)


def _in_ranges(rows: DataFrame) -> DataFrame:
    """Rows about several messages, cut where ranges end: with `chunk`, the number of the range."""
    spans = rows.withColumns({"first": fn.col("seq"), "last": fn.col("seq") + fn.col("count") - 1})
    cut = chunked(spans, chunk=_RANGE)
    off = fn.col("first") - fn.col("seq")
    return cut.withColumns(
        {
            "seq": fn.col("first"),
            "count": fn.col("last") - fn.col("first") + 1,
            "order": fn.col("order") + off,
            "annotation": fn.when(off == 0, fn.col("annotation")),  # it is about the first message
        }
    )
