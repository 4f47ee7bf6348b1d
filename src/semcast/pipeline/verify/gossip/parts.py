"""What the checkers of gossip judge themselves, a logger, a stream or a range of a stream in one task.

Positions of a log are judged by the rows of its logger, the others by those of a stream and by the outline of
the run: no row of another log, or of another stream, is looked at. Where each message is judged by itself,
streams are cut into ranges, so that one of any length can be judged.
"""

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.history import Event, History, RunInfo
from semcast.history.columns import SCHEMA
from semcast.history.decoding import decode, rows_of
from semcast.history.schema import Kind
from semcast.pipeline.verify.forms import Findings, Given
from semcast.pipeline.verify.gossip.outline import Outline
from semcast.pipeline.verify.obligations import chunked
from semcast.pipeline.verify.violations import known_violations, told_by
from semcast.specs import Status, Verdict
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

_MOST = 500_000
"""Rows that one task may hold."""

_RANGE = 1 << 14
"""So many messages of a stream are judged in one task, where each is judged by itself."""

_TOLD = pa.schema([("run", pa.string()), ("property", pa.string()), ("verdict", pa.binary())])
_SPARK = "run string, property string, verdict binary"


@dataclass(frozen=True, slots=True)
class Parts:
    """A checker, and the rows that it gets: of a logger, or of a stream with the outline of the run."""

    checker: Callable[[History], Verdict]
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


def judge_parts(given: Given, known: Mapping[str, Outline], runs: Mapping[str, Sequence[str]]) -> Findings:
    """What is judged so, of these runs by property."""
    found = Findings()
    parts = [_parts(given, name, runs[name], each) for name, each in BY_PARTS.items() if name in runs]
    if not parts:
        return found
    outlines = {run: pickle.dumps((each.info, each.history.events)) for run, each in known.items()}
    rows = reduce(DataFrame.union, parts).groupBy("run", "property", "part")
    broken = []
    for run, name, packed in rows.applyInArrow(_judging(outlines), _SPARK).collect():
        if packed is None:
            found.unknown[run, name] = "a log or a stream has too many rows for one task"
            continue
        verdict: Verdict = pickle.loads(packed)  # noqa: S301 (bytes that our own tasks made)
        if verdict.status is Status.UNKNOWN:
            found.unknown[run, name] = verdict.detail
        elif verdict.count:
            broken.append(told_by(run, verdict))
    found.violations.append(known_violations(given.run_index.spark, broken))
    return found


def _parts(given: Given, name: str, runs: Sequence[str], parts: Parts) -> DataFrame:
    """The rows of some kinds, with the property that they are for and the part that they belong to."""
    chosen = fn.col("run").isin(*runs) & fn.col("kind").isin(*(kind.value for kind in parts.kinds))
    rows = given.rows.where(chosen).select(*SCHEMA.names)
    by = ["sender", "sender_incarnation"] if parts.by_stream else ["process"]
    if parts.by_message:
        rows, by = _in_ranges(rows), [*by, "chunk"]
    part = fn.concat_ws("#", *by).alias("part")
    return rows.select(*SCHEMA.names, fn.lit(name).alias("property"), part)


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


def _judging(outlines: Mapping[str, bytes]) -> Callable[[pa.Table], pa.Table]:
    """Outlines travel packed: a worker knows the kinds of rows only when it has loaded this module."""
    unpacked: dict[str, tuple[RunInfo, Sequence[Event]]] = {}

    def judge(table: pa.Table) -> pa.Table:
        run, name = table.column("run")[0].as_py(), table.column("property")[0].as_py()
        if table.num_rows > _MOST:
            return pa.table([[run], [name], [None]], schema=_TOLD)
        if run not in unpacked:
            unpacked[run] = _outline(outlines[run])
        info, outline = unpacked[run]
        rows = {(row.process, row.index): row for row in map(decode, rows_of(table.select(SCHEMA.names)))}
        if BY_PARTS[name].by_stream:
            rows = {(row.process, row.index): row for row in outline} | rows
        history = History(info, sorted(rows.values(), key=lambda row: row.index))
        return pa.table([[run], [name], [pickle.dumps(BY_PARTS[name].checker(history))]], schema=_TOLD)

    return judge


def _outline(packed: bytes) -> tuple[RunInfo, Sequence[Event]]:
    found: tuple[RunInfo, Sequence[Event]] = pickle.loads(packed)  # noqa: S301 (our own)
    return found
