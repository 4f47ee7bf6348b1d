"""What is delivered, sent and owed in views, as spans: who lacks what, and what strayed there."""

from functools import cached_property
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.frames import FLAG, TEXT, WHOLE, small_frame
from semcast.pipeline.verify import debts
from semcast.pipeline.verify.large.findings import Given
from semcast.pipeline.verify.large.views.replacing import Replacing
from semcast.pipeline.verify.large.views.stays import ViewClaims, claims_of
from semcast.pipeline.verify.scene import Scene

_SPAN = ("debtor", "author", "first", "last")
_STAY = {"debtor": WHOLE, "view": WHOLE, "who": WHOLE, "closed": FLAG, "run": TEXT}


class Books:
    """The spans of some runs. A debtor is a stay."""

    def __init__(self, given: Given, claims: ViewClaims) -> None:
        self._given = given
        self._scene = given.scene
        self._claims = claims
        rows = [
            (stay, view, self._scene.numbers[who], closed, who[0]) for stay, view, who, closed in claims.stays
        ]
        self.debtors = small_frame(self._scene.spark, _STAY, rows)
        """(debtor, view, who, closed, run)"""

    def with_who(self, spans: DataFrame) -> DataFrame:
        """Spans with the process whose stay it is."""
        return spans.join(fn.broadcast(self.debtors.select("debtor", "who")), "debtor")

    @cached_property
    def sent(self) -> DataFrame:
        """What was sent in views: (stay, view, author, first, last)."""
        views = fn.broadcast(self.debtors.select(fn.col("debtor").alias("stay"), "view"))
        return self._scene.sent.drop("view").join(views, "stay").select("stay", "view", *_SPAN[1:])

    @cached_property
    def segments(self) -> DataFrame:
        """Per stay and sender, with what is true of them: (debtor, author, first, last, *layers)."""
        table, claims = self._scene.table, self._claims
        closed = [(stay, stay) for stay in claims.closed()]
        members = self.debtors.select("view", "debtor").join(
            self.debtors.select("view", fn.col("who").alias("author")).distinct(), "view"
        )
        found = debts.books(
            self._scene.delivered.where("stay is not null"),
            self.sent.withColumnRenamed("view", "reg"),
            holds=table([(stay, stay) for stay, _, _, _ in claims.stays], "stay", "debtor"),
            own=table(closed, "stay", "debtor"),
            sources=table(claims.sources, "stay", "source"),
            asked=small_frame(
                self._scene.spark, {"source": WHOLE, "debtor": WHOLE, "kind": TEXT}, claims.asked
            ),
            senders=members.withColumnRenamed("view", "reg"),
        )
        return self._scene.keep(found)

    @cached_property
    def lacking(self) -> DataFrame:
        """What is asked for and not delivered: (debtor, author, first, last, own, same, promised)."""
        return self._scene.keep(debts.lacking(self.segments))

    @cached_property
    def strays(self) -> DataFrame:
        """What was delivered in a view and multicast, but not there: (debtor, author, first, last)."""
        found = self._scene.keep(self.segments.where("delivered and not expected").select(*_SPAN))
        if found.isEmpty():
            return found
        return self._scene.keep(debts.within(found, self._scene.sent.select(*_SPAN[1:])))

    @cached_property
    def latest(self) -> DataFrame:
        """The last message of each sender that was delivered, of those that were multicast.

        (debtor, author, upto)
        """
        known = self.segments.where("delivered and expected").select(*_SPAN).union(self.strays)
        return known.groupBy("debtor", "author").agg(fn.max("last").alias("upto"))

    @cached_property
    def lacking_of_sent(self) -> DataFrame:
        """What closed stays did not deliver of all that was sent in the view, as `lacking_before`."""
        closed = self.debtors.where("closed").select("debtor")
        missing = self.segments.where("expected and not delivered").select(*_SPAN)
        return self._scene.keep(_flagged(missing.join(fn.broadcast(closed), "debtor"), "own"))

    def lacking_before(self, upto: DataFrame) -> DataFrame:
        """What closed stays did not deliver of what was sent in the view before some message of its sender.

        Of (debtor, author, upto) comes (debtor, author, first, last, *flags).
        """
        asked = self.lacking_of_sent.join(fn.broadcast(upto), ["debtor", "author"])
        last = fn.least(fn.col("last"), fn.col("upto") - 1)
        return self._scene.keep(
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
        theirs = self.sent.select(*columns).union(self._scene.delivered.select(*columns))
        asked = theirs.join(fn.broadcast(pairs), "has").select(*_SPAN)
        holders = fn.broadcast(pairs.select("debtor", "lacks"))
        held = self._held.withColumnRenamed("debtor", "lacks").join(holders, "lacks").select(*_SPAN)
        missing = self._scene.keep(_flagged(debts.without(asked, held), "own"))
        if missing.isEmpty():
            return missing
        theirs = self._replaced.withColumnRenamed("debtor", "lacks").join(holders, "lacks")
        return self._without(missing, theirs.select("debtor", "author", "seq"))

    @cached_property
    def _held(self) -> DataFrame:
        return self.segments.where("delivered").select(*_SPAN)

    def _without(self, lacking: DataFrame, replaced: DataFrame) -> DataFrame:
        return lacking if lacking.isEmpty() else self._scene.keep(debts.unpaid(lacking, replaced))

    @cached_property
    def _replaced(self) -> DataFrame:
        """What of all that closed stays lack they have a replacement of: (debtor, author, seq)."""
        closed = self.debtors.where("closed").select("debtor", "view", "run")
        missing = self.segments.where("not delivered and (expected or own or same or promised)")
        lacking = missing.join(fn.broadcast(closed), "debtor", "left_semi").select(*_SPAN)
        replacing = Replacing(self._scene, self.sent, self._given.positions)
        return self._scene.keep(replacing.covered(lacking, self._held, closed))


_kept: WeakKeyDictionary[Scene, Books] = WeakKeyDictionary()


def books_of(given: Given) -> Books:
    """Of all runs of a scene that have views, opened once."""
    scene = given.scene
    found = _kept.get(scene)
    if found is None:
        runs = [run for run in scene.infos if run not in scene.nowhere]
        found = _kept[scene] = Books(given, claims_of(scene.stays, runs))
    return found


def _flagged(spans: DataFrame, flag: str) -> DataFrame:
    """Spans with the flags of debts, one of them set."""
    return spans.select(*_SPAN, *(fn.lit(name == flag).alias(name) for name in ("own", "same", "promised")))
