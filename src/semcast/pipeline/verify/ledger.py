"""Who delivered, owes and lacks what: the spans behind integrity and the semantic properties.

Only processes whose deliveries of a sender are not exactly what it multicast have rows here.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify.spans import chunked, segments
from semcast.pipeline.verify.tails import told
from semcast.pipeline.verify.violations import violations

_PAIR = ["run", "process", "sender"]
_LAYERS = ("multicast", "agreed", "anywhere", "delivered")
_UNPAID = ("multicast", "agreed", "anywhere")


def delivered_spans(delivered: DataFrame, pairs: DataFrame) -> DataFrame:
    """What differing processes delivered: (run, process, sender, correct, chunk, first, last).

    `delivered` is (run, process, sender, first, last).
    """
    differing = pairs.where("not same").select(*_PAIR, "correct")
    spans = delivered.join(fn.broadcast(differing), _PAIR)
    return chunked(spans.select(*_PAIR, "correct", "first", "last"))


def multicast_spans(sent: DataFrame, pairs: DataFrame) -> DataFrame:
    """What was multicast by senders of whom anybody differs: (run, sender, chunk, first, last)."""
    senders = pairs.where("not same").select("run", "sender").distinct()
    spans = sent.join(fn.broadcast(senders), ["run", "sender"], "left_semi")
    return chunked(spans.select("run", "sender", "first", "last"))


def somewhere_spans(delivered: DataFrame, multicast: DataFrame, pairs: DataFrame) -> DataFrame:
    """What somebody delivered: (run, sender, chunk, first, last, multicast, agreed, anywhere).

    `agreed` is what a correct process delivered. Who does not differ delivered all that was multicast.
    """
    complete = (
        pairs.where("same")
        .groupBy("run", "sender")
        .agg(fn.max(fn.col("correct").cast("int")).alias("agreed"))
    )
    everything = multicast.join(fn.broadcast(complete), ["run", "sender"], "left")
    columns = ("run", "sender", "chunk", "first", "last")
    layers = everything.select(
        *columns,
        fn.lit(1).alias("multicast"),
        fn.coalesce("agreed", fn.lit(0)).alias("agreed"),
        fn.col("agreed").isNotNull().cast("int").alias("anywhere"),
    ).union(
        delivered.select(
            *columns, fn.lit(0).alias("multicast"), fn.col("correct").cast("int").alias("agreed"), fn.lit(1)
        )
    )
    return segments(layers, ["run", "sender", "chunk"], _UNPAID).select(*columns, *_UNPAID)


def ledger(delivered: DataFrame, somewhere: DataFrame, pairs: DataFrame) -> DataFrame:
    """Per process and sender, segments with what is true of them: (run, process, sender, ..., *layers).

    `delivered` is how often; the others are flags.
    """
    keys = [*_PAIR, "chunk"]
    own = delivered.select(*keys, "first", "last", *_layers(delivered=fn.lit(1)))
    differing = pairs.where("not same").select(*_PAIR)
    owed = somewhere.join(fn.broadcast(differing), ["run", "sender"]).select(
        *keys, "first", "last", *_layers(**{name: fn.col(name).cast("int") for name in _UNPAID})
    )
    found = segments(own.union(owed), keys, _UNPAID, ["delivered"])
    others = pairs.where("same and correct").select(*_PAIR)
    # Who has all that was multicast can still lack what somebody made up.
    strays = somewhere.where("not multicast").join(fn.broadcast(others), ["run", "sender"])
    columns = [*_PAIR, "first", "last", *_UNPAID]
    return (
        found.select(*columns, "delivered")
        .union(strays.select(*columns, fn.lit(0).cast("long").alias("delivered")))
        .select(*columns, "delivered")
    )


def integrity_violations(ledger: DataFrame, tails: DataFrame | None = None) -> DataFrame:
    """Messages delivered again, and messages that nobody multicast, whose recording is cut off or not."""
    repeats = violations(
        ledger.where("delivered > 1"), "integrity", "delivered again", times=fn.col("delivered") - 1
    )
    made_up = ledger.where("delivered > 0 and not multicast")
    if tails is not None:
        made_up = told(made_up, tails)
    return repeats.union(violations(made_up, "integrity", "delivered, but nobody multicast it"))


def lacking(ledger: DataFrame, pairs: DataFrame) -> DataFrame:
    """What correct processes did not deliver: (run, process, sender, first, last, *flags)."""
    correct = pairs.where("correct").select(*_PAIR)
    missing = ledger.where("delivered = 0").join(fn.broadcast(correct), _PAIR, "left_semi")
    return missing.select(*_PAIR, "first", "last", *_UNPAID)


def unpaid(lacking: DataFrame, covered: DataFrame) -> DataFrame:
    """What is lacking without the messages (run, process, sender, seq) that are covered."""
    columns = (*_PAIR, "first", "last", *_UNPAID, "covered")
    flags = [fn.col(name).cast("int").alias(name) for name in _UNPAID]
    holes = covered.select(
        *_PAIR,
        fn.col("seq").alias("first"),
        fn.col("seq").alias("last"),
        *(fn.lit(0).alias(name) for name in _UNPAID),
        fn.lit(1).alias("covered"),
    )
    spans = lacking.select(*_PAIR, "first", "last", *flags, fn.lit(0).alias("covered"))
    left = segments(chunked(spans.union(holes).select(*columns)), [*_PAIR, "chunk"], [*_UNPAID, "covered"])
    return left.where("not covered").select(*_PAIR, "first", "last", *_UNPAID)


def semantic_violations(unpaid: DataFrame, pairs: DataFrame) -> DataFrame:
    """What is owed by each property and was not paid."""
    multicast, latest, last = fn.col("multicast"), fn.col("latest"), fn.col("last")
    debts = fn.array(
        _debt("semantic_sender_reliability", multicast & fn.col("sender_correct"), last),
        _debt("semantic_validity", multicast & (fn.col("process") == fn.col("sender")), last),
        _debt("semantic_agreement", fn.col("agreed"), last),
        _debt("semantic_uniform_agreement", fn.col("anywhere"), last),
        _debt(
            "semantic_fifo_completeness", multicast & (fn.col("first") < latest), fn.least(last, latest - 1)
        ),
    )
    owing = pairs.select(*_PAIR, "sender_correct", "latest")
    found = (
        unpaid.join(fn.broadcast(owing), _PAIR)
        .select(*_PAIR, "first", fn.explode(fn.filter(debts, lambda debt: debt.isNotNull())).alias("debt"))
        .select(*_PAIR, "first", "debt.last", "debt.property")
    )
    return violations(found, fn.col("property"), "has neither this nor a replacement")


def _debt(name: str, owed: Column, last: Column) -> Column:
    return fn.when(owed, fn.struct(fn.lit(name).alias("property"), last.alias("last")))


def _layers(**given: Column) -> list[Column]:
    """All layers in order, 0 where nothing is given."""
    return [given.get(name, fn.lit(0)).alias(name) for name in _LAYERS]
