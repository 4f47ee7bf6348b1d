"""What the checkers of gossip judge themselves, a log or a stream in one task.

Positions of a log are judged by its own rows, and where sessions begin by those of a stream and by the
outline of the run: no row of another log, or of another stream, is looked at.
"""

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.history import Event, History, RunInfo
from semcast.history.decoding import decode, rows_of
from semcast.history.schema import SCHEMA, Kind
from semcast.pipeline.verify.forms import Findings, Given
from semcast.pipeline.verify.gossip_outline import Outline
from semcast.pipeline.verify.violations import known_violations, told_by
from semcast.specs import verdict as verdicts
from semcast.specs.gossip.kinds import BEGIN, COLLECT, LOG, OPENED, PLACED
from semcast.specs.gossip.positions import gossip_positions
from semcast.specs.gossip.starting import check_starts

POSITIONS, START = "gossip_positions", "gossip_start"
_MOST = 500_000
"""Rows that one task may hold."""

_TOLD = pa.schema([("run", pa.string()), ("property", pa.string()), ("verdict", pa.binary())])


def judge_parts(given: Given, known: Mapping[str, Outline], runs: Mapping[str, Sequence[str]]) -> Findings:
    """Positions, and starts where sessions say how they want to begin, of these runs by property."""
    beginning = [run for run in runs.get(START, ()) if _begins(known[run])]
    parts = []
    if POSITIONS in runs:
        parts.append(_parts(given, POSITIONS, runs[POSITIONS], (OPENED, LOG, PLACED), ["process"]))
    if beginning:
        stream = ["sender", "sender_incarnation"]
        parts.append(_parts(given, START, beginning, (Kind.MULTICAST, LOG, PLACED, COLLECT), stream))
    found = Findings()
    outlines = {run: pickle.dumps((each.info, each.history.events)) for run, each in known.items()}
    broken = []
    for rows in parts:
        told = rows.groupBy("run", "property", "part").applyInArrow(_judging(outlines), _SPARK)
        for run, name, packed in told.collect():
            if packed is None:
                found.unknown[run, name] = "a log or a stream has too many rows for one task"
                continue
            verdict: verdicts.Verdict = pickle.loads(packed)  # noqa: S301 (bytes that our own tasks made)
            if verdict.count:
                broken.append(told_by(run, verdict))
    found.violations.append(known_violations(given.run_index.spark, broken))
    return found


_SPARK = "run string, property string, verdict binary"


def _begins(outline: Outline) -> bool:
    """Whether anything can be said of where sessions begin."""
    asked = any(row.kind is BEGIN for row in outline.history.events)
    return asked and outline.info.seed is not None and len(outline.ledger.logs) == 1


def _parts(
    given: Given, name: str, runs: Sequence[str], kinds: Sequence[Kind], by: Sequence[str]
) -> DataFrame:
    """The rows of some kinds, with the property that they are for and the part that they belong to."""
    chosen = fn.col("run").isin(*runs) & fn.col("kind").isin(*(kind.value for kind in kinds))
    part = fn.concat_ws("#", *by).alias("part")
    return given.rows.where(chosen).select(*SCHEMA.names, fn.lit(name).alias("property"), part)


def _judging(outlines: Mapping[str, bytes]) -> Callable[[pa.Table], pa.Table]:
    """Outlines travel packed: a worker knows the kinds of rows only when it has loaded this module."""

    def judge(table: pa.Table) -> pa.Table:
        run, name = table.column("run")[0].as_py(), table.column("property")[0].as_py()
        if table.num_rows > _MOST:
            return pa.table([[run], [name], [None]], schema=_TOLD)
        info, outline = _outline(outlines[run])
        rows = {(row.process, row.index): row for row in map(decode, rows_of(table.select(SCHEMA.names)))}
        if name == POSITIONS:
            told = gossip_positions(History(info, _sorted(rows.values())))
        else:
            around = {(row.process, row.index): row for row in outline}
            findings = verdicts.Findings(name)
            check_starts(findings, History(info, _sorted((around | rows).values())))
            told = findings.verdict()
        return pa.table([[run], [name], [pickle.dumps(told)]], schema=_TOLD)

    return judge


def _outline(packed: bytes) -> tuple[RunInfo, Sequence[Event]]:
    found: tuple[RunInfo, Sequence[Event]] = pickle.loads(packed)  # noqa: S301 (our own)
    return found


def _sorted(rows: Iterable[Event]) -> list[Event]:
    return sorted(rows, key=lambda row: row.index)
