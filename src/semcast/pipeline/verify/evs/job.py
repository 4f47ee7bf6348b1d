"""The steps of extended virtual synchrony within `semcast verify`: makes the tables, calls the transforms."""

from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.history import Kind
from semcast.pipeline.frames import FLAG, TEXT, WHOLE, small_frame
from semcast.pipeline.verify import debts, moves, relation, replaced
from semcast.pipeline.verify.evs import purges
from semcast.pipeline.verify.evs.claims import Claims, claims_of
from semcast.pipeline.verify.folds import SENT
from semcast.pipeline.verify.scene import Scene, numbered_violations
from semcast.pipeline.verify.stays import Piece
from semcast.pipeline.verify.violations import known_violations, together, told_by
from semcast.specs import check

_STRUCTURAL = (
    "evs_2_1_installed_by_all",
    "evs_2_2_inside_configuration",
    "pair_same_members",
    "pair_transitional",
    "pair_transitional_then_regular",
)
"""Of these the rows about configurations alone tell something; what messages tell comes on top."""

_DEBTOR = {"debtor": WHOLE, "who": WHOLE, "alone": FLAG, "same": pa.list_(TEXT), "safe": TEXT}
_LACKING = "has neither this nor a replacement there"


class Synchrony:
    """What breaks the specifications that are judged by comparing spans."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._spark = scene.spark
        self._keep = scene.keep
        self._claims: Claims = claims_of(scene.stays)

    def found(self, positions: DataFrame, tails: DataFrame | None) -> DataFrame:
        """The violations."""
        places = self._places()
        self._delivered = self._scene.delivered.join(places, "stay", "left")
        self._sent = self._scene.sent.join(places, "stay", "left")
        self._read_claims()
        books = self._keep(self._books())
        by_messages = [
            *self._outside(),
            self._strays(books, tails),
            *self._again(),
            *self._debts(books, positions),
            *self._purges(),
        ]
        named = self._scene.named(reduce(DataFrame.union, by_messages))
        return together([self._structure(), named])

    # tables

    def _places(self) -> DataFrame:
        """Of each stay its regular configuration, if it is one, and its place: its configuration there."""
        reg = dict(self._claims.regular)
        places: dict[object, int] = {}
        rows = []
        for run, known in self._scene.stays.runs.items():
            for stay in known.stays:
                number = self._scene.stays.number(run, stay)
                place = places.setdefault((run, stay.process, stay.configuration), len(places))
                rows.append((number, reg.get(number), place))
        return fn.broadcast(self._scene.table(rows, "stay", "reg", "place"))

    def _read_claims(self) -> None:
        rows = [
            (debtor.number, self._scene.numbers[debtor.who], debtor.alone, debtor.same, debtor.safe)
            for debtor in self._claims.debtors
        ]
        self._debtors = small_frame(self._spark, _DEBTOR, rows)
        senders = [(reg, self._scene.numbers[who], debtor) for reg, who, debtor in self._claims.senders]
        self._senders = self._scene.table(senders, "reg", "author", "debtor")
        self._holds = self._scene.table(self._claims.holds, "stay", "debtor")

    def _books(self) -> DataFrame:
        return debts.books(
            self._delivered,
            self._sent,
            holds=self._holds,
            own=self._scene.table(self._claims.own, "stay", "debtor"),
            sources=self._scene.table(self._claims.sources, "stay", "source"),
            asked=small_frame(
                self._spark, {"source": WHOLE, "debtor": WHOLE, "kind": TEXT}, self._claims.asked
            ),
            senders=self._senders,
        )

    # what is wrong

    def _structure(self) -> DataFrame:
        rows = [
            told_by(run, verdict)
            for run, history in self._scene.stays.histories.items()
            for verdict in check(history, _STRUCTURAL)
            if verdict.count
        ]
        return known_violations(self._spark, rows)

    def _outside(self) -> list[DataFrame]:
        """2.2: messages outside every configuration, or sent with the number of another one."""
        name = "evs_2_2_inside_configuration"
        both = self._sent.union(self._delivered)
        outside = both.where(f"outside or (what = {SENT} and view != inside)")
        what = fn.when(fn.col("outside"), fn.lit("outside every configuration")).otherwise(
            fn.lit("sent with the number of another configuration")
        )
        early = fn.broadcast(self._scene.table(self._crashed_outside(), "piece"))
        crashed = both.join(early, "piece").select("who").distinct()
        nothing = fn.lit(None).cast("long")
        crashes = crashed.select(
            "who", nothing.alias("author"), fn.lit(0).alias("first"), fn.lit(0).alias("last")
        )
        return [
            numbered_violations(outside, name, what),
            numbered_violations(crashes, name, "crashed outside every configuration"),
        ]

    def _crashed_outside(self) -> list[tuple[int]]:
        """The pieces before a crash that was outside; it is no offence if nothing happened there."""

        def first_is_crash(number: int, piece: Piece) -> bool:
            after = self._scene.pieces[number + 1] if number + 1 < len(self._scene.pieces) else None
            same = after is not None and after.who == piece.who
            return same and after is not None and after.stay is None and after.crashed and not piece.crashed

        return [(number,) for number, piece in enumerate(self._scene.pieces) if first_is_crash(number, piece)]

    def _strays(self, books: DataFrame, tails: DataFrame | None) -> DataFrame:
        members = self._senders.select("debtor", "author")
        if tails is None:
            told = members.withColumn("tail", fn.lit(None).cast("long"))
        else:
            known = moves.with_author(tails, self._scene.people).select("author", "tail")
            told = members.join(fn.broadcast(known), "author", "left").select("debtor", "author", "tail")
        found = self._of_debtors(debts.strays(books, told)).where("alone")
        name = "evs_1_3_sent_before_in_same_configuration"
        return numbered_violations(found, name, "delivered, but not sent there by a member")

    def _again(self) -> list[DataFrame]:
        """1.4: sent in a transitional configuration, or delivered in several."""
        name = "evs_1_4_once"
        late = self._sent.where("stay is not null and reg is null")
        inside = self._delivered.where("stay is not null")
        found = [numbered_violations(late, name, "sent in a transitional configuration")]
        repeats = self._keep(debts.repeats(inside).select("who", "author").distinct())
        if not repeats.isEmpty():
            doubtful = inside.join(fn.broadcast(repeats), ["who", "author"], "left_semi")
            several = debts.in_several(doubtful)
            more = fn.col("times") - 1
            found.append(
                numbered_violations(several, name, "delivered in several configurations", times=more)
            )
        return found

    def _debts(self, books: DataFrame, positions: DataFrame) -> list[DataFrame]:
        """3, 4, 7.1, 7.2 and what the pairwise rules say about messages."""
        lacking = self._keep(debts.lacking(books))
        if lacking.isEmpty():
            return []
        covered = self._covered(lacking, books, positions)
        left = lacking if covered is None else self._keep(debts.unpaid(lacking, covered))
        promised = debts.within(left.where("promised"), self._scene.safe.select("author", "first", "last"))
        own, same = left.where("own"), self._of_debtors(left.where("same"))
        return [
            numbered_violations(self._of_debtors(own), "evs_3_self_delivery", _LACKING),
            numbered_violations(same.withColumn("name", fn.explode("same")), fn.col("name"), _LACKING),
            numbered_violations(self._of_debtors(promised), fn.col("safe"), _LACKING),
        ]

    def _covered(self, lacking: DataFrame, books: DataFrame, positions: DataFrame) -> DataFrame | None:
        """What of it they have a replacement of: (debtor, author, seq)."""
        notes = self._keep(relation.annotated(self._scene.events))
        owed = self._scene.of_senders(lacking)
        held = self._scene.of_senders(books.where("delivered"))
        covered = replaced.covered(owed, held, notes, positions, self._keep)
        if covered is None:
            return None
        return moves.with_author(covered, self._scene.people).select("debtor", "author", "seq")

    def _purges(self) -> list[DataFrame]:
        if self._scene.totals.where(fn.col("kind") == Kind.PURGE.value).isEmpty():
            return []
        receipts = self._keep(purges.receipts(self._scene.events, self._scene.people))
        regular = self._keep(purges.in_regular(self._sent))
        parts = self._keep(purges.same_configuration(receipts, regular))
        free = self._scene.table(self._free(), "who", "reg")
        had = purges.had(parts, self._delivered, receipts)
        found = purges.unfounded(receipts, parts, had, free)
        name = "evs_purge_within_configuration"
        reason = "purged for a message that was not sent there, or is not there"
        return [numbered_violations(found, name, reason, times=fn.col("times"), index=fn.col("index"))]

    def _free(self) -> Iterator[tuple[int, int]]:
        """Who owes nothing in which configuration."""
        for who in self._scene.everybody:
            run, process = who
            known = self._scene.stays.runs[run]
            for reg, number in self._claims.regs[run].items():
                if not known.owes(process, reg):
                    yield self._scene.numbers[who], number

    # names

    def _of_debtors(self, rows: DataFrame) -> DataFrame:
        """Rows (debtor, author, first, last) with what is known of the debtor."""
        spans = rows.select("debtor", "author", "first", "last")
        return spans.join(fn.broadcast(self._debtors), "debtor")
