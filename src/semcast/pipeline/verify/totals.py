"""One pass over everything: what there is of each process, and fingerprints of what it delivered.

The fingerprint of a set of messages is the xor, and the sum, of h(seq) - h(seq + 1) over its messages. Of a
run of messages that is h(first) - h(last + 1), so it does not depend on how runs were cut, nor on any order.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.history.schema import GONE, Kind
from semcast.pipeline.verify.events import is_malformed, process, sender
from semcast.pipeline.verify.relation import names_others
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


def pairs(totals: DataFrame, roster: DataFrame) -> DataFrame:
    """Every process of a run with every sender there, and whether it delivered exactly what was multicast.

    `roster` is (run, process, correct). `messages` counts deliveries,
    repeated ones too; `latest` is the highest that was delivered, 0 if none was.
    """
    sent, delivered = _prints(totals, Kind.MULTICAST), _prints(totals, Kind.DELIVER)
    multicast = sent.select("run", "sender", fn.struct(*_PRINT).alias("sent"))
    deliveries = delivered.select("run", "process", "sender", fn.struct(*_PRINT).alias("got"), "latest")
    senders = multicast.select("run", "sender").union(deliveries.select("run", "sender")).distinct()
    authors = roster.select(
        "run", fn.col("process").alias("sender"), fn.col("correct").alias("sender_correct")
    )
    return (
        roster.join(senders, "run")
        .join(multicast, ["run", "sender"], "left")
        .join(deliveries, ["run", "process", "sender"], "left")
        .join(authors, ["run", "sender"], "left")
        .select(
            "run",
            "process",
            "sender",
            "correct",
            fn.coalesce("sender_correct", fn.lit(False)).alias("sender_correct"),
            fn.coalesce("got.messages", fn.lit(0)).alias("messages"),
            fn.coalesce("latest", fn.lit(0)).alias("latest"),
            fn.coalesce(fn.col("sent") == fn.col("got"), fn.lit(False)).alias("same"),
        )
    )


def _prints(totals: DataFrame, kind: Kind) -> DataFrame:
    return totals.where(fn.col("kind") == kind.value).select("run", "process", "sender", *_PRINT, "latest")
