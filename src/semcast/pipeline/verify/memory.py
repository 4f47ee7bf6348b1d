"""Runs that are small enough are judged by the checkers in memory, each run in one task.

So it is for every property without a form of its own on Spark: those about the order of everything take the
events of all processes of a run together.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from semcast.core.ids import MemberId
from semcast.history import Event, History, RunInfo
from semcast.history.decoding import decode, rows_of
from semcast.history.schema import SCHEMA
from semcast.pipeline.frames import MEMBER, TEXT, WHOLE
from semcast.pipeline.session import slots
from semcast.pipeline.verify.relation import MEMBER_TYPE
from semcast.specs import Verdict, check

_VERDICTS = (
    "run string, property string, status string, count bigint, detail string, offending array<struct<"
    f"process: {MEMBER_TYPE}, index: bigint, at_ns: bigint, kind: string, "
    f"sender: {MEMBER_TYPE}, seq: bigint>>"
)
_OFFENDING = pa.struct(
    [
        ("process", MEMBER),
        ("index", WHOLE),
        ("at_ns", WHOLE),
        ("kind", TEXT),
        ("sender", MEMBER),
        ("seq", WHOLE),
    ]
)
_ARROW = pa.schema(
    [
        ("run", TEXT),
        ("property", TEXT),
        ("status", TEXT),
        ("count", WHOLE),
        ("detail", TEXT),
        ("offending", pa.list_(_OFFENDING)),
    ]
)


def verdicts(rows: DataFrame, infos: Mapping[str, RunInfo], names: Mapping[str, Sequence[str]]) -> list[Row]:
    """The verdicts on these properties of the runs of these rows.

    (run, property, status, count, detail, offending)
    """
    wanted = {run: (infos[run], tuple(names[run])) for run in names}
    tasks = min(len(names), slots(rows.sparkSession))
    apart = rows.select(*SCHEMA.names).repartition(tasks, "run")
    return apart.groupBy("run").applyInArrow(_judging(wanted), _VERDICTS).collect()


def _judging(wanted: Mapping[str, tuple[RunInfo, Sequence[str]]]) -> Callable[[pa.Table], pa.Table]:
    def judge(table: pa.Table) -> pa.Table:
        run = table.column("run")[0].as_py()
        info, names = wanted[run]
        history = History(info, _events(table))
        found = [_row(run, verdict) for verdict in check(history, names)]
        return pa.Table.from_pylist(found, schema=_ARROW)

    return judge


def _events(table: pa.Table) -> Iterable[Event]:
    return sorted(map(decode, rows_of(table)), key=lambda event: event.index)


def _row(run: str, verdict: Verdict) -> dict[str, object]:
    return {
        "run": run,
        "property": verdict.property,
        "status": verdict.status.value,
        "count": verdict.count,
        "detail": verdict.detail,
        "offending": [_event(event) for event in verdict.offending],
    }


def _event(event: Event) -> dict[str, object]:
    return {
        "process": _member(event.process),
        "index": event.index,
        "at_ns": event.at,
        "kind": event.kind.value,
        "sender": None if event.sender is None else _member(event.sender),
        "seq": event.seq,
    }


def _member(member: MemberId) -> dict[str, object]:
    return {"name": member.name, "incarnation": member.incarnation}
