"""Receipts for what was purged: each names a message of the same configuration, which the process has."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.history.schema import Kind
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.moves import with_author, with_number
from semcast.pipeline.verify.spans import chunked, segments

_RECEIPT = ["who", "index"]
_SPAN = ("who", "author", "first", "last")


def receipts(events: DataFrame, people: DataFrame) -> DataFrame:
    """(who, index, author, first, last, by_author, by_seq), the last two null where none is named."""
    rows = of_kind(events, Kind.PURGE).withColumn("by", fn.get("annotation.ids", fn.lit(0)))
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


def in_regular(sent: DataFrame) -> DataFrame:
    """What was sent in regular configurations: (reg, author, chunk, first, last), as few spans as can be."""
    spans = sent.where("reg is not null").select("reg", "author", "first", "last", fn.lit(1).alias("sent"))
    merged = segments(chunked(spans), ["reg", "author", "chunk"], ["sent"])
    return merged.select("reg", "author", "chunk", "first", "last")


def same_configuration(receipts: DataFrame, regular: DataFrame) -> DataFrame:
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


def had(parts: DataFrame, delivered: DataFrame, receipts: DataFrame) -> DataFrame:
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
    found = segments(chunked(spans), ["who", "author", "chunk"], ["named", "has"]).where("named and has")
    return found.select(
        "who", fn.col("author").alias("by_author"), fn.explode(fn.sequence("first", "last")).alias("by_seq")
    )


def unfounded(receipts: DataFrame, parts: DataFrame, had: DataFrame, free: DataFrame) -> DataFrame:
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
