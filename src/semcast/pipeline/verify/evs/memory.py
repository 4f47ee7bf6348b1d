"""Runs that are small enough are judged by the checkers in memory, each run in one task.

So it is for the specifications about order: they take the events of all processes of a run together.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from semcast.core.ids import MemberId
from semcast.history import SCHEMA, Event, History, RunInfo
from semcast.history.decoding import Columns, decode
from semcast.pipeline.verify.relation import MEMBER_TYPE
from semcast.specs import Verdict, check

IN_MEMORY = (
    "evs_1_1_precedence",
    "evs_2_3_cut_after",
    "evs_2_4_cut_before",
    "evs_5_causal",
    "evs_6_1_order_respects_precedence",
    "evs_6_2_same_moment",
    "evs_6_3_agreed",
)

_VERDICTS = (
    "run string, property string, status string, count bigint, detail string, offending array<struct<"
    f"process: {MEMBER_TYPE}, index: bigint, at_ns: bigint, kind: string, "
    f"sender: {MEMBER_TYPE}, seq: bigint>>"
)
_MEMBER = pa.struct([("name", pa.string()), ("incarnation", pa.int64())])
_OFFENDING = pa.struct(
    [
        ("process", _MEMBER),
        ("index", pa.int64()),
        ("at_ns", pa.int64()),
        ("kind", pa.string()),
        ("sender", _MEMBER),
        ("seq", pa.int64()),
    ]
)
_ARROW = pa.schema(
    [
        ("run", pa.string()),
        ("property", pa.string()),
        ("status", pa.string()),
        ("count", pa.int64()),
        ("detail", pa.string()),
        ("offending", pa.list_(_OFFENDING)),
    ]
)


def verdicts(rows: DataFrame, infos: Mapping[str, RunInfo], names: Mapping[str, Sequence[str]]) -> list[Row]:
    """The verdicts on these properties of the runs of these rows.

    (run, property, status, count, detail, offending)
    """
    wanted = {run: (infos[run], tuple(names[run])) for run in names}
    return rows.select(*SCHEMA.names).groupBy("run").applyInArrow(_judging(wanted), _VERDICTS).collect()


def _judging(wanted: Mapping[str, tuple[RunInfo, Sequence[str]]]) -> Callable[[pa.Table], pa.Table]:
    def judge(table: pa.Table) -> pa.Table:
        info, names = wanted[table.column("run")[0].as_py()]
        history = History(info, _events(table))
        found = [_row(info.run, verdict) for verdict in check(history, names)]
        return pa.Table.from_pylist(found, schema=_ARROW)

    return judge


def _events(table: pa.Table) -> Iterable[Event]:
    columns = [table.column(field.name).to_pylist() for field in SCHEMA]
    return sorted(map(decode, map(Columns, *columns)), key=lambda event: event.index)


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
