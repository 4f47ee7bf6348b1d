"""The obsolescence relation over annotated messages, as edges from a message to one that replaces it.

An item tag needs only the edge to the next message with the same tag.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history.schema import AnnotationKind, Kind
from semcast.pipeline.frames import MEMBER, TEXT, WHOLE
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.graph import endless_rows
from semcast.pipeline.verify.violations import violations

MEMBER_TYPE = "struct<name: string, incarnation: bigint>"
POSITIONS = {"run": TEXT, "sender": MEMBER, "seq": WHOLE, "position": WHOLE}
_BIN = 64
"""Spans and messages meet where they have a bin of so many numbers in common."""

_EDGE = ("run", "sender", "seq", "new_sender", "new_seq")


def annotated(events: DataFrame) -> DataFrame:
    """The messages that say something about obsolescence: (run, sender, seq, note)."""
    return (
        of_kind(events, Kind.MULTICAST)
        .where("annotation is not null")
        .select("run", "sender", "seq", fn.col("annotation").alias("note"))
    )


def annotated_within(spans: DataFrame, annotated: DataFrame, whose: str) -> DataFrame:
    """The annotated messages inside spans (whose, run, sender, first, last): (whose, run, sender, seq)."""
    within = fn.sequence(fn.expr(f"first div {_BIN}"), fn.expr(f"last div {_BIN}"))
    cut = spans.select(whose, "run", "sender", "first", "last", fn.explode(within).alias("bin"))
    notes = annotated.select("run", "sender", "seq", fn.expr(f"seq div {_BIN}").alias("bin"))
    inside = notes.join(cut, ["run", "sender", "bin"]).where("seq between first and last")
    return inside.select(whose, "run", "sender", "seq")


def positions(events: DataFrame, annotated: DataFrame) -> DataFrame:
    """Where annotated messages stand in the total order: (run, sender, seq, position)."""
    placed = of_kind(events, Kind.MULTICAST, Kind.DELIVER, Kind.PURGE).where("order is not null")
    seq = fn.explode(fn.sequence("seq", "last"))
    return (
        placed.select("run", "sender", (fn.col("order") - fn.col("seq")).alias("shift"), seq.alias("seq"))
        .select("run", "sender", "seq", (fn.col("shift") + fn.col("seq")).alias("position"))
        .distinct()
        .join(annotated, ["run", "sender", "seq"], "left_semi")
        .select("run", "sender", "seq", "position")
    )


def chains(annotated: DataFrame) -> DataFrame:
    """Item tags: (run, sender, seq, item, next, later), the next of the same tag and how many come later."""
    along = Window.partitionBy("run", "sender", "item").orderBy("seq")
    back = Window.partitionBy("run", "sender", "item").orderBy(fn.desc("seq"))
    return (
        annotated.where(fn.col("note.kind") == AnnotationKind.ITEM.value)
        .select("run", "sender", "seq", "note.item")
        .select(
            "run",
            "sender",
            "seq",
            "item",
            fn.lead("seq").over(along).alias("next"),
            (fn.row_number().over(back) - 1).alias("later"),
        )
    )


def chain_edges(chains: DataFrame) -> DataFrame:
    """The edges of item tags."""
    following = chains.where("next is not null")
    return following.select(
        "run", "sender", "seq", fn.col("sender").alias("new_sender"), fn.col("next").alias("new_seq")
    )


def listed_edges(annotated: DataFrame, positions: DataFrame) -> DataFrame:
    """The edges of enumerations and bitmaps; what they name need not exist."""
    edges = _named(annotated).union(_marked(annotated)).union(_marked_in_total_order(annotated, positions))
    return edges.select(*_EDGE)


def names_others() -> Column:
    """Whether the message of a stored row may replace others than earlier ones of its own sender."""
    forwards = fn.exists(
        "annotation.ids",
        lambda named: (
            (named.getField("sender") != fn.col("sender"))
            | (named.getField("incarnation") != fn.col("sender_incarnation"))
            | (named.getField("seq") > fn.col("seq"))
        ),
    )
    odd = fn.coalesce(forwards, fn.lit(False)) | fn.coalesce(fn.col("annotation.total"), fn.lit(False))
    return (fn.col("kind") == Kind.MULTICAST.value) & odd


def order_violations(annotated: DataFrame, positions: DataFrame) -> DataFrame:
    """Messages whose chain of replacements never ends. Each run's edges meet in one task."""
    listed = listed_edges(annotated, positions)
    real = listed.join(annotated, ["run", "sender", "seq"], "left_semi").select(*_EDGE)
    edges = real.union(chain_edges(chains(annotated))).select("run", "sender", "seq", *node_columns())
    endless = edges.groupBy("run").applyInArrow(endless_rows, f"run string, sender {MEMBER_TYPE}, seq bigint")
    found = endless.select(
        "run",
        fn.col("sender").alias("process"),
        "sender",
        fn.col("seq").alias("first"),
        fn.col("seq").alias("last"),
    )
    return violations(found, "relation_is_order", "its replacements run in a circle")


def node_columns() -> list[Column]:
    """Both ends of an edge as hashes."""
    return [fn.xxhash64("sender", "seq").alias("old"), fn.xxhash64("new_sender", "new_seq").alias("new")]


def _named(annotated: DataFrame) -> DataFrame:
    """Enumerations: what they name, except themselves."""
    named = annotated.where(fn.col("note.kind") == AnnotationKind.ENUMERATION.value).select(
        "run",
        fn.col("sender").alias("new_sender"),
        fn.col("seq").alias("new_seq"),
        fn.explode("note.ids").alias("id"),
    )
    sender = fn.struct(fn.col("id.sender").alias("name"), fn.col("id.incarnation").alias("incarnation"))
    return (
        named.select("run", sender.alias("sender"), fn.col("id.seq").alias("seq"), "new_sender", "new_seq")
        .where((fn.col("sender") != fn.col("new_sender")) | (fn.col("seq") != fn.col("new_seq")))
        .select(*_EDGE)
    )


def _marked(annotated: DataFrame) -> DataFrame:
    """Bitmaps over the sender's own numbers: only earlier ones count."""
    return (
        _marks(annotated.where("not note.total"))
        .where(fn.col("position") < fn.col("new_seq"))
        .select(
            "run",
            fn.col("new_sender").alias("sender"),
            fn.col("position").alias("seq"),
            "new_sender",
            "new_seq",
        )
    )


def _marked_in_total_order(annotated: DataFrame, positions: DataFrame) -> DataFrame:
    return _marks(annotated.where("note.total")).join(positions, ["run", "position"]).select(*_EDGE)


def _marks(annotated: DataFrame) -> DataFrame:
    """The positions that bitmaps replace: (run, new_sender, new_seq, position)."""
    bitmaps = annotated.where(
        (fn.col("note.kind") == AnnotationKind.K_ENUMERATION.value) & (fn.length("note.bitmap") > 0)
    )
    value = fn.conv(fn.hex(fn.substring("bitmap", fn.col("byte"), fn.lit(1))), 16, 10).cast("int")
    is_set = fn.expr("filter(sequence(0, 7), bit -> shiftright(value, bit) % 2 = 1)")
    return (
        bitmaps.select("run", "sender", "seq", "note.base", "note.bitmap")
        .select("*", fn.explode(fn.sequence(fn.lit(1), fn.length("bitmap"))).alias("byte"))
        .select("*", value.alias("value"))
        .where("value != 0")
        .select("*", fn.explode(is_set).alias("bit"))
        .select(
            "run",
            fn.col("sender").alias("new_sender"),
            fn.col("seq").alias("new_seq"),
            (fn.col("base") - (fn.col("byte") - 1) * 8 - fn.col("bit") - 1).alias("position"),
        )
    )
