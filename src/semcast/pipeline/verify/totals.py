"""What there is of each process: one pass over everything, and what the few rows that come of it tell.

The fingerprint of a set of messages is the xor, and the sum, of h(seq) - h(seq + 1) over its messages. Of a
run of messages that is h(first) - h(last + 1), so it does not depend on how runs were cut, nor on any order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId, MessageId
from semcast.history import HistoryError, RunInfo
from semcast.history.schema import GONE, Kind
from semcast.pipeline.frames import FLAG, MEMBER, TEXT, WHOLE, small_frame
from semcast.pipeline.verify.events import is_malformed, member_of, names_others, of_kind, process, sender
from semcast.pipeline.verify.stays import Who
from semcast.specs.crash import ACTS

_SUMMED = (1 << 32) - 1
"""The bits of a hash that are summed: few enough that no sum overflows."""

_PRINT = ("messages", "xor", "sum")


def totals(rows: DataFrame) -> DataFrame:
    """Per run, process, kind and sender: how many rows and messages, with fingerprints of both.

    Rows are as they are stored: Spark groups by plain columns sooner than by structs of them.
    """
    index, seq = fn.col("index"), fn.col("seq")
    last = seq + fn.col("count") - 1
    begin, end = fn.xxhash64(seq), fn.xxhash64(last + 1)
    return (
        rows.groupBy("run", "process", "incarnation", "kind", "sender", "sender_incarnation")
        .agg(
            fn.count("*").alias("rows"),
            fn.count_if(is_malformed()).alias("malformed"),
            fn.bit_xor(fn.xxhash64(index).bitwiseXOR(fn.xxhash64(index + 1))).alias("trail"),
            fn.sum(last - seq + 1).alias("messages"),
            fn.bit_xor(begin.bitwiseXOR(end)).alias("xor"),
            fn.sum(begin.bitwiseAND(fn.lit(_SUMMED)) - end.bitwiseAND(fn.lit(_SUMMED))).alias("sum"),
            fn.max(last).alias("latest"),
            fn.min(index).alias("begin"),
            fn.max(index).alias("end"),
            fn.count_if("annotation.total").alias("total"),
            fn.count_if(names_others()).alias("odd"),
        )
        .select(
            "run",
            process().alias("process"),
            "kind",
            sender().alias("sender"),
            "rows",
            "malformed",
            "trail",
            *_PRINT,
            "latest",
            "begin",
            "end",
            "total",
            "odd",
        )
    )


def census(totals: DataFrame) -> DataFrame:
    """Per run and process: how many rows there are, and what is to be known before looking closer.

    Whether their indices are 0, 1, 2, ..., whether the process is gone, acted after that, and recorded its
    buffers, whether its messages may replace others by their place in the total order, or others than earlier
    ones of their own.
    """
    numbers = fn.xxhash64(fn.lit(0).cast("long")).bitwiseXOR(fn.xxhash64(fn.sum("rows")))
    is_gone = fn.col("kind").isin([kind.value for kind in GONE])
    last_act = fn.max(fn.when(fn.col("kind").isin([kind.value for kind in ACTS]), fn.col("end")))
    return (
        totals.groupBy("run", "process")
        .agg(
            fn.sum("rows").alias("rows"),
            fn.sum("malformed").alias("malformed"),
            (fn.bit_xor("trail") == numbers).alias("numbered"),
            fn.max(is_gone).alias("gone"),
            fn.coalesce(last_act > fn.min(fn.when(is_gone, fn.col("begin"))), fn.lit(False)).alias("undead"),
            fn.max(fn.col("kind") == Kind.BUFFER.value).alias("buffers"),
            (fn.sum("total") > 0).alias("total"),
            (fn.sum("odd") > 0).alias("odd"),
        )
        .select(
            "run", "process", "rows", "malformed", "numbered", "gone", "undead", "buffers", "total", "odd"
        )
    )


@dataclass(frozen=True, slots=True)
class Participant:
    """A process of a run."""

    run: str
    process: MemberId
    correct: bool


def roster_of(
    infos: dict[str, RunInfo], census: Iterable[Row], *, allow_missing: bool = False
) -> list[Participant]:
    """The processes of every run; raises HistoryError where rows or processes are missing or strange."""
    found: dict[str, dict[MemberId, Row]] = {run: {} for run in infos}
    for row in census:
        if row["run"] not in found:
            raise HistoryError(f"{row['run']}: no such group is described")
        found[row["run"]][member_of(row["process"])] = row
    return [
        participant
        for run, info in infos.items()
        for participant in _of_run(run, info, found[run], allow_missing=allow_missing)
    ]


def roster_table(spark: SparkSession, roster: Iterable[Participant]) -> DataFrame:
    """The same as a table (run, process, correct)."""
    rows = [(each.run, (each.process.name, each.process.incarnation), each.correct) for each in roster]
    return small_frame(spark, {"run": TEXT, "process": MEMBER, "correct": FLAG}, rows)


def _of_run(run: str, info: RunInfo, rows: dict[MemberId, Row], *, allow_missing: bool) -> list[Participant]:
    members = info.only.members
    for who in sorted(rows):
        if members and not _known(who, members):
            names = ", ".join(map(str, members))
            raise HistoryError(f"run {run}: unknown process {who}: the members are {names}")
        if not rows[who]["numbered"]:
            raise HistoryError(
                f"run {run}: the {rows[who]['rows']} events of {who} are not numbered "
                "0, 1, 2, ...: rows are missing or there twice"
            )
    check_nobody_missing(run, info, rows, allow_missing=allow_missing)
    failed = {*info.cut_off, *(who for who, row in rows.items() if row["gone"])}
    promised = set(members or rows)
    return [
        Participant(run, who, who in promised and who not in failed)
        for who in sorted({*members, *rows, *info.cut_off})
    ]


def check_nobody_missing(run: str, info: RunInfo, there: Iterable[MemberId], *, allow_missing: bool) -> None:
    """Refuse a run with members of whom nothing was recorded, unless that is allowed."""
    missing = sorted(set(info.only.members) - set(there) - set(info.cut_off))
    if missing and not allow_missing:
        names = ", ".join(map(str, missing))
        raise HistoryError(
            f"run {run}: nothing was recorded of {names}; "
            "if they really did nothing, say so with --allow-missing"
        )


def _known(process: MemberId, members: tuple[MemberId, ...]) -> bool:
    """Whether it is a member, or a restart of one."""
    return process in members or any(
        member.name == process.name and member.incarnation < process.incarnation for member in members
    )


class Pair(NamedTuple):
    """A process and a sender of a run, and what the one delivered of the other."""

    process: Who
    sender: Who
    correct: bool
    sender_correct: bool
    messages: int
    """Deliveries, repeated ones too."""
    latest: int
    """The highest that was delivered, 0 if none was."""
    same: bool
    """Whether it delivered exactly what was multicast."""


def pairs(totals: DataFrame, roster: Iterable[Participant]) -> list[Pair]:
    """Every process of each run with every sender there."""
    sent: dict[Who, tuple[int, ...]] = {}
    got: dict[tuple[Who, Who], tuple[tuple[int, ...], int]] = {}
    senders: dict[str, set[MemberId]] = {}
    kinds = (Kind.MULTICAST.value, Kind.DELIVER.value)
    for row in totals.where(fn.col("kind").isin(*kinds)).collect():
        run, sent_by = row["run"], member_of(row["sender"])
        senders.setdefault(run, set()).add(sent_by)
        told = tuple(row[name] for name in _PRINT)
        if row["kind"] == Kind.MULTICAST.value:
            sent[run, sent_by] = told
        else:
            got[(run, member_of(row["process"])), (run, sent_by)] = told, row["latest"]
    correct = {(each.run, each.process): each.correct for each in roster}
    nothing: tuple[tuple[int, ...], int] = (0, 0, 0), 0
    found = []
    for who, is_correct in correct.items():
        for each in sorted(senders.get(who[0], ())):
            author = who[0], each
            told, latest = got.get((who, author), nothing)
            same = (who, author) in got and sent.get(author) == told
            found.append(Pair(who, author, is_correct, correct.get(author, False), told[0], latest, same))
    return found


def tails_of(infos: Mapping[str, RunInfo], totals: DataFrame) -> dict[Who, int]:
    """Whose recordings are cut off, and the last message that each is known to have sent, 0 if none."""
    found = {(run, who): 0 for run, info in infos.items() for who in info.cut_off}
    if found:
        sent = totals.where(fn.col("kind") == Kind.MULTICAST.value).select("run", "process", "latest")
        for row in sent.collect():
            who = row["run"], member_of(row["process"])
            if who in found:
                found[who] = row["latest"]
    return found


def untold(spark: SparkSession, events: DataFrame, tails: Mapping[Who, int]) -> dict[str, MessageId]:
    """A message of each run that must have been sent where a recording is cut off."""
    rows = [(run, (who.name, who.incarnation), tail) for (run, who), tail in tails.items()]
    known = small_frame(spark, {"run": TEXT, "sender": MEMBER, "tail": WHOLE}, rows)
    purges = of_kind(events, Kind.PURGE).select("run", fn.explode_outer("annotation.ids").alias("by"))
    by = fn.struct(fn.col("by.sender").alias("name"), fn.col("by.incarnation").alias("incarnation"))
    named = (
        of_kind(events, Kind.DELIVER, Kind.PURGE)
        .select("run", "sender", "last")
        .union(purges.where("by is not null").select("run", by, "by.seq"))
    )
    beyond = named.join(fn.broadcast(known), ["run", "sender"]).where("last > tail")
    first = beyond.groupBy("run").agg(fn.min(fn.struct("sender", "last")).alias("first")).collect()
    return {row["run"]: MessageId(member_of(row["first"]["sender"]), row["first"]["last"]) for row in first}
