"""What is asked of debtors, what they hold and lack, and what strayed there: spans laid over each other.

Sets of sequence numbers are spans, so that no result depends on how a recorder cut its rows. Spans are cut at
the edges of chunks, which are the same for all: no window and no join then spans more than a chunk, however
long a stream is. `Books` are those of primary views, in which a debtor is a stay.
"""

from collections.abc import Sequence
from functools import cached_property, reduce
from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.pipeline.frames import FLAG, TEXT, WHOLE, small_frame
from semcast.pipeline.verify.forms import Given
from semcast.pipeline.verify.replacements import ReplacementsInViews
from semcast.pipeline.verify.run_index import RunIndex
from semcast.pipeline.verify.stays import PROMISED, SAME, ViewClaims, view_claims_of

CHUNK = 1 << 20
"""How many numbers a chunk spans. No result depends on it."""


def chunked(spans: DataFrame, *, chunk: int = CHUNK) -> DataFrame:
    """Spans (..., first, last) cut at the edges of chunks: (..., chunk, first, last)."""
    others = [name for name in spans.columns if name not in ("first", "last")]
    first, last, number = fn.col("first"), fn.col("last"), fn.col("chunk")
    within = fn.sequence(fn.expr(f"first div {chunk}"), fn.expr(f"last div {chunk}"))
    return spans.select("*", fn.explode(within).alias("chunk")).select(
        *others,
        "chunk",
        fn.greatest(first, number * chunk).alias("first"),
        fn.least(last, (number + 1) * chunk - 1).alias("last"),
    )


def overlay(
    spans: DataFrame, keys: Sequence[str], flags: Sequence[str], depths: Sequence[str] = ()
) -> DataFrame:
    """The layers of spans laid over each other: (*keys, first, last, *flags, *depths).

    `spans` says in a column for each layer whether a span belongs to it (1 or 0). Of the maximal segments
    within which nothing changes, those come back that lie in any layer. A flag says whether the segment lies
    in a span of its layer, a depth in how many.
    """
    layers = [*flags, *depths]
    at = Window.partitionBy(*keys).orderBy("first")
    edges = _edges(spans, keys, layers)
    upto_here = at.rowsBetween(Window.unboundedPreceding, 0)
    covered = edges.select(
        *keys,
        "first",
        *((fn.sum(name).over(upto_here) > 0).alias(name) for name in flags),
        *(fn.sum(name).over(upto_here).alias(name) for name in depths),
    )
    state = fn.struct(*layers)
    changes = covered.select("*", fn.lag(state).over(at).alias("before")).where(
        fn.col("before").isNull() | (state != fn.col("before"))
    )
    inside = _any([fn.col(name) for name in flags] + [fn.col(name) > 0 for name in depths])
    return (
        changes.select(*keys, "first", (fn.lead("first").over(at) - 1).alias("last"), *layers)
        .where(inside)
        .select(*keys, "first", "last", *layers)
    )


def length() -> Column:
    """How many numbers a span holds."""
    return fn.col("last") - fn.col("first") + 1


def _edges(spans: DataFrame, keys: Sequence[str], layers: Sequence[str]) -> DataFrame:
    """Where layers begin and end: at each place the difference in depth of each."""
    begin = fn.struct(fn.col("first"), *(fn.col(name).cast("long").alias(name) for name in layers))
    end = fn.struct(
        (fn.col("last") + 1).alias("first"), *((-fn.col(name).cast("long")).alias(name) for name in layers)
    )
    return (
        spans.select(*keys, fn.explode(fn.array(begin, end)).alias("edge"))
        .groupBy(*keys, fn.col("edge.first").alias("first"))
        .agg(*(fn.sum(f"edge.{name}").alias(name) for name in layers))
        .where(_any([fn.col(name) != 0 for name in layers]))
        .select(*keys, "first", *layers)
    )


def _any(conditions: list[Column]) -> Column:
    return reduce(lambda some, other: some | other, conditions)


_BIN = 64
_KEYS = ["debtor", "author", "chunk"]
_SPAN = ("debtor", "author", "first", "last")
_LAYERS = ("delivered", "expected", "own", SAME, PROMISED)
ASKED = ("own", SAME, PROMISED)


def books(
    delivered: DataFrame,
    sent: DataFrame,
    *,
    holds: DataFrame,
    own: DataFrame,
    sources: DataFrame,
    asked: DataFrame,
    senders: DataFrame,
) -> DataFrame:
    """Per debtor and sender, segments with what is true of them: (debtor, author, first, last, *layers).

    `delivered` and `sent` are (stay, author, first, last), `sent` also with `reg`, the number of the regular
    configuration of the stay if it is one. The others are the tables of `Claims`.
    """
    held = _layer(delivered.join(fn.broadcast(holds), "stay"), delivered=fn.lit(1))
    expected = _layer(sent.join(fn.broadcast(senders), ["reg", "author"]), expected=fn.lit(1))
    owing = _layer(sent.join(fn.broadcast(own), "stay"), own=fn.lit(1))
    together = chunked(
        delivered.join(fn.broadcast(sources), "stay").select(
            "source", "author", "first", "last", fn.lit(1).alias("there")
        )
    )
    anybody = overlay(together, ["source", "author", "chunk"], ["there"]).join(fn.broadcast(asked), "source")
    claimed = _layer(
        anybody,
        **{kind: (fn.col("kind") == kind).cast("int") for kind in (SAME, PROMISED)},
    )
    spans = chunked(reduce(DataFrame.union, [held, expected, owing, claimed]))
    return overlay(spans, _KEYS, _LAYERS).select(*_SPAN, *_LAYERS)


def strays(books: DataFrame, members: DataFrame) -> DataFrame:
    """What was delivered, but not sent there: (debtor, author, first, last).

    `members` is (debtor, author, tail) for those who may send there; `tail` is null, or the last message
    that the sender is known to have sent before its recording was cut off.
    """
    wrong = books.where("delivered and not expected").join(
        fn.broadcast(members), ["debtor", "author"], "left"
    )
    told = fn.least(fn.col("last"), fn.coalesce("tail", "last"))
    return wrong.select("debtor", "author", "first", told.alias("last")).where("first <= last").select(*_SPAN)


def lacking(books: DataFrame) -> DataFrame:
    """What is asked for and not delivered: (debtor, author, first, last, own, same, promised)."""
    return books.where("not delivered and (own or same or promised)").select(*_SPAN, *ASKED)


def unpaid(lacking: DataFrame, covered: DataFrame, flags: Sequence[str] = ASKED) -> DataFrame:
    """What is lacking without the messages (debtor, author, seq) that are covered."""
    spans = lacking.select(
        *_SPAN, *(fn.col(name).cast("int").alias(name) for name in flags), fn.lit(0).alias("covered")
    )
    seq = fn.col("seq")
    holes = covered.select(
        *_SPAN[:2], seq.alias("first"), seq.alias("last"), *(fn.lit(0) for _ in flags), fn.lit(1)
    )
    left = overlay(chunked(spans.union(holes)), _KEYS, [*flags, "covered"])
    return left.where("not covered").select(*_SPAN, *flags)


def without(spans: DataFrame, others: DataFrame) -> DataFrame:
    """What of spans (debtor, author, first, last) does not lie in others."""
    both = spans.select(*_SPAN, fn.lit(1).alias("asked"), fn.lit(0).alias("held")).union(
        others.select(*_SPAN, fn.lit(0), fn.lit(1))
    )
    laid = overlay(chunked(both), _KEYS, ["asked", "held"])
    return laid.where("asked and not held").select(*_SPAN)


def within(spans: DataFrame, sent: DataFrame) -> DataFrame:
    """What of spans (debtor, author, first, last) lies in others, (author, first, last)."""
    one = chunked(spans.select(*_SPAN), chunk=_BIN)
    other = chunked(
        sent.join(fn.broadcast(one.select("author").distinct()), "author", "left_semi"), chunk=_BIN
    )
    others = other.select("author", "chunk", fn.col("first").alias("from"), fn.col("last").alias("upto"))
    return (
        one.join(others, ["author", "chunk"])
        .select(
            "debtor",
            "author",
            fn.greatest("first", "from").alias("first"),
            fn.least("last", "upto").alias("last"),
        )
        .where("first <= last")
        .select(*_SPAN)
    )


def repeats(delivered: DataFrame) -> DataFrame:
    """What a process delivered more than once: (who, author, chunk, first, last, times).

    `delivered` is (who, author, first, last).
    """
    spans = chunked(delivered.select("who", "author", "first", "last", fn.lit(1).alias("times")))
    found = overlay(spans, ["who", "author", "chunk"], [], ["times"])
    return found.where("times > 1").select("who", "author", "chunk", "first", "last", "times")


def in_several(delivered: DataFrame) -> DataFrame:
    """What a process delivered in several configurations: (who, author, first, last, times).

    `delivered` is (who, place, author, first, last), where a place is a configuration at a process.
    """
    keys = ["who", "author", "chunk"]
    spans = chunked(delivered.select("who", "place", "author", "first", "last", fn.lit(1).alias("there")))
    once = overlay(spans, ["place", *keys], ["there"])
    depth = overlay(once.select(*keys, "first", "last", fn.lit(1).alias("times")), keys, [], ["times"])
    return depth.where("times > 1").select("who", "author", "first", "last", "times")


def _layer(rows: DataFrame, **given: Column) -> DataFrame:
    """Rows as spans that lie in the given layers."""
    return rows.select(*_SPAN, *(given.get(name, fn.lit(0)).alias(name) for name in _LAYERS))


_STAY = {"debtor": WHOLE, "view": WHOLE, "who": WHOLE, "closed": FLAG, "run": TEXT}


class Books:
    """The spans of some runs. A debtor is a stay."""

    def __init__(self, given: Given, claims: ViewClaims) -> None:
        self._given = given
        self._run_index = given.run_index
        self._claims = claims
        rows = [
            (stay, view, self._run_index.numbers[who], closed, who[0])
            for stay, view, who, closed in claims.stays
        ]
        self.debtors = small_frame(self._run_index.spark, _STAY, rows)
        """(debtor, view, who, closed, run)"""

    def with_who(self, spans: DataFrame) -> DataFrame:
        """Spans with the process whose stay it is."""
        return spans.join(fn.broadcast(self.debtors.select("debtor", "who")), "debtor")

    @cached_property
    def sent(self) -> DataFrame:
        """What was sent in views: (stay, view, author, first, last)."""
        views = fn.broadcast(self.debtors.select(fn.col("debtor").alias("stay"), "view"))
        return self._run_index.sent.drop("view").join(views, "stay").select("stay", "view", *_SPAN[1:])

    @cached_property
    def spans(self) -> DataFrame:
        """Per stay and sender, with what is true of them: (debtor, author, first, last, *layers)."""
        table, claims = self._run_index.table, self._claims
        closed = [(stay, stay) for stay in claims.closed()]
        members = self.debtors.select("view", "debtor").join(
            self.debtors.select("view", fn.col("who").alias("author")).distinct(), "view"
        )
        found = books(
            self._run_index.delivered.where("stay is not null"),
            self.sent.withColumnRenamed("view", "reg"),
            holds=table([(stay, stay) for stay, _, _, _ in claims.stays], "stay", "debtor"),
            own=table(closed, "stay", "debtor"),
            sources=table(claims.sources, "stay", "source"),
            asked=small_frame(
                self._run_index.spark, {"source": WHOLE, "debtor": WHOLE, "kind": TEXT}, claims.asked
            ),
            senders=members.withColumnRenamed("view", "reg"),
        )
        return self._run_index.keep(found)

    @cached_property
    def lacking(self) -> DataFrame:
        """What is asked for and not delivered: (debtor, author, first, last, own, same, promised)."""
        return self._run_index.keep(lacking(self.spans))

    @cached_property
    def strays(self) -> DataFrame:
        """What was delivered in a view and multicast, but not there: (debtor, author, first, last)."""
        found = self._run_index.keep(self.spans.where("delivered and not expected").select(*_SPAN))
        if found.isEmpty():
            return found
        return self._run_index.keep(within(found, self._run_index.sent.select(*_SPAN[1:])))

    @cached_property
    def latest(self) -> DataFrame:
        """The last message of each sender that was delivered, of those that were multicast.

        (debtor, author, upto)
        """
        known = self.spans.where("delivered and expected").select(*_SPAN).union(self.strays)
        return known.groupBy("debtor", "author").agg(fn.max("last").alias("upto"))

    @cached_property
    def lacking_of_sent(self) -> DataFrame:
        """What closed stays did not deliver of all that was sent in the view, as `lacking_before`."""
        closed = self.debtors.where("closed").select("debtor")
        missing = self.spans.where("expected and not delivered").select(*_SPAN)
        return self._run_index.keep(_flagged(missing.join(fn.broadcast(closed), "debtor"), "own"))

    def lacking_before(self, upto: DataFrame) -> DataFrame:
        """What closed stays did not deliver of what was sent in the view before some message of its sender.

        Of (debtor, author, upto) comes (debtor, author, first, last, *flags).
        """
        asked = self.lacking_of_sent.join(fn.broadcast(upto), ["debtor", "author"])
        last = fn.least(fn.col("last"), fn.col("upto") - 1)
        return self._run_index.keep(
            _flagged(asked.where("first < upto").select(*_SPAN[:3], last.alias("last")), "own")
        )

    def unpaid(self, lacking: DataFrame) -> DataFrame:
        """Of what stays lack, that without a replacement: (debtor, author, first, last, *flags)."""
        return self._without(lacking, self._replaced)

    def lost(self, pairs: DataFrame) -> DataFrame:
        """What one stay sent or delivered and another lacks: (debtor, author, first, last, *flags).

        `pairs` is (debtor, has, lacks), the stays of one view, the second closed, under numbers of their own.
        """
        columns = (fn.col("stay").alias("has"), *_SPAN[1:])
        theirs = self.sent.select(*columns).union(self._run_index.delivered.select(*columns))
        asked = theirs.join(fn.broadcast(pairs), "has").select(*_SPAN)
        holders = fn.broadcast(pairs.select("debtor", "lacks"))
        held = self._held.withColumnRenamed("debtor", "lacks").join(holders, "lacks").select(*_SPAN)
        missing = self._run_index.keep(_flagged(without(asked, held), "own"))
        if missing.isEmpty():
            return missing
        theirs = self._replaced.withColumnRenamed("debtor", "lacks").join(holders, "lacks")
        return self._without(missing, theirs.select("debtor", "author", "seq"))

    @cached_property
    def _held(self) -> DataFrame:
        return self.spans.where("delivered").select(*_SPAN)

    def _without(self, lacking: DataFrame, replaced: DataFrame) -> DataFrame:
        return lacking if lacking.isEmpty() else self._run_index.keep(unpaid(lacking, replaced))

    @cached_property
    def _replaced(self) -> DataFrame:
        """What of all that closed stays lack they have a replacement of: (debtor, author, seq)."""
        closed = self.debtors.where("closed").select("debtor", "view", "run")
        missing = self.spans.where("not delivered and (expected or own or same or promised)")
        lacking = missing.join(fn.broadcast(closed), "debtor", "left_semi").select(*_SPAN)
        replacing = ReplacementsInViews(self._run_index, self.sent, self._given.positions)
        return self._run_index.keep(replacing.covered(lacking, self._held, closed))


_kept: WeakKeyDictionary[RunIndex, Books] = WeakKeyDictionary()


def books_of(given: Given) -> Books:
    """Of all runs of a run_index that have views, opened once."""
    run_index = given.run_index
    found = _kept.get(run_index)
    if found is None:
        runs = [run for run in run_index.infos if run not in run_index.nowhere]
        found = _kept[run_index] = Books(given, view_claims_of(run_index.stays, runs))
    return found


def _flagged(spans: DataFrame, flag: str) -> DataFrame:
    """Spans with the flags of debts, one of them set."""
    return spans.select(*_SPAN, *(fn.lit(name == flag).alias(name) for name in ("own", "same", "promised")))
