"""Extended virtual synchrony as far as it is about who has what where: spans of what com(c) asks for.

Receipts for what was purged each name a message of the same configuration, which the process has.
"""

from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.history import Kind
from semcast.pipeline.frames import FLAG, TEXT, WHOLE, small_frame
from semcast.pipeline.verify import obligations, replacements
from semcast.pipeline.verify.folds import SENT
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.obligations import chunked, overlay
from semcast.pipeline.verify.run_index import numbered_violations, with_author, with_number
from semcast.pipeline.verify.stays import Claims, Segment, claims_of
from semcast.pipeline.verify.violations import known_violations, together, told_by
from semcast.specs import check

_STRUCTURAL = (
    "evs_2_1_installed_by_all",
    "evs_2_2_inside_configuration",
    "pair_same_members",
    "pair_transitional",
    "pair_transitional_then_regular",
)
"""Of these the rows about configurations alone tell something; what messages tell comes on top."""

_DEBTOR = {"debtor": WHOLE, "who": WHOLE, "alone": FLAG, "same": pa.list_(TEXT), "safe": TEXT}
_LACKING = "has neither this nor a replacement there"


def judge_configurations(given: Given, _wanted: Wanted) -> Findings:
    """The specifications that are judged by comparing spans."""
    return Findings([_Configurations(given).violations()])


class _Configurations:
    def __init__(self, given: Given) -> None:
        self._given = given
        self._run_index = given.run_index
        self._spark = given.run_index.spark
        self._keep = given.run_index.keep
        self._claims: Claims = claims_of(given.run_index.stays)

    def violations(self) -> DataFrame:
        """All of them."""
        places = self._places()
        self._delivered = self._run_index.delivered.join(places, "stay", "left")
        self._sent = self._run_index.sent.join(places, "stay", "left")
        self._read_claims()
        books = self._keep(self._books())
        by_messages = [
            *self._outside(),
            self._strays(books),
            *self._again(),
            *self._debts(books),
            *self._purges(),
        ]
        named = self._run_index.named(reduce(DataFrame.union, by_messages))
        return together([self._structure(), named])

    # tables

    def _places(self) -> DataFrame:
        """Of each stay its regular configuration, if it is one, and its place: its configuration there."""
        reg = dict(self._claims.regular)
        places: dict[object, int] = {}
        rows = []
        for run, known in self._run_index.stays.runs.items():
            for stay in known.stays:
                number = self._run_index.stays.number(run, stay)
                place = places.setdefault((run, stay.process, stay.configuration), len(places))
                rows.append((number, reg.get(number), place))
        return fn.broadcast(self._run_index.table(rows, "stay", "reg", "place"))

    def _read_claims(self) -> None:
        rows = [
            (debtor.number, self._run_index.numbers[debtor.who], debtor.alone, debtor.same, debtor.safe)
            for debtor in self._claims.debtors
        ]
        self._debtors = small_frame(self._spark, _DEBTOR, rows)
        senders = [(reg, self._run_index.numbers[who], debtor) for reg, who, debtor in self._claims.senders]
        self._senders = self._run_index.table(senders, "reg", "author", "debtor")
        self._holds = self._run_index.table(self._claims.holds, "stay", "debtor")

    def _books(self) -> DataFrame:
        return obligations.books(
            self._delivered,
            self._sent,
            holds=self._holds,
            own=self._run_index.table(self._claims.own, "stay", "debtor"),
            sources=self._run_index.table(self._claims.sources, "stay", "source"),
            asked=small_frame(
                self._spark, {"source": WHOLE, "debtor": WHOLE, "kind": TEXT}, self._claims.asked
            ),
            senders=self._senders,
        )

    # what is wrong

    def _structure(self) -> DataFrame:
        rows = [
            told_by(run, verdict)
            for run, history in self._run_index.stays.histories.items()
            for verdict in check(history, _STRUCTURAL)
            if verdict.count
        ]
        return known_violations(self._spark, rows)

    def _outside(self) -> list[DataFrame]:
        """2.2: messages outside every configuration, or sent with the number of another one."""
        name = "evs_2_2_inside_configuration"
        both = self._sent.union(self._delivered)
        outside = both.where(f"outside or (what = {SENT} and view != inside)")
        what = fn.when(fn.col("outside"), fn.lit("outside every configuration")).otherwise(
            fn.lit("sent with the number of another configuration")
        )
        early = fn.broadcast(self._run_index.table(self._crashed_outside(), "segment"))
        crashed = both.join(early, "segment").select("who").distinct()
        nothing = fn.lit(None).cast("long")
        crashes = crashed.select(
            "who", nothing.alias("author"), fn.lit(0).alias("first"), fn.lit(0).alias("last")
        )
        return [
            numbered_violations(outside, name, what),
            numbered_violations(crashes, name, "crashed outside every configuration"),
        ]

    def _crashed_outside(self) -> list[tuple[int]]:
        """The segments before a crash that was outside; it is no offence if nothing happened there."""

        def first_is_crash(number: int, segment: Segment) -> bool:
            after = (
                self._run_index.segments[number + 1] if number + 1 < len(self._run_index.segments) else None
            )
            same = after is not None and after.who == segment.who
            return same and after is not None and after.stay is None and after.crashed and not segment.crashed

        return [
            (number,)
            for number, segment in enumerate(self._run_index.segments)
            if first_is_crash(number, segment)
        ]

    def _strays(self, books: DataFrame) -> DataFrame:
        """1.3: what was delivered was sent there, or may be after the end of a recording."""
        rows = [(self._run_index.numbers[who], tail) for who, tail in self._given.tails.items()]
        tails = fn.broadcast(self._run_index.table(rows, "author", "tail"))
        members = self._senders.join(tails, "author", "left").select("debtor", "author", "tail")
        found = self._of_debtors(obligations.strays(books, members)).where("alone")
        name = "evs_1_3_sent_before_in_same_configuration"
        return numbered_violations(found, name, "delivered, but not sent there by a member")

    def _again(self) -> list[DataFrame]:
        """1.4: sent in a transitional configuration, or delivered in several."""
        name = "evs_1_4_once"
        late = self._sent.where("stay is not null and reg is null")
        inside = self._delivered.where("stay is not null")
        found = [numbered_violations(late, name, "sent in a transitional configuration")]
        repeats = self._keep(obligations.repeats(inside).select("who", "author").distinct())
        if not repeats.isEmpty():
            doubtful = inside.join(fn.broadcast(repeats), ["who", "author"], "left_semi")
            several = obligations.in_several(doubtful)
            more = fn.col("times") - 1
            found.append(
                numbered_violations(several, name, "delivered in several configurations", times=more)
            )
        return found

    def _debts(self, books: DataFrame) -> list[DataFrame]:
        """3, 4, 7.1, 7.2 and what the pairwise rules say about messages."""
        lacking = self._keep(obligations.lacking(books))
        if lacking.isEmpty():
            return []
        held = books.where("delivered")
        covered = replacements.covered(self._run_index, lacking, held, self._given.positions)
        left = lacking if covered is None else self._keep(obligations.unpaid(lacking, covered))
        promised = obligations.within(
            left.where("promised"), self._run_index.safe.select("author", "first", "last")
        )
        own, same = left.where("own"), self._of_debtors(left.where("same"))
        return [
            numbered_violations(self._of_debtors(own), "evs_3_self_delivery", _LACKING),
            numbered_violations(same.withColumn("name", fn.explode("same")), fn.col("name"), _LACKING),
            numbered_violations(self._of_debtors(promised), fn.col("safe"), _LACKING),
        ]

    def _purges(self) -> list[DataFrame]:
        if not self._run_index.with_kinds(Kind.PURGE):
            return []
        receipts = self._keep(_receipts(self._run_index.receipts, self._run_index.people))
        regular = self._keep(_in_regular(self._sent))
        parts = self._keep(_same_configuration(receipts, regular))
        free = self._run_index.table(self._free(), "who", "reg")
        had = _had(parts, self._delivered, receipts)
        found = _unfounded(receipts, parts, had, free)
        name = "evs_purge_within_configuration"
        reason = "purged for a message that was not sent there, or is not there"
        return [numbered_violations(found, name, reason, times=fn.col("times"), index=fn.col("index"))]

    def _free(self) -> Iterator[tuple[int, int]]:
        """Who owes nothing in which configuration."""
        for who in self._run_index.everybody:
            run, process = who
            known = self._run_index.stays.runs[run]
            for reg, number in self._claims.regs[run].items():
                if not known.owes(process, reg):
                    yield self._run_index.numbers[who], number

    # names

    def _of_debtors(self, rows: DataFrame) -> DataFrame:
        """Rows (debtor, author, first, last) with what is known of the debtor."""
        spans = rows.select("debtor", "author", "first", "last")
        return spans.join(fn.broadcast(self._debtors), "debtor")


_RECEIPT = ["who", "index"]
_SPAN = ("who", "author", "first", "last")


def _receipts(purges: DataFrame, people: DataFrame) -> DataFrame:
    """(who, index, author, first, last, by_author, by_seq), the last two null where none is named."""
    rows = purges.withColumn("by", fn.get("annotation.ids", fn.lit(0)))
    numbered = with_author(with_number(rows, people, "process"), people)
    replacements = people.select(
        "run",
        fn.col("member.name").alias("by_name"),
        fn.col("member.incarnation").alias("by_incarnation"),
        fn.col("who").alias("by_author"),
    )
    return (
        numbered.withColumn("by_name", fn.col("by.sender"))
        .withColumn("by_incarnation", fn.col("by.incarnation"))
        .join(fn.broadcast(replacements), ["run", "by_name", "by_incarnation"], "left")
        .select(
            *_RECEIPT,
            "author",
            fn.col("seq").alias("first"),
            "last",
            "by_author",
            fn.col("by.seq").alias("by_seq"),
        )
    )


def _in_regular(sent: DataFrame) -> DataFrame:
    """What was sent in regular configurations: (reg, author, chunk, first, last), as few spans as can be."""
    spans = sent.where("reg is not null").select("reg", "author", "first", "last", fn.lit(1).alias("sent"))
    merged = overlay(chunked(spans), ["reg", "author", "chunk"], ["sent"])
    return merged.select("reg", "author", "chunk", "first", "last")


def _same_configuration(receipts: DataFrame, regular: DataFrame) -> DataFrame:
    """The parts of receipts whose messages and replacement were sent in the same regular configuration.

    (who, index, reg, first, last, by_author, by_seq)
    """
    places = regular.select(
        "reg", "author", "chunk", fn.col("first").alias("from"), fn.col("last").alias("upto")
    )
    parts = (
        chunked(receipts.where("by_author is not null"))
        .join(places, ["author", "chunk"])
        .select(
            *_RECEIPT,
            "reg",
            fn.greatest("first", "from").alias("first"),
            fn.least("last", "upto").alias("last"),
            "by_author",
            "by_seq",
        )
        .where("first <= last")
    )
    theirs = places.select("reg", fn.col("author").alias("by_author"), "from", "upto")
    return (
        parts.join(theirs, ["reg", "by_author"])
        .where("by_seq between from and upto")
        .select(*_RECEIPT, "reg", "first", "last", "by_author", "by_seq")
    )


def _had(parts: DataFrame, delivered: DataFrame, receipts: DataFrame) -> DataFrame:
    """Of the replacements named in parts, those that the process delivered or has a receipt for.

    (who, by_author, by_seq); `delivered` is (who, author, first, last).
    """
    flags = {name: fn.lit(0).alias(name) for name in ("named", "has")}
    some = fn.lit(1)
    named = parts.select(
        "who",
        fn.col("by_author").alias("author"),
        fn.col("by_seq").alias("first"),
        fn.col("by_seq").alias("last"),
    ).distinct()
    spans = (
        named.select(*_SPAN, some.alias("named"), flags["has"])
        .union(delivered.select(*_SPAN, flags["named"], some.alias("has")))
        .union(receipts.select(*_SPAN, flags["named"], some.alias("has")))
    )
    found = overlay(chunked(spans), ["who", "author", "chunk"], ["named", "has"]).where("named and has")
    return found.select(
        "who", fn.col("author").alias("by_author"), fn.explode(fn.sequence("first", "last")).alias("by_seq")
    )


def _unfounded(receipts: DataFrame, parts: DataFrame, had: DataFrame, free: DataFrame) -> DataFrame:
    """Receipts that are wrong for some of their messages, and for how many.

    (who, author, first, last, index, times); `free` is (who, reg) of those who owe nothing there yet.
    """
    columns = (*_RECEIPT, "first", "last")
    excused = parts.join(fn.broadcast(free), ["who", "reg"], "left_semi")
    others = parts.join(fn.broadcast(free), ["who", "reg"], "left_anti")
    with_it = others.join(had, ["who", "by_author", "by_seq"], "left_semi")
    founded = (
        excused.select(*columns)
        .union(with_it.select(*columns))
        .groupBy(*_RECEIPT)
        .agg(fn.sum(fn.col("last") - fn.col("first") + 1).alias("founded"))
    )
    wrong = fn.col("last") - fn.col("first") + 1 - fn.coalesce("founded", fn.lit(0))
    return (
        receipts.join(founded, _RECEIPT, "left")
        .withColumn("times", wrong)
        .where("times > 0")
        .select("who", "author", "first", fn.col("first").alias("last"), "index", "times")
    )
