"""What processes may do without: they have a replacement, or may still come to one."""

from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify import debts, relation, replaced
from semcast.pipeline.verify.large.findings import Given
from semcast.pipeline.verify.large.line.places import REG_BITS, regs_of
from semcast.pipeline.verify.moves import with_author


class Excuses:
    """Goes through what is lacking in com(c)."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._scene = given.scene
        self._keep = given.scene.keep

    def unpaid(self, owed: DataFrame) -> DataFrame:
        """What of (who, reg, author, first, last) is not excused: (who, author, first, last)."""
        debtor = (fn.shiftleft("who", REG_BITS) + fn.col("reg")).alias("debtor")
        spans = self._keep(owed.select(debtor, "author", "first", "last"))
        covered = replaced.covered(
            self._scene.of_senders(spans),
            self._scene.of_senders(self._held),
            self._notes,
            self._given.positions,
            self._keep,
        )
        if covered is not None:
            points = with_author(covered, self._scene.people).select("debtor", "author", "seq")
            asked = {"own": fn.lit(True), "same": fn.lit(False), "promised": fn.lit(False)}
            spans = self._keep(debts.unpaid(spans.withColumns(asked), points))
        who = fn.shiftright("debtor", REG_BITS).alias("who")
        return spans.select(who, "author", "first", "last")

    @cached_property
    def _notes(self) -> DataFrame:
        return self._keep(relation.annotated(self._scene.events))

    @cached_property
    def _held(self) -> DataFrame:
        """What may replace something for a process: what it delivered there, or may still deliver."""
        here, coming = [], []
        regs = regs_of(self._scene)
        for run, known in self._scene.stays.runs.items():
            for life in known.lives.values():
                who = self._scene.numbers[run, life.process]
                for reg, stays in life.com.items():
                    debtor = (who << REG_BITS) + regs[run, reg]
                    here += [(self._scene.stays.number(run, stay), debtor) for stay in stays]
                    if not known.owes(life.process, reg):
                        sending = known.of.get(reg, ())
                        coming += [(self._scene.stays.number(run, stay), debtor) for stay in sending]
        span = ("debtor", "author", "first", "last")
        delivered = self._scene.delivered.join(
            fn.broadcast(self._scene.table(here, "stay", "debtor")), "stay"
        ).select(*span)
        sent = self._scene.sent.join(fn.broadcast(self._scene.table(coming, "stay", "debtor")), "stay")
        return delivered.union(sent.select(*span))
