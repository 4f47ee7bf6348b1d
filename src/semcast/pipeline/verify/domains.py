"""Causal domains (`semcast.specs.domains`), in runs that memory does not hold.

Causal order runs through all rows of a run: one task takes them in the order of their times, and keeps none
(`specs.domains.stream`). Groups by themselves are judged group by group, stamps by stretches of rows with the
views beside them. Where messages are in one order, programs asked for flushes, or groups have clients, one
task must hold all.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId
from semcast.history import RunInfo
from semcast.history.columns import SCHEMA
from semcast.history.decoding import decode, rows_of
from semcast.history.schema import GONE, TOTAL, Kind
from semcast.pipeline.verify.events import process
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.memory import Task, judge_in_parts, outlines
from semcast.pipeline.verify.violations import known_violations, told_by, violations
from semcast.specs import DOMAINS, Status, Verdict
from semcast.specs.domains.kinds import BEGAN, CLIENT, FLUSH, GIVEN, KINDS, LEFT, OUT, SENT, VIEW
from semcast.specs.domains.story import NOTHING_RECORDED
from semcast.specs.domains.stream import COMPLETENESS, DELIVERY, GAP, Streaming, TooManyWaitError
from semcast.specs.verdict import unknown

_STREAMED = (DELIVERY, COMPLETENESS, GAP)
_STRETCH = 1 << 14
"""So many rows of a process are looked at in one task, where single rows are judged."""

_CLIENTS = ("client_views", "client_agreement", "client_completeness")
_WHOLE = ("domain_total_order", "domain_flush", *_CLIENTS)
_TASKS = {name: Task(name, DOMAINS[name]) for name in ("domain_groups", "stamp_bound", *_WHOLE)}
_FATE = "domain_one_fate"
JUDGED = {*_STREAMED, *_TASKS, _FATE}
"""What is judged here. Nothing else holds."""

_TOLD = pa.schema([("run", pa.string()), ("verdicts", pa.binary())])
_MEMBER = "struct<name:string,incarnation:bigint>"
_ORDER = ("run", "at_ns", "process", "incarnation", "index")


def judge_domains(given: Given, wanted: Wanted) -> Findings:
    """All properties of the family."""
    found = Findings()
    runs = given.run_index.with_kinds(VIEW) & set(wanted)
    for run, names in wanted.items():
        if run not in runs:
            found.unknown.update({(run, name): NOTHING_RECORDED for name in names})
    if runs:
        some = {run: names for run, names in wanted.items() if run in runs}
        _judge_streams(given, some, found)
        _judge_fates(given, [run for run, names in some.items() if _FATE in names], found)
        _judge_parts(given, some, found)
    return found


def _judge_streams(given: Given, wanted: Wanted, found: Findings) -> None:
    runs = [run for run, names in wanted.items() if set(names) & set(_STREAMED)]
    if not runs:
        return
    people: dict[str, tuple[RunInfo, list[MemberId]]] = {
        run: (given.run_index.infos[run], [each.process for each in given.roster if each.run == run])
        for run in runs
    }
    rows = given.rows.where(fn.col("run").isin(runs)).select(*SCHEMA.names)
    dealt = rows.repartition(len(runs), "run").sortWithinPartitions(*_ORDER)
    told = dealt.mapInArrow(_streaming(people), "run string, verdicts binary").collect()
    for run, verdicts in told:
        # What is loaded are bytes that our own tasks made.
        for verdict in pickle.loads(verdicts):  # noqa: S301
            if verdict.property in wanted[run]:
                _say(given, run, verdict, found)


def _say(given: Given, run: str, verdict: Verdict, found: Findings) -> None:
    if verdict.note:
        found.notes[run, verdict.property] = verdict.note
    if verdict.status is Status.UNKNOWN:
        found.unknown[run, verdict.property] = verdict.detail
    elif verdict.count:
        broken = [told_by(run, verdict)]
        found.violations.append(known_violations(given.run_index.spark, broken))


def _streaming(
    people: Mapping[str, tuple[RunInfo, list[MemberId]]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of one run after the other."""
        judging: dict[str, Streaming] = {}
        failed: dict[str, str] = {}
        for batch in batches:
            for row in rows_of(pa.Table.from_batches([batch])):
                if row.run not in judging:
                    judging[row.run] = Streaming(*people[row.run])
                if row.run not in failed:
                    try:
                        judging[row.run].take(decode(row))
                    except TooManyWaitError as error:
                        failed[row.run] = str(error)
        for run, streaming in judging.items():
            if run in failed:
                verdicts = [unknown(name, failed[run]) for name in _STREAMED]
            else:
                verdicts = list(streaming.verdicts().values())
            yield pa.RecordBatch.from_pydict(
                {"run": [run], "verdicts": [pickle.dumps(verdicts)]}, schema=_TOLD
            )

    return judge


def _judge_fates(given: Given, runs: list[str], found: Findings) -> None:
    """Who is out does nothing more."""
    if not runs:
        return
    rows = given.rows.where(fn.col("run").isin(runs))
    life = Window.partitionBy("run", "process", "incarnation")
    end = fn.min(fn.when(_is(OUT, *GONE), fn.col("index"))).over(life)
    deeds = [kind for kind in KINDS if kind not in (LEFT, OUT)]
    acting = rows.select("*", end.alias("end")).where(_is(*deeds) & (fn.col("index") > fn.col("end")))
    cases = acting.select(
        "run",
        process().alias("process"),
        fn.lit(None).cast(_MEMBER).alias("sender"),
        fn.lit(0).alias("first"),
        fn.lit(0).alias("last"),
        "index",
    )
    found.violations.append(violations(cases, _FATE, "was out, and acts on", index=fn.col("index")))


def _judge_parts(given: Given, wanted: Wanted, found: Findings) -> None:
    asked = [(run, name) for run, names in wanted.items() for name in names if name in _TASKS]
    known = outlines(given, wanted, _is(BEGAN, VIEW, CLIENT, LEFT, OUT, *GONE))
    if known is None:
        found.unknown.update(dict.fromkeys(asked, "there are too many views for one task"))
        return
    group = fn.get_json_object("annotation.item", "$.group")
    who = fn.concat_ws("#", "process", "incarnation", fn.expr(f"index div {_STRETCH}"))
    parts: dict[str, tuple[Column, Column]] = {
        "domain_groups": (_is(VIEW, CLIENT, LEFT, OUT, SENT, GIVEN), group),
        "stamp_bound": (_is(SENT, VIEW, CLIENT), who),
        **{name: (_is(*KINDS, *GONE), fn.lit("all")) for name in _WHOLE},
    }
    rows = []
    for name in dict.fromkeys(name for _, name in asked):
        chosen, part = parts[name]
        runs = [run for run, of in asked if of == name]
        if name in _WHOLE:
            runs = _concerned(given, runs, name)
        of = fn.col("run").isin(runs) & chosen
        columns = fn.lit(name).alias("task"), part.alias("part")
        rows.append(given.rows.where(of).select(*SCHEMA.names, *columns))
    beside = {
        (run, name): [event for event in known[run].events if name != "domain_groups" or event.kind in GONE]
        for run, name in asked
    }
    if rows:
        found.add(judge_in_parts(given, reduce(DataFrame.union, rows), _TASKS, known, beside))


def _concerned(given: Given, runs: list[str], name: str) -> list[str]:
    """The runs that have rows of which the property speaks; it holds of the others."""
    if name in _CLIENTS:
        spoken = _is(CLIENT)
    else:
        spoken = _is(FLUSH) if name == "domain_flush" else _is(GIVEN) & (fn.col("level") == TOTAL)
    there = given.rows.where(fn.col("run").isin(runs) & spoken).select("run").distinct().collect()
    return [run for (run,) in there]


def _is(*kinds: Kind) -> Column:
    return fn.col("kind").isin(*(kind.value for kind in kinds))
