"""Who delivered what of all that was multicast: integrity and the semantic properties.

Fingerprints tell which processes delivered exactly what a sender multicast. Only the others are looked at: as
spans, laid over what was multicast and what others delivered.
"""

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify import contents, obligations, replacements
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.obligations import chunked, overlay
from semcast.pipeline.verify.run_index import numbered_violations
from semcast.pipeline.verify.totals import Pair, pairs

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
