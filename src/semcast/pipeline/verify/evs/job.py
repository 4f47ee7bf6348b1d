"""The steps of extended virtual synchrony within `semcast verify`: makes the tables, calls the transforms."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId
from semcast.history import Event, Kind, RunInfo
from semcast.pipeline.frames import FLAG, TEXT, WHOLE, small_frame
from semcast.pipeline.verify import relation
from semcast.pipeline.verify.evs import debts, moves, purges, replaced
from semcast.pipeline.verify.evs.claims import Claims, claims_of
from semcast.pipeline.verify.evs.stays import Piece, Stays, Who, changes, skeletons
from semcast.pipeline.verify.violations import COLUMNS, known_violations, together
from semcast.specs import Verdict, check

_STRUCTURAL = (
    "evs_2_1_installed_by_all",
    "evs_2_2_inside_configuration",
    "pair_same_members",
    "pair_transitional",
    "pair_transitional_then_regular",
)
"""Of these the rows about configurations alone tell something; what messages tell comes on top."""

_PIECE = dict.fromkeys(("piece", "who", "stay", "inside", "reg", "place"), WHOLE) | {"outside": FLAG}
_DEBTOR = {"debtor": WHOLE, "who": WHOLE, "alone": FLAG, "same": pa.list_(TEXT), "safe": TEXT}
_LACKING = "has neither this nor a replacement there"


class Synchrony:
    """What breaks the specifications that are judged by comparing spans."""

    def __init__(
        self,
        spark: SparkSession,
        events: DataFrame,
        infos: Mapping[str, RunInfo],
        keep: Callable[[DataFrame], DataFrame],
    ) -> None:
        self._spark = spark
        self._events = events
        self._keep = keep
        self._stays = Stays(skeletons(infos, changes(events).collect()))
        self._claims: Claims = claims_of(self._stays)

    @property
    def nowhere(self) -> set[str]:
        """The runs in which no configuration was recorded."""
        return {run for run, known in self._stays.runs.items() if not known.stays}

    def found(self, totals: DataFrame, positions: DataFrame, tails: DataFrame | None) -> DataFrame:
        """The violations."""
        self._number(totals)
        self._share_out()
        self._read_claims()
        books = self._keep(self._books())
        by_messages = [
            *self._outside(),
            self._strays(books, tails),
            *self._again(),
            *self._debts(books, positions),
            *self._purges(totals),
        ]
        return together([self._structure(), self._named(reduce(DataFrame.union, by_messages))])

    # tables

    def _number(self, totals: DataFrame) -> None:
        """Everybody who does something, whose messages are there, or who is said to be a member."""
        senders = totals.where("sender is not null").select("run", fn.col("sender").alias("process"))
        names = totals.select("run", "process").union(senders).distinct().collect()
        people: set[Who] = {
            (row["run"], MemberId(row["process"]["name"], row["process"]["incarnation"])) for row in names
        }
        for run, known in self._stays.runs.items():
            people.update((run, process) for process in known.lives)
            people.update((run, member) for stay in known.stays for member in stay.members)
        self._everybody = sorted(people)
        self._numbers = {who: number for number, who in enumerate(self._everybody)}
        self._people = moves.people_table(self._spark, self._everybody)

    def _share_out(self) -> None:
        """Who sent and delivered what in which piece of its life."""
        self._pieces = self._stays.pieces(self._everybody)
        table = small_frame(self._spark, _PIECE, self._piece_rows())
        spans = moves.moves(self._events, self._people, self._numbers, self._pieces)
        all_of_it = self._keep(spans.join(fn.broadcast(table), "piece"))
        self._delivered, self._sent, self._safe = (
            all_of_it.where(fn.col("what") == what) for what in (moves.DELIVERED, moves.SENT, moves.SENT_SAFE)
        )

    def _piece_rows(self) -> Iterator[tuple[int | bool | None, ...]]:
        reg = dict(self._claims.regular)
        places: dict[object, int] = {}
        configuration = {
            self._stays.number(run, stay): stay.configuration
            for run, known in self._stays.runs.items()
            for stay in known.stays
        }
        for number, piece in enumerate(self._pieces):
            who, stay = self._numbers[piece.who], piece.stay
            place = None if stay is None else places.setdefault((who, configuration[stay]), len(places))
            of_stay = None if stay is None else reg.get(stay)
            yield number, who, stay, piece.view, of_stay, place, piece.outside

    def _read_claims(self) -> None:
        rows = [
            (debtor.number, self._numbers[debtor.who], debtor.alone, debtor.same, debtor.safe)
            for debtor in self._claims.debtors
        ]
        self._debtors = small_frame(self._spark, _DEBTOR, rows)
        senders = [(reg, self._numbers[who], debtor) for reg, who, debtor in self._claims.senders]
        self._senders = self._numbers_table(senders, "reg", "author", "debtor")
        self._holds = self._numbers_table(self._claims.holds, "stay", "debtor")

    def _books(self) -> DataFrame:
        return debts.books(
            self._delivered,
            self._sent,
            holds=self._holds,
            own=self._numbers_table(self._claims.own, "stay", "debtor"),
            sources=self._numbers_table(self._claims.sources, "stay", "source"),
            asked=small_frame(
                self._spark, {"source": WHOLE, "debtor": WHOLE, "kind": TEXT}, self._claims.asked
            ),
            senders=self._senders,
        )

    def _numbers_table(self, rows: Iterable[tuple[int, ...]], *columns: str) -> DataFrame:
        return small_frame(self._spark, dict.fromkeys(columns, WHOLE), rows)

    # what is wrong

    def _structure(self) -> DataFrame:
        rows = [
            _row(run, verdict)
            for run, history in self._stays.histories.items()
            for verdict in check(history, _STRUCTURAL)
            if verdict.count
        ]
        return known_violations(self._spark, rows)

    def _outside(self) -> list[DataFrame]:
        """2.2: messages outside every configuration, or sent with the number of another one."""
        name = "evs_2_2_inside_configuration"
        both = self._sent.union(self._delivered)
        outside = both.where(f"outside or (what = {moves.SENT} and view != inside)")
        what = fn.when(fn.col("outside"), fn.lit("outside every configuration")).otherwise(
            fn.lit("sent with the number of another configuration")
        )
        early = fn.broadcast(self._numbers_table(self._crashed_outside(), "piece"))
        crashed = both.join(early, "piece").select("who").distinct()
        nothing = fn.lit(None).cast("long")
        crashes = crashed.select(
            "who", nothing.alias("author"), fn.lit(0).alias("first"), fn.lit(0).alias("last")
        )
        return [_found(outside, name, what), _found(crashes, name, "crashed outside every configuration")]

    def _crashed_outside(self) -> list[tuple[int]]:
        """The pieces before a crash that was outside; it is no offence if nothing happened there."""

        def first_is_crash(number: int, piece: Piece) -> bool:
            after = self._pieces[number + 1] if number + 1 < len(self._pieces) else None
            same = after is not None and after.who == piece.who
            return same and after is not None and after.stay is None and after.crashed and not piece.crashed

        return [(number,) for number, piece in enumerate(self._pieces) if first_is_crash(number, piece)]

    def _strays(self, books: DataFrame, tails: DataFrame | None) -> DataFrame:
        members = self._senders.select("debtor", "author")
        if tails is None:
            told = members.withColumn("tail", fn.lit(None).cast("long"))
        else:
            known = moves.with_author(tails, self._people).select("author", "tail")
            told = members.join(fn.broadcast(known), "author", "left").select("debtor", "author", "tail")
        found = self._of_debtors(debts.strays(books, told)).where("alone")
        name = "evs_1_3_sent_before_in_same_configuration"
        return _found(found, name, "delivered, but not sent there by a member")

    def _again(self) -> list[DataFrame]:
        """1.4: sent in a transitional configuration, or delivered in several."""
        name = "evs_1_4_once"
        late = self._sent.where("stay is not null and reg is null")
        inside = self._delivered.where("stay is not null")
        found = [_found(late, name, "sent in a transitional configuration")]
        repeats = self._keep(debts.repeats(inside).select("who", "author").distinct())
        if not repeats.isEmpty():
            doubtful = inside.join(fn.broadcast(repeats), ["who", "author"], "left_semi")
            several = debts.in_several(doubtful)
            more = fn.col("times") - 1
            found.append(_found(several, name, "delivered in several configurations", times=more))
        return found

    def _debts(self, books: DataFrame, positions: DataFrame) -> list[DataFrame]:
        """3, 4, 7.1, 7.2 and what the pairwise rules say about messages."""
        lacking = self._keep(debts.lacking(books))
        if lacking.isEmpty():
            return []
        covered = self._covered(lacking, books, positions)
        left = lacking if covered is None else self._keep(debts.unpaid(lacking, covered))
        promised = debts.safe_only(left.where("promised"), self._safe.select("author", "first", "last"))
        own, same = left.where("own"), self._of_debtors(left.where("same"))
        return [
            _found(self._of_debtors(own), "evs_3_self_delivery", _LACKING),
            _found(same.withColumn("name", fn.explode("same")), fn.col("name"), _LACKING),
            _found(self._of_debtors(promised), fn.col("safe"), _LACKING),
        ]

    def _covered(self, lacking: DataFrame, books: DataFrame, positions: DataFrame) -> DataFrame | None:
        """What of it they have a replacement of: (debtor, author, seq)."""
        notes = self._keep(relation.annotated(self._events))
        points = self._keep(replaced.points(self._of_senders(lacking), notes))
        if points.isEmpty():
            return None
        concerned = fn.broadcast(points.select("debtor").distinct())
        holding = books.where("delivered").join(concerned, "debtor", "left_semi")
        held = self._keep(replaced.points(self._of_senders(holding), notes))
        chains = self._keep(relation.chains(notes))
        listed = self._keep(relation.listed_edges(notes, positions))
        at_once = self._keep(replaced.at_once(points, held, chains, listed))
        edges = replaced.all_edges(chains, listed)
        rest = self._keep(replaced.hopeful(points.exceptAll(at_once), edges))
        covered = at_once
        if not rest.isEmpty():
            covered = at_once.union(replaced.through_others(rest, held, edges))
        return moves.with_author(covered, self._people).select("debtor", "author", "seq")

    def _purges(self, totals: DataFrame) -> list[DataFrame]:
        if totals.where(fn.col("kind") == Kind.PURGE.value).isEmpty():
            return []
        receipts = self._keep(purges.receipts(self._events, self._people))
        regular = self._keep(purges.in_regular(self._sent))
        parts = self._keep(purges.same_configuration(receipts, regular))
        free = self._numbers_table(self._free(), "who", "reg")
        had = purges.had(parts, self._delivered, receipts)
        found = purges.unfounded(receipts, parts, had, free)
        name = "evs_purge_within_configuration"
        reason = "purged for a message that was not sent there, or is not there"
        return [_found(found, name, reason, times=fn.col("times"), index=fn.col("index"))]

    def _free(self) -> Iterator[tuple[int, int]]:
        """Who owes nothing in which configuration."""
        for who in self._everybody:
            run, process = who
            known = self._stays.runs[run]
            for reg, number in self._claims.regs[run].items():
                if not known.owes(process, reg):
                    yield self._numbers[who], number

    # names

    def _named(self, found: DataFrame) -> DataFrame:
        """Violations with members instead of numbers."""
        process = self._people.select("run", fn.col("member").alias("process"), "who")
        sender = self._people.select(fn.col("member").alias("sender"), fn.col("who").alias("author"))
        known = found.join(fn.broadcast(process), "who").join(fn.broadcast(sender), "author", "left")
        return known.select(*COLUMNS)

    def _of_debtors(self, rows: DataFrame) -> DataFrame:
        """Rows (debtor, author, first, last) with what is known of the debtor."""
        spans = rows.select("debtor", "author", "first", "last")
        return spans.join(fn.broadcast(self._debtors), "debtor")

    def _of_senders(self, rows: DataFrame) -> DataFrame:
        """Rows (debtor, author, first, last) with run and sender."""
        authors = self._people.select("run", fn.col("member").alias("sender"), fn.col("who").alias("author"))
        return rows.join(fn.broadcast(authors), "author").select("debtor", "run", "sender", "first", "last")


def _found(
    rows: DataFrame,
    name: str | Column,
    reason: str | Column,
    *,
    times: Column | None = None,
    index: Column | None = None,
) -> DataFrame:
    """Rows with who, author, first and last as violations of one property, still in numbers."""
    return rows.select(
        (fn.lit(name) if isinstance(name, str) else name).alias("property"),
        "who",
        "author",
        fn.col("first").cast("long").alias("first"),
        fn.col("last").cast("long").alias("last"),
        (fn.lit(1) if times is None else times).cast("long").alias("times"),
        (fn.lit(None) if index is None else index).cast("long").alias("index"),
        (fn.lit(reason) if isinstance(reason, str) else reason).alias("reason"),
    )


def _row(run: str, verdict: Verdict) -> tuple[object, ...]:
    """The cases of a verdict as one violation: the first of them, as often as there are cases."""
    event: Event = verdict.offending[0]
    reason = verdict.detail.partition("; ")[0]
    return run, verdict.property, _struct(event.process), None, 0, 0, verdict.count, event.index, reason


def _struct(member: MemberId) -> tuple[str, int]:
    return member.name, member.incarnation
