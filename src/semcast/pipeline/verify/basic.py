"""What one look at the rows tells: FIFO order, acts after a crash, full buffers, the last states.

Rows lie in files in about the order they happened in. The stretches in which a stream, the multicasts or
deliveries of one sender at one process, goes forwards are known (`folds.py`); a stream whose stretches go
forwards too is in order. Only others are sorted.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history import HistoryError
from semcast.history.schema import GONE, Kind
from semcast.pipeline.frames import TEXT, WHOLE, small_frame
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.totals import roster_table
from semcast.pipeline.verify.violations import name_of, violations
from semcast.specs.crash import ACTS

STATES = ("same_state", "same_state_of_correct_senders")
_STREAM = ("run", "process", "kind", "sender")


def judge_order(given: Given, _wanted: Wanted) -> Findings:
    """FIFO order; raises HistoryError where the numbers of multicasts do not grow."""
    run_index = given.run_index
    streams = run_index.keep(run_index.streams(disordered(run_index.forwards)))
    if streams.isEmpty():
        return Findings()
    rows = of_kind(run_index.events, Kind.MULTICAST, Kind.DELIVER)
    late = run_index.keep(_behind(rows, streams))
    wrong = late.where(fn.col("kind") == Kind.MULTICAST.value).orderBy("run", "process", "index").first()
    if wrong is not None:
        name = wrong["sender"]["name"]
        raise HistoryError(
            f"run {wrong['run']}: multicast of ({name},{wrong['seq']}) after {wrong['highest']}: "
            "the numbers of a sender must grow"
        )
    return Findings([_fifo_violations(late)])


def disordered(stretches: DataFrame) -> DataFrame:
    """The streams whose stretches, sorted, do not go forwards: (who, sent, author).

    `stretches` is (who, sent, author, begin, end, first, last).
    """
    along = Window.partitionBy("who", "sent", "author").orderBy("begin")
    back = (fn.lag("end").over(along) >= fn.col("begin")) | (fn.lag("last").over(along) > fn.col("first"))
    marked = stretches.select("who", "sent", "author", back.alias("back"))
    return marked.where("back").select("who", "sent", "author").distinct()


def _behind(events: DataFrame, streams: DataFrame) -> DataFrame:
    """Of these streams the rows that start below the highest message before them, which is `highest`."""
    rows = events.join(fn.broadcast(streams), list(_STREAM), "left_semi")
    before = Window.partitionBy(*_STREAM).orderBy("index").rowsBetween(Window.unboundedPreceding, -1)
    return (
        rows.select(*_STREAM, "index", "seq", "last", fn.max("last").over(before).alias("highest"))
        .where("seq <= highest")
        .select(*_STREAM, "index", "seq", "last", "highest")
    )


def _fifo_violations(behind: DataFrame) -> DataFrame:
    """Deliveries that come after one of a later message of the same sender."""
    found = behind.where((fn.col("kind") == Kind.DELIVER.value) & (fn.col("seq") < fn.col("highest"))).select(
        "run",
        "process",
        "sender",
        fn.col("seq").alias("first"),
        fn.least(fn.col("last"), fn.col("highest") - 1).alias("last"),
        "highest",
        "index",
    )
    after = fn.concat(
        fn.lit("delivered after ("), name_of("sender"), fn.lit(","), fn.col("highest"), fn.lit(")")
    )
    return violations(found, "fifo_delivery", after, index=fn.col("index"))


def judge_buffers(given: Given, wanted: Wanted) -> Findings:
    """High-water marks above the limit of their run."""
    run_index = given.run_index
    marks = run_index.keep(of_kind(run_index.events, Kind.BUFFER))
    known = {row["run"] for row in marks.select("run").distinct().collect()}
    nothing = {(run, "buffer_bound"): "no occupancy was recorded" for run in wanted if run not in known}
    limits = [(run, info.only.buffer_limit) for run, info in run_index.infos.items()]
    table = small_frame(run_index.spark, {"run": TEXT, "buffer_limit": WHOLE}, limits)
    held = fn.col("last") - fn.col("seq") + 1
    above = marks.join(fn.broadcast(table), "run").where(held > fn.col("buffer_limit"))
    reason = fn.concat(fn.lit("held "), held, fn.lit(" messages, the limit is "), fn.col("buffer_limit"))
    zero = fn.lit(0)
    found = above.select(
        "run", "process", "sender", zero.alias("first"), zero.alias("last"), "index", reason.alias("reason")
    )
    return Findings([violations(found, "buffer_bound", fn.col("reason"), index=fn.col("index"))], nothing)


def judge_crashes(given: Given, _wanted: Wanted) -> Findings:
    """What processes did after they crashed or left."""
    events = given.run_index.events
    ends = (
        of_kind(events, *GONE).groupBy("run", "process").agg(fn.min(fn.struct("index", "kind")).alias("gone"))
    )
    late = (
        of_kind(events, *ACTS)
        .join(fn.broadcast(ends.select("run", "process", "gone")), ["run", "process"])
        .where(fn.col("index") > fn.col("gone.index"))
    )
    message = fn.col("sender").isNotNull()
    found = late.select(
        "run",
        "process",
        "sender",
        fn.when(message, fn.col("seq")).otherwise(0).alias("first"),
        fn.when(message, fn.col("last")).otherwise(0).alias("last"),
        "index",
        fn.concat(fn.lit("has a "), "kind", fn.lit(" after its "), "gone.kind").alias("reason"),
    )
    return Findings([violations(found, "nothing_after_crash", fn.col("reason"), index=fn.col("index"))])


def judge_states(given: Given, wanted: Wanted) -> Findings:
    """The last states that correct processes have of each sender are the same."""
    run_index = given.run_index
    roster = roster_table(run_index.spark, given.roster)
    states = run_index.keep(_by_property(_final_states(run_index.events, roster), roster))
    told = {(row["run"], row["property"]) for row in states.select("run", "property").distinct().collect()}
    asked = {(run, name) for run, names in wanted.items() for name in names}
    nothing = dict.fromkeys(asked - told, "no state was recorded")
    return Findings([_state_violations(states)], nothing)


def _final_states(events: DataFrame, roster: DataFrame) -> DataFrame:
    """The last state that each correct process has of each sender: (run, process, sender, digest, index)."""
    correct = roster.where("correct").select("run", "process")
    return (
        of_kind(events, Kind.APPLY)
        .where("view is null")  # others are about the beginning of a view
        .join(fn.broadcast(correct), ["run", "process"])
        .groupBy("run", "process", "sender")
        .agg(fn.max(fn.struct("index", "annotation.item")).alias("final"))
        .select("run", "process", "sender", fn.col("final.item").alias("digest"), fn.col("final.index"))
    )


def _state_violations(states: DataFrame) -> DataFrame:
    """The senders of whom correct processes ended in different states."""
    differing = (
        states.groupBy("run", "property", "sender")
        .agg(fn.count_distinct("digest").alias("states"), fn.min(fn.struct("process", "index")).alias("one"))
        .where("states > 1")
    )
    found = differing.select(
        "run",
        "property",
        "sender",
        "states",
        fn.col("one.process").alias("process"),
        fn.col("one.index").alias("index"),
        fn.lit(0).alias("first"),
        fn.lit(0).alias("last"),
    )
    reason = fn.concat(fn.col("states"), fn.lit(" different states at correct processes"))
    return violations(found, fn.col("property"), reason, index=fn.col("index"))


def _by_property(states: DataFrame, roster: DataFrame) -> DataFrame:
    everybody, correct = STATES
    authors = roster.where("correct").select("run", fn.col("process").alias("sender"))
    of_correct = states.join(fn.broadcast(authors), ["run", "sender"], "left_semi")
    columns = ("run", "process", "sender", "digest", "index")
    return (
        states.select(*columns, fn.lit(everybody).alias("property"))
        .union(of_correct.select(*columns, fn.lit(correct).alias("property")))
        .select(*columns, "property")
    )
