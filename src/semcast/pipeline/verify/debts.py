"""What is asked of debtors, what they hold, and what strayed there: spans laid over each other."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify.spans import chunked, segments

SAME, PROMISED = "same", "promised"
"""What others delivered is asked for: of those who go on with them, or of everybody it was promised to."""

_BIN = 64
_KEYS = ["debtor", "author", "chunk"]
_SPAN = ("debtor", "author", "first", "last")
_LAYERS = ("delivered", "expected", "own", SAME, PROMISED)
_ASKED = ("own", SAME, PROMISED)


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
    anybody = segments(together, ["source", "author", "chunk"], ["there"]).join(fn.broadcast(asked), "source")
    claimed = _layer(
        anybody,
        **{kind: (fn.col("kind") == kind).cast("int") for kind in (SAME, PROMISED)},
    )
    spans = chunked(reduce(DataFrame.union, [held, expected, owing, claimed]))
    return segments(spans, _KEYS, _LAYERS).select(*_SPAN, *_LAYERS)


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
    return books.where("not delivered and (own or same or promised)").select(*_SPAN, *_ASKED)


def unpaid(lacking: DataFrame, covered: DataFrame) -> DataFrame:
    """What is lacking without the messages (debtor, author, seq) that are covered."""
    spans = lacking.select(
        *_SPAN, *(fn.col(name).cast("int").alias(name) for name in _ASKED), fn.lit(0).alias("covered")
    )
    holes = covered.select(
        "debtor",
        "author",
        fn.col("seq").alias("first"),
        fn.col("seq").alias("last"),
        *(fn.lit(0).alias(name) for name in _ASKED),
        fn.lit(1).alias("covered"),
    )
    left = segments(chunked(spans.union(holes)), _KEYS, [*_ASKED, "covered"])
    return left.where("not covered and (own or same or promised)").select(*_SPAN, *_ASKED)


def without(spans: DataFrame, others: DataFrame) -> DataFrame:
    """What of spans (debtor, author, first, last) does not lie in others."""
    both = spans.select(*_SPAN, fn.lit(1).alias("asked"), fn.lit(0).alias("held")).union(
        others.select(*_SPAN, fn.lit(0), fn.lit(1))
    )
    laid = segments(chunked(both), _KEYS, ["asked", "held"])
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
    found = segments(spans, ["who", "author", "chunk"], [], ["times"])
    return found.where("times > 1").select("who", "author", "chunk", "first", "last", "times")


def in_several(delivered: DataFrame) -> DataFrame:
    """What a process delivered in several configurations: (who, author, first, last, times).

    `delivered` is (who, place, author, first, last), where a place is a configuration at a process.
    """
    keys = ["who", "author", "chunk"]
    spans = chunked(delivered.select("who", "place", "author", "first", "last", fn.lit(1).alias("there")))
    once = segments(spans, ["place", *keys], ["there"])
    depth = segments(once.select(*keys, "first", "last", fn.lit(1).alias("times")), keys, [], ["times"])
    return depth.where("times > 1").select("who", "author", "first", "last", "times")


def _layer(rows: DataFrame, **given: Column) -> DataFrame:
    """Rows as spans that lie in the given layers."""
    return rows.select(*_SPAN, *(given.get(name, fn.lit(0)).alias(name) for name in _LAYERS))
