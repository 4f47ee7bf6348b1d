"""What replaces what inside a view: both were multicast there, and so was everything in between.

The transforms over the relation know runs. Here each view is one, named by its number.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify import moves, relation, replaced
from semcast.pipeline.verify.scene import Scene

_MESSAGE = ["run", "sender", "seq"]


class Replacing:
    """The relation of each view."""

    def __init__(self, scene: Scene, sent: DataFrame, positions: DataFrame) -> None:
        """`sent` is (view, author, first, last)."""
        self._scene = scene
        notes = scene.keep(relation.annotated(scene.events))
        spans = scene.of_senders(sent.select(fn.col("view").alias("debtor"), "author", "first", "last"))
        where = scene.keep(
            replaced.points(spans, notes).select(fn.col("debtor").alias("view"), *_MESSAGE).distinct()
        )
        self._notes = scene.keep(notes.join(where, _MESSAGE).select(_as_run(), "sender", "seq", "note"))
        self._positions = positions.join(where, _MESSAGE).select(_as_run(), "sender", "seq", "position")

    def covered(self, lacking: DataFrame, holding: DataFrame, debtors: DataFrame) -> DataFrame:
        """What of the spans that debtors lack is replaced by something in spans that they hold.

        Spans are (debtor, author, first, last), and `debtors` is (debtor, view, run). Comes back as
        (debtor, author, seq).
        """
        owed, held = (self._in_views(spans, debtors) for spans in (lacking, holding))
        found = replaced.covered(owed, held, self._notes, self._positions, self._scene.keep)
        if found is None:
            return self._scene.table([], "debtor", "author", "seq")
        known = found.drop("run").join(fn.broadcast(debtors.select("debtor", "run")), "debtor")
        return moves.with_author(known, self._scene.people).select("debtor", "author", "seq")

    def _in_views(self, spans: DataFrame, debtors: DataFrame) -> DataFrame:
        known = self._scene.of_senders(spans).drop("run").join(fn.broadcast(debtors), "debtor")
        return known.select("debtor", _as_run(), "sender", "first", "last")


def _as_run() -> Column:
    return fn.col("view").cast("string").alias("run")
