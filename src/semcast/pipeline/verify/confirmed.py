"""What stacks confirmed of their own messages (`semcast.specs.confirmed`).

A confirmed message that its sender delivered in the view of the confirmation, and that all members of the
view have if it is safe, is as it should be: that is found out by spans. The checker in memory is asked about
the others, which are few, with the rows about their messages.
"""

from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.schema import SAFE, Kind
from semcast.pipeline.frames import MEMBER, TEXT, WHOLE, small_frame
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.excerpts import history_of
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.obligations import without
from semcast.pipeline.verify.run_index import with_author, with_number
from semcast.specs import Status, check

NAME = "confirmed"

_CLAIM = ("run", "who", "index", "seq")
_SPAN = ("debtor", "author", "first", "last")
_SENDER = ("sender", "sender_incarnation")
_MOST = 1_000
"""Claims that the checker in memory is asked about."""

_HAD = (Kind.DELIVER.value, Kind.PURGE.value)
_STAY = {"who": WHOLE, "view": WHOLE, "members": pa.list_(MEMBER), "debtor": WHOLE}
_CASE = {"run": TEXT, "sender": TEXT, "sender_incarnation": WHOLE, "asked": WHOLE, "claim": WHOLE}


def judge_confirmed(given: Given, wanted: Wanted) -> Findings:
    """A confirmed message is delivered in its view here, and if it is safe, by all members of the view."""
    run_index = given.run_index
    claims = run_index.keep(_claims(given))
    known = {row["run"] for row in claims.select("run").distinct().collect()}
    found = Findings(unknown={(run, NAME): "nothing was confirmed" for run in wanted if run not in known})
    doubtful = run_index.keep(_misplaced(given, claims).union(_lacking(given, claims)).distinct())
    _ask_memory(given, doubtful.where(fn.col("run").isin(*wanted)), found)
    return found


def _claims(given: Given) -> DataFrame:
    """All of them: (run, who, index, seq, view, members, safe)."""
    rows = of_kind(given.run_index.events, Kind.CONFIRMED)
    numbered = with_number(rows, given.run_index.people, "process")
    return numbered.select(*_CLAIM, "view", "members", (fn.col("level") == SAFE).alias("safe"))


def _misplaced(given: Given, claims: DataFrame) -> DataFrame:
    """Claims about messages that their sender did not deliver in the regular view of the claim."""
    run_index = given.run_index
    stays = run_index.keep(small_frame(run_index.spark, _STAY, _stays(given)))
    claimed = claims.join(fn.broadcast(stays), ["who", "view", "members"], "left")
    asked = claimed.where("debtor is not null").select("debtor", _alias("who", "author"), *_single())
    delivered = run_index.delivered.where("stay is not null").withColumnRenamed("stay", "debtor")
    left = without(asked, delivered.where("who = author")).drop("author")
    wrong = claimed.join(fn.broadcast(left), "debtor").where("seq between first and last")
    return wrong.select(*_CLAIM).union(claimed.where("debtor is null").select(*_CLAIM))


def _stays(given: Given) -> Iterator[tuple[object, ...]]:
    """The regular configurations of each process, by number and members."""
    run_index = given.run_index
    for run, known in run_index.stays.runs.items():
        for stay in known.stays:
            if stay.event.kind is Kind.VIEW:
                members = [(member.name, member.incarnation) for member in stay.event.members or ()]
                who = run_index.numbers[run, stay.process]
                yield who, stay.event.view, members, run_index.stays.number(run, stay)


def _lacking(given: Given, claims: DataFrame) -> DataFrame:
    """Safe claims about messages that a member of their view neither delivered nor gave up."""
    run_index = given.run_index
    safe = claims.where("safe").select(*_CLAIM, fn.explode("members").alias("member"))
    asked = with_number(safe.withColumnRenamed("who", "author"), run_index.people, "member")
    spans = asked.select(_alias("who", "debtor"), "author", *_single())
    given_up = with_author(with_number(run_index.receipts, run_index.people, "process"), run_index.people)
    held = run_index.delivered.select(_alias("who", "debtor"), *_SPAN[1:]).union(
        given_up.select(_alias("who", "debtor"), "author", _alias("seq", "first"), "last")
    )
    left = without(spans, held).select(_alias("author", "who"), "first", "last").distinct()
    wrong = claims.where("safe").join(fn.broadcast(left), "who").where("seq between first and last")
    return wrong.select(*_CLAIM)


def _ask_memory(given: Given, doubtful: DataFrame, found: Findings) -> None:
    """What the checker says of these claims, run by run, given all rows about their messages."""
    run_index = given.run_index
    place = fn.row_number().over(Window.partitionBy("run").orderBy("who", "index"))
    listed = doubtful.withColumn("place", place).where(fn.col("place") <= _MOST + 1).collect()
    if not listed:
        return
    too_many = {row["run"] for row in listed if row["place"] > _MOST}
    cases = [
        (row["run"], member.name, member.incarnation, row["seq"], row["index"])
        for row in listed
        if row["place"] <= _MOST
        for member in [run_index.everybody[row["who"]][1]]
    ]
    table = _rows_about(given, cases)
    for run in sorted({row["run"] for row in listed}):
        mine = table.filter(pc.equal(table["run"], run))
        verdict = check(history_of(run_index, run, mine), [NAME])[0]
        if verdict.status is Status.HOLDS and run in too_many:
            found.unknown[run, NAME] = "too many confirmations are in doubt"
        else:
            found.verdicts.append((run, verdict))


def _rows_about(given: Given, cases: list[tuple[str, str, int, int, int]]) -> pa.Table:
    """All rows about the messages of some claims, and the claims."""
    about = fn.broadcast(small_frame(given.run_index.spark, _CASE, cases))
    rows = given.rows.where(fn.col("run").isin(*sorted({case[0] for case in cases})))
    about_them = rows.join(about, ["run", *_SENDER], "left_semi").select(*rows.columns)
    shown = about_them.alias("r").join(about.alias("c"), _concerns(), "left_semi")
    stated = rows.where((fn.col("kind") == Kind.APPLY.value) & fn.col("view").isNotNull())
    return shown.union(_highest(about_them)).union(stated).toArrow()


def _concerns() -> Column:
    """Whether a row is about the message of a case, or is its claim."""
    same = reduce(Column.__and__, [fn.col(f"r.{name}") == fn.col(f"c.{name}") for name in ("run", *_SENDER)])
    claim = (fn.col("r.kind") == Kind.CONFIRMED.value) & (fn.col("r.index") == fn.col("c.claim"))
    last = fn.col("r.seq") + fn.col("r.count") - 1
    message = fn.col("r.kind").isin(*_HAD, Kind.MULTICAST.value)
    return same & (claim | (message & fn.col("c.asked").between(fn.col("r.seq"), last)))


def _highest(rows: DataFrame) -> DataFrame:
    """The rows with the highest message of each sender that each process has: a replacement may be there."""
    had = rows.where(fn.col("kind").isin(*_HAD))
    keys = ["run", "process", "incarnation", *_SENDER]
    top = had.groupBy(*keys).agg(fn.max_by("index", fn.col("seq") + fn.col("count")).alias("index"))
    return had.join(fn.broadcast(top), [*keys, "index"], "left_semi").select(*rows.columns)


def _single() -> list[Column]:
    return [_alias("seq", "first"), _alias("seq", "last")]


def _alias(old: str, new: str) -> Column:
    return fn.col(old).alias(new)
