"""Reliable multicast: FIFO order, integrity and the semantic properties, crashes, buffers, last states.

Rows lie in files in about the order they happened in. The stretches in which a stream, the multicasts or
deliveries of one sender at one process, goes forwards are known (`folds.py`); a stream whose stretches go
forwards too is in order. Only others are sorted.

Fingerprints tell which processes delivered exactly what a sender multicast. Only the others are looked at: as
spans, laid over what was multicast and what others delivered.
"""

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.history import HistoryError
from semcast.history.schema import GONE, Kind
from semcast.pipeline.frames import TEXT, WHOLE, small_frame
from semcast.pipeline.verify import contents, obligations, replacements
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.obligations import chunked, overlay
from semcast.pipeline.verify.run_index import numbered_violations
from semcast.pipeline.verify.totals import Pair, pairs, roster_table
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
    marks = run_index.buffers
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
    states = run_index.keep(_by_property(_final_states(run_index.states, roster), roster))
    told = {(row["run"], row["property"]) for row in states.select("run", "property").distinct().collect()}
    asked = {(run, name) for run, names in wanted.items() for name in names}
    nothing = dict.fromkeys(asked - told, "no state was recorded")
    return Findings([_state_violations(states)], nothing)


def _final_states(states: DataFrame, roster: DataFrame) -> DataFrame:
    """The last state that each correct process has of each sender: (run, process, sender, digest, index)."""
    correct = roster.where("correct").select("run", "process")
    return (
        states.where("view is null")  # others are about the beginning of a view
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


_INTEGRITY = "integrity"
_SPAN = ("debtor", "author", "first", "last")
_OWED = ("multicast", "agreed", "anywhere")
_LAYERS = (*_OWED, "delivered")


def judge_deliveries(given: Given, wanted: Wanted) -> Findings:
    """Integrity, and what correct processes owe by the semantic properties."""
    known = pairs(given.run_index.totals, given.roster)
    names = {name for some in wanted.values() for name in some}
    found = contents.judge_contents(given.run_index, known) if _INTEGRITY in names else Findings()
    if not all(pair.same for pair in known):
        found.violations += _Ledger(given, known).violations(semantic=names != {_INTEGRITY})
    return found


class _Ledger:
    """The spans of processes that differ from what was multicast. A debtor is a process."""

    def __init__(self, given: Given, known: Sequence[Pair]) -> None:
        self._given = given
        self._run_index = given.run_index
        self._known = known
        self._differing = [pair for pair in known if not pair.same]

    def violations(self, *, semantic: bool) -> list[DataFrame]:
        """Of all that is asked for."""
        ledger = self._run_index.keep(self._ledger())
        found = self._integrity(ledger)
        if semantic:
            found.append(self._semantic(ledger))
        return [self._run_index.named(rows) for rows in found]

    def _table(self, some: Iterable[Pair], *columns: str) -> DataFrame:
        numbers = self._run_index.numbers
        rows = [
            (numbers[pair.process], numbers[pair.sender], *(int(getattr(pair, name)) for name in columns))
            for pair in some
        ]
        return fn.broadcast(self._run_index.table(rows, "debtor", "author", *columns))

    def _ledger(self) -> DataFrame:
        """Per process and sender, spans with what is true of them: (debtor, author, first, last, *layers).

        `delivered` is how often; the others are flags.
        """
        delivered = chunked(
            self._run_index.delivered.withColumnRenamed("who", "debtor")
            .select(*_SPAN)
            .join(self._table(self._differing, "correct"), ["debtor", "author"])
        )
        somewhere = self._run_index.keep(self._somewhere(delivered))
        keys = ["debtor", "author", "chunk"]
        own = delivered.select(*keys, "first", "last", *_layers(delivered=fn.lit(1)))
        owed = somewhere.join(self._table(self._differing), "author").select(
            *keys, "first", "last", *_layers(**{name: fn.col(name).cast("int") for name in _OWED})
        )
        laid = overlay(own.union(owed), keys, _OWED, ["delivered"]).select(*_SPAN, *_LAYERS)
        # Who has all that was multicast can still lack what somebody made up.
        others = self._table(pair for pair in self._known if pair.same and pair.correct)
        strays = somewhere.where("not multicast").join(others, "author")
        return laid.union(strays.select(*_SPAN, *_OWED, fn.lit(0).cast("long")))

    def _somewhere(self, delivered: DataFrame) -> DataFrame:
        """What somebody delivered: (author, chunk, first, last, multicast, agreed, anywhere).

        `agreed` is what a correct process delivered. Who does not differ delivered all that was multicast.
        """
        numbers = self._run_index.numbers
        agreed: dict[int, int | None] = {numbers[pair.sender]: None for pair in self._differing}
        for pair in self._known:
            author = numbers[pair.sender]
            if pair.same and author in agreed:
                agreed[author] = max(agreed[author] or 0, int(pair.correct))
        senders = fn.broadcast(self._run_index.table(agreed.items(), "author", "agreed"))
        columns = ("author", "chunk", "first", "last")
        everything = chunked(self._run_index.sent.select("author", "first", "last").join(senders, "author"))
        layers = everything.select(
            *columns,
            fn.lit(1).alias("multicast"),
            fn.coalesce("agreed", fn.lit(0)).alias("agreed"),
            fn.col("agreed").isNotNull().cast("int").alias("anywhere"),
        ).union(delivered.select(*columns, fn.lit(0), "correct", fn.lit(1)))
        return overlay(layers, ["author", "chunk"], _OWED)

    def _integrity(self, ledger: DataFrame) -> list[DataFrame]:
        """Messages delivered again, and messages that nobody multicast, whose recording is cut off or not."""
        rows = ledger.withColumnRenamed("debtor", "who")
        again = numbered_violations(
            rows.where("delivered > 1"), _INTEGRITY, "delivered again", times=fn.col("delivered") - 1
        )
        made_up = rows.where("delivered > 0 and not multicast")
        tails = [(self._run_index.numbers[who], tail) for who, tail in self._given.tails.items()]
        if tails:
            known = fn.broadcast(self._run_index.table(tails, "author", "tail"))
            made_up = made_up.join(known, "author", "left").where("tail is null or first <= tail")
        return [again, numbered_violations(made_up, _INTEGRITY, "delivered, but nobody multicast it")]

    def _semantic(self, ledger: DataFrame) -> DataFrame:
        """What is owed by each property and was not paid."""
        owing = self._table((p for p in self._known if p.correct), "sender_correct", "latest")
        lacking = ledger.where("delivered = 0").join(owing, ["debtor", "author"], "left_semi")
        unpaid = self._unpaid(self._run_index.keep(lacking.select(*_SPAN, *_OWED)))
        multicast, latest, last = fn.col("multicast"), fn.col("latest"), fn.col("last")
        debts = fn.array(
            _debt("semantic_sender_reliability", multicast & (fn.col("sender_correct") == 1), last),
            _debt("semantic_validity", multicast & (fn.col("debtor") == fn.col("author")), last),
            _debt("semantic_agreement", fn.col("agreed"), last),
            _debt("semantic_uniform_agreement", fn.col("anywhere"), last),
            _debt(
                "semantic_fifo_completeness",
                multicast & (fn.col("first") < latest),
                fn.least(last, latest - 1),
            ),
        )
        found = (
            unpaid.join(owing, ["debtor", "author"])
            .select(*_SPAN[:3], fn.explode(fn.filter(debts, lambda debt: debt.isNotNull())).alias("debt"))
            .select(fn.col("debtor").alias("who"), "author", "first", "debt.last", "debt.property")
        )
        return numbered_violations(found, fn.col("property"), "has neither this nor a replacement")

    def _unpaid(self, lacking: DataFrame) -> DataFrame:
        """What processes lack, and have no replacement of."""
        held = self._run_index.delivered.withColumnRenamed("who", "debtor")
        asked = lacking.where("multicast")
        covered = replacements.covered(self._run_index, asked, held, self._given.positions)
        return lacking if covered is None else obligations.unpaid(lacking, covered, _OWED)


def _debt(name: str, owed: Column, last: Column) -> Column:
    return fn.when(owed, fn.struct(fn.lit(name).alias("property"), last.alias("last")))


def _layers(**given: Column) -> list[Column]:
    """All layers in order, 0 where nothing is given."""
    return [given.get(name, fn.lit(0)).alias(name) for name in _LAYERS]
