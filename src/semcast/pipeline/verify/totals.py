"""What the counts of the first pass tell: who takes part, whose recordings are cut off, which pairs agree."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId, MessageId
from semcast.history import HistoryError, RunInfo
from semcast.history.schema import GONE, Kind
from semcast.pipeline.frames import FLAG, MEMBER, TEXT, WHOLE, small_frame
from semcast.pipeline.verify.counting import Total, trail_of
from semcast.pipeline.verify.events import member_of, of_kind
from semcast.pipeline.verify.stays import Who
from semcast.specs.crash import ACTS

_GONE = frozenset(kind.value for kind in GONE)
_MESSAGES = (Kind.MULTICAST.value, Kind.DELIVER.value)
_ACTS = frozenset(kind.value for kind in ACTS)
_TELLING = (Kind.DELIVER, Kind.PURGE)
"""Rows that name messages of others."""


class Life(NamedTuple):
    """What there is of a process, to be known before looking closer."""

    rows: int
    numbered: bool
    """Whether their indices are 0, 1, 2, ..."""
    gone: bool
    undead: bool
    """Whether it acted after it was gone."""


def census(totals: Iterable[Total]) -> dict[Who, Life]:
    """Per run and process."""
    by_process: dict[Who, list[Total]] = {}
    for each in totals:
        by_process.setdefault((each.run, each.process), []).append(each)
    return {who: _life(found) for who, found in by_process.items()}


def _life(found: Sequence[Total]) -> Life:
    rows = sum(each.rows for each in found)
    trail = reduce(xor, (each.trail for each in found))
    ends = [each.begin for each in found if each.kind in _GONE]
    acts = [each.end for each in found if each.kind in _ACTS]
    undead = bool(ends and acts) and max(acts) > min(ends)
    return Life(rows, trail == trail_of(rows), bool(ends), undead)


@dataclass(frozen=True, slots=True)
class Participant:
    """A process of a run."""

    run: str
    process: MemberId
    correct: bool


def roster_of(
    infos: dict[str, RunInfo], census: Mapping[Who, Life], *, allow_missing: bool = False
) -> list[Participant]:
    """The processes of every run; raises HistoryError where rows or processes are missing or strange."""
    found: dict[str, dict[MemberId, Life]] = {run: {} for run in infos}
    for (run, process), life in census.items():
        if run not in found:
            raise HistoryError(f"{run}: no such group is described")
        found[run][process] = life
    return [
        participant
        for run, info in infos.items()
        for participant in _of_run(run, info, found[run], allow_missing=allow_missing)
    ]


def roster_table(spark: SparkSession, roster: Iterable[Participant]) -> DataFrame:
    """The same as a table (run, process, correct)."""
    rows = [(each.run, (each.process.name, each.process.incarnation), each.correct) for each in roster]
    return small_frame(spark, {"run": TEXT, "process": MEMBER, "correct": FLAG}, rows)


def _of_run(
    run: str, info: RunInfo, lives: Mapping[MemberId, Life], *, allow_missing: bool
) -> list[Participant]:
    members = info.only.members
    for who in sorted(lives):
        if members and not _known(who, members):
            names = ", ".join(map(str, members))
            raise HistoryError(f"run {run}: unknown process {who}: the members are {names}")
        if not lives[who].numbered:
            raise HistoryError(
                f"run {run}: the {lives[who].rows} events of {who} are not numbered "
                "0, 1, 2, ...: rows are missing or there twice"
            )
    check_nobody_missing(run, info, lives, allow_missing=allow_missing)
    failed = {*info.cut_off, *(who for who, life in lives.items() if life.gone)}
    promised = set(members or lives)
    return [
        Participant(run, who, who in promised and who not in failed)
        for who in sorted({*members, *lives, *info.cut_off})
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


def pairs(totals: Iterable[Total], roster: Iterable[Participant]) -> list[Pair]:
    """Every process of each run with every sender there."""
    sent: dict[Who, tuple[int, ...]] = {}
    got: dict[tuple[Who, Who], tuple[tuple[int, ...], int]] = {}
    senders: dict[str, set[MemberId]] = {}
    for each in totals:
        if each.kind not in _MESSAGES or each.sender is None:
            continue
        author = each.run, each.sender
        senders.setdefault(each.run, set()).add(each.sender)
        if each.kind == Kind.MULTICAST.value:
            sent[author] = each.print
        else:
            got[(each.run, each.process), author] = each.print, each.latest
    correct = {(each.run, each.process): each.correct for each in roster}
    nothing: tuple[tuple[int, ...], int] = (0, 0, 0), 0
    found = []
    for who, is_correct in correct.items():
        for member in sorted(senders.get(who[0], ())):
            author = who[0], member
            told, latest = got.get((who, author), nothing)
            same = (who, author) in got and sent.get(author) == told
            found.append(Pair(who, author, is_correct, correct.get(author, False), told[0], latest, same))
    return found


def tails_of(infos: Mapping[str, RunInfo], totals: Iterable[Total]) -> dict[Who, int]:
    """Whose recordings are cut off, and the last message that each is known to have sent, 0 if none."""
    found = {(run, who): 0 for run, info in infos.items() for who in info.cut_off}
    for each in totals:
        who = each.run, each.process
        if who in found and each.kind == Kind.MULTICAST.value:
            found[who] = each.latest
    return found


def untold(
    spark: SparkSession, events: DataFrame, tails: Mapping[Who, int], totals: Iterable[Total]
) -> dict[str, MessageId]:
    """A message of each run that must have been sent where a recording is cut off."""
    rows = [(run, (who.name, who.incarnation), tail) for (run, who), tail in tails.items()]
    known = small_frame(spark, {"run": TEXT, "sender": MEMBER, "tail": WHOLE}, rows)
    named = of_kind(events, *_TELLING).select("run", fn.explode(_named()).alias("named"))
    beyond = fn.when(fn.col("last") > fn.col("tail"), fn.struct("sender", "last"))
    told = (
        named.select("run", "named.*")
        .join(fn.broadcast(known), ["run", "sender"], "left")
        .groupBy("run")
        .agg(fn.sum("row").alias("rows"), fn.min(beyond).alias("first"))
        .collect()
    )
    concerned = {run for run, _ in tails}
    check_all_read(
        "deliveries and purges",
        [each for each in totals if each.run in concerned],
        _TELLING,
        sum(row["rows"] for row in told),
    )
    return {
        row["run"]: MessageId(member_of(row["first"]["sender"]), row["first"]["last"])
        for row in told
        if row["first"] is not None
    }


def _named() -> Column:
    """The messages that a row names: those that it is about (`row` is 1), and what replaces them."""
    about = fn.struct("sender", "last", fn.lit(1).alias("row"))
    replacing = fn.transform(
        "annotation.ids",
        lambda by: fn.struct(
            fn.struct(by["sender"].alias("name"), by["incarnation"].alias("incarnation")).alias("sender"),
            by["seq"].alias("last"),
            fn.lit(0).alias("row"),
        ),
    )
    purged = fn.col("kind") == Kind.PURGE.value
    return fn.concat(fn.array(about), fn.coalesce(fn.when(purged, replacing), fn.array()))


def check_all_read(what: str, totals: Iterable[Total], kinds: Iterable[Kind], read: int) -> None:
    """What another pass read is what the first one counted: nothing is judged by rows that nobody saw.

    Raises:
        HistoryError: it is not.
    """
    values = {kind.value for kind in kinds}
    counted = sum(each.rows for each in totals if each.kind in values)
    if read != counted:
        raise HistoryError(f"{counted} rows about {what} were there at first, then {read}")


def rows_of_kind(
    events: DataFrame, totals: Sequence[Total], kind: Kind, keep: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """The events of a kind, read now and once, and as many as the first pass counted.

    Raises:
        HistoryError: there are others.
    """
    if not any(each.kind == kind.value for each in totals):
        return of_kind(events, kind).limit(0)
    rows = keep(of_kind(events, kind))
    check_all_read(f"kind {kind.value}", totals, (kind,), rows.count())
    return rows
