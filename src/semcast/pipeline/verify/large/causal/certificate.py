"""Total order extends causal order (Birman 1991, 5.2), and where it is certain it saves the looking.

If all deliver the same messages in one order, and every sender delivers its own, after it multicast them and
in the order of multicasting, then a message comes later in that order than whatever precedes it.
"""

from collections.abc import Iterable

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from semcast.pipeline.verify import order
from semcast.pipeline.verify.large.findings import Given
from semcast.pipeline.verify.large.positions import in_one_order
from semcast.pipeline.verify.large.views.books import Books, books_of


def ordered_by_position(given: Given, runs: Iterable[str]) -> set[str]:
    """Those of these runs in which nobody can deliver anything out of causal order."""
    found = in_one_order(given, runs)
    if not found:
        return found
    disordered = order.disordered(given.scene.forwards).select("who")
    odd = disordered.union(_too_early(given.scene.own)).union(_without_own(books_of(given))).distinct()
    return found - {given.scene.everybody[row["who"]][0] for row in odd.collect()}


def complete_anyway(given: Given, runs: Iterable[str]) -> set[str]:
    """Those of these runs in which who goes on from a view lacks nothing of all that was sent there."""
    books = books_of(given)
    lacking = books.with_who(books.unpaid(books.lacking_of_sent)).select("who").distinct()
    return set(runs) - {given.scene.everybody[row["who"]][0] for row in lacking.collect()}


def _too_early(own: DataFrame) -> DataFrame:
    """Who may have delivered messages of its own before it multicast them: (who)."""
    along = Window.partitionBy("who").orderBy("begin")
    before = along.rowsBetween(Window.unboundedPreceding, -1)
    sent = fn.coalesce(fn.max("last").over(before), fn.lit(0))
    early = (fn.lag("end").over(along) >= fn.col("begin")) | (fn.col("first") > sent)
    return own.select("who", early.alias("early")).where("early").select("who")


def _without_own(books: Books) -> DataFrame:
    """Who did not deliver all that it sent in a view: (who)."""
    missing = books.with_who(books.segments.where("expected and not delivered"))
    return missing.where("who = author").select("who")
