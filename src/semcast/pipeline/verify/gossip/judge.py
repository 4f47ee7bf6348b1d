"""Gossip and loggers (`semcast.specs.gossip`), in runs that memory does not hold.

Nearly everything is an obligation: a debtor (a session, an incarnation, a sender, a log) is asked for
messages, and holds some, directly or by a replacement. All are laid over each other at once. What is left is
judged row by row (`rows.py`).
"""

from functools import reduce
from itertools import pairwise

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId
from semcast.history import History
from semcast.history.schema import Kind
from semcast.pipeline.frames import MEMBER, TEXT, WHOLE, small_frame
from semcast.pipeline.verify import replacements
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.forms import Findings, Given, Wanted
from semcast.pipeline.verify.gossip.outline import outlines
from semcast.pipeline.verify.gossip.publishing import BY_LOGGERS, judge_batches
from semcast.pipeline.verify.gossip.rows import BY_PARTS, BY_ROWS, GossipRows, anybody, judge_parts
from semcast.pipeline.verify.obligations import chunked, overlay, without
from semcast.pipeline.verify.run_index import numbered_violations, with_author
from semcast.specs.gossip.ending import gossip_ended
from semcast.specs.gossip.kinds import ABANDONED, ACKNOWLEDGE, COLLECT, EXPIRED, LOST, STABLE, UNWANTED
from semcast.specs.gossip.ledger import Session
from semcast.specs.gossip.logs import gossip_admitted, gossip_forgotten
from semcast.specs.gossip.members import gossip_members
from semcast.specs.gossip.sponsors import gossip_sponsored

_SPAN = ("debtor", "author", "first", "last")


MEMBERS, ADMITTED, FORGOTTEN, SPONSORED, ENDED = BY_OUTLINE = (
    "gossip_members",
    "gossip_admitted",
    "gossip_forgotten",
    "gossip_sponsored",
    "gossip_ended",
)
"""Judged by views, and by the outline of a run: few rows."""

_OBLIGATIONS = (
    "gossip_delivery",
    "gossip_agreement",
    "gossip_receipts",
    "gossip_collected",
    "at_most_once",
    "at_least_once",
)
JUDGED = {*_OBLIGATIONS, *(name for name, _ in BY_ROWS), *BY_PARTS, *BY_LOGGERS, *BY_OUTLINE}
"""What is judged here. Nothing else holds."""


def judge_gossip(given: Given, wanted: Wanted) -> Findings:
    """All properties of the family."""
    found, runs = Findings(), dict[str, list[str]]()
    known = outlines(given, wanted)
    for run, names in wanted.items():
        for name in names:
            why = known[run].why_not(name) if name in JUDGED else "no form judges it"
            if why:
                found.unknown[run, name] = why
            else:
                runs.setdefault(name, []).append(run)
    if runs:
        rows = GossipRows(given.run_index, known, given.positions)
        broken = [_Obligations(rows, runs).violations()]
        broken += [form(rows, name, runs[name]) for name, form in BY_ROWS if name in runs]
        found.violations += [given.run_index.named(each) for each in broken]
        found.add(judge_parts(given, known, runs))
        found.add(judge_batches(given, known, runs))
    for run in runs.get(MEMBERS, ()):
        whole = History(known[run].info, given.run_index.stays.histories[run].events)
        found.verdicts.append((run, gossip_members(whole)))
    found.verdicts += [(run, gossip_admitted(known[run].history)) for run in runs.get(ADMITTED, ())]
    found.verdicts += [(run, gossip_forgotten(known[run].history)) for run in runs.get(FORGOTTEN, ())]
    found.verdicts += [(run, gossip_sponsored(known[run].history)) for run in runs.get(SPONSORED, ())]
    found.verdicts += [(run, gossip_ended(known[run].history)) for run in runs.get(ENDED, ())]
    return found


class _Obligations:
    """Debtors, what they are asked for, and what they hold."""

    def __init__(self, rows: GossipRows, runs: dict[str, list[str]]) -> None:
        """`runs` are those of which a property is wanted, and can be judged."""
        self._rows = rows
        self._runs = runs
        self._debtors: list[tuple[int, int, str, str]] = []
        self._asked: list[DataFrame] = []
        self._held: list[DataFrame] = []
        self._delivering: list[tuple[int, int]] = []
        self._purging: list[tuple[int, int]] = []
        self._giving_up: list[tuple[int, str, int]] = []
        """Processes whose rows of these kinds a debtor holds; what was given up, for a reason."""
        self._replaceable: list[int] = []
        """Debtors to whom a replacement will do."""
        self._forbidden: list[int] = []
        """Debtors that should hold nothing of what they are asked for."""

    def violations(self) -> DataFrame:
        """All that is lacking, or that should not be there, still by numbers."""
        claims = (
            self._delivery,
            self._agreement,
            self._receipts,
            self._collected,
            self._at_most_once,
            self._at_least_once,
        )
        for name, claim in zip(_OBLIGATIONS, claims, strict=True):
            if name in self._runs:
                claim(name, self._runs[name])
        laid = self._rows.run_index.keep(self._laid())
        forbidden = fn.col("debtor").isin(self._forbidden)
        there = laid.where(fn.col("held") & forbidden).select(*_SPAN)
        broken = self._unreplaced(laid.where(~fn.col("held") & ~forbidden).select(*_SPAN)).union(there)
        types = {"debtor": WHOLE, "who": WHOLE, "property": TEXT, "reason": TEXT}
        table = small_frame(self._rows.run_index.spark, types, self._debtors)
        named = broken.join(fn.broadcast(table), "debtor")
        return numbered_violations(named, fn.col("property"), fn.col("reason"))

    def _laid(self) -> DataFrame:
        """What is asked for, and whether it is held: (debtor, author, first, last, held)."""
        rows = self._rows
        self._hold(rows.delivered, self._delivering)
        self._hold(rows.of(Kind.PURGE), self._purging)
        types = {"who": WHOLE, "level": TEXT, "debtor": WHOLE}
        given_up = fn.broadcast(small_frame(rows.run_index.spark, types, self._giving_up))
        self._held.append(rows.of(LOST).join(given_up, ["who", "level"]).select(*_SPAN))
        parts = [
            each.select(*_SPAN, fn.lit(asked).alias("asked"), fn.lit(1 - asked).alias("held"))
            for asked, some in ((1, self._asked), (0, self._held))
            for each in some
        ]
        spans = chunked(reduce(DataFrame.union, parts))
        laid = overlay(spans, ["debtor", "author", "chunk"], ["asked", "held"])
        return laid.where("asked").select(*_SPAN, "held")

    def _hold(self, spans: DataFrame, holders: list[tuple[int, int]]) -> None:
        table = fn.broadcast(self._rows.run_index.table(holders, "who", "debtor"))
        self._held.append(spans.join(table, "who").select(*_SPAN))

    def _unreplaced(self, lacking: DataFrame) -> DataFrame:
        run_index = self._rows.run_index
        may = fn.col("debtor").isin(self._replaceable)
        owed = run_index.keep(lacking.where(may))
        if owed.isEmpty():
            return lacking
        held = reduce(DataFrame.union, self._held).where(may)
        covered = replacements.covered(run_index, owed, held, self._rows.positions)
        if covered is None:
            return lacking
        seq = fn.col("seq")
        points = covered.select(*_SPAN[:2], seq.alias("first"), seq.alias("last"))
        return lacking.where(~may).union(without(owed, points))

    def _debtor(self, name: str, run: str, process: MemberId, reason: str) -> int:
        number = len(self._debtors)
        self._debtors.append((number, self._rows.number(run, process), name, reason))
        return number

    # What sessions have

    def _delivery(self, name: str, runs: list[str]) -> None:
        """What is on the disk of a logger, every session that is there has."""
        self._ask_sessions(name, runs, self._rows.kept)

    def _agreement(self, name: str, runs: list[str]) -> None:
        """What a session that is there delivered while a logger heard it, all others have."""
        rows, table = self._rows, self._rows.run_index.table
        lasts = [(rows.number(run, each.last.process),) for run in runs for each in rows.known[run].there]
        gaps = [(rows.number(run, who), *gap) for run in runs for who, *gap in rows.known[run].away()]
        there, partly = (
            fn.broadcast(table(lasts, "who")),
            fn.broadcast(table({gap[:1] for gap in gaps}, "who")),
        )
        always = rows.delivered.join(there, "who").join(partly, "who", "left_anti")
        some = rows.of(Kind.DELIVER).join(there, "who").join(partly, "who", "left_semi")
        away = fn.broadcast(table(gaps, "whose", "since", "upto"))
        inside = (fn.col("at_ns") > fn.col("since")) & (fn.col("index") < fn.col("upto"))
        inside &= fn.col("who") == fn.col("whose")
        heard = some.join(away, inside, "left_anti")
        agreed = anybody(always.select(*_SPAN[1:]).union(heard.select(*_SPAN[1:])))
        self._ask_sessions(name, runs, rows.run_index.keep(agreed), aware=True)

    def _ask_sessions(self, name: str, runs: list[str], owed: DataFrame, *, aware: bool = False) -> None:
        """Sessions that are there are asked for these messages, as far as they come after their starts."""
        begins: list[tuple[int, ...]] = []
        for run in runs:
            known = self._rows.known[run]
            for session in known.there:
                debtor = self._debtor(name, run, session.last.process, "has neither this nor a replacement")
                self._session_holds(run, debtor, session, known.excuses(session))
                for stream in self._rows.streams(run):
                    begin = known.begin(session, stream)
                    if aware and known.ledger.unaware(session, stream):
                        continue
                    if begin is not None:
                        begins.append((self._rows.number(run, stream), begin, debtor))
        table = fn.broadcast(self._rows.run_index.table(begins, "author", "begin", "debtor"))
        first = fn.greatest(fn.col("first"), fn.col("begin") + 1)
        spans = owed.join(table, "author").select("debtor", "author", first.alias("first"), "last")
        self._asked.append(spans.where("first <= last"))

    def _session_holds(self, run: str, debtor: int, session: Session, excuses: list[str]) -> None:
        self._replaceable.append(debtor)
        for each in session.counted:
            who = self._rows.number(run, each.process)
            self._delivering.append((who, debtor))
            self._giving_up += [(who, level, debtor) for level in excuses]

    def _receipts(self, name: str, runs: list[str]) -> None:
        """What an incarnation skipped has a receipt, and what it purged was replaced."""
        rows, table = self._rows, self._rows.run_index.table
        starts: list[tuple[int, ...]] = []
        purged: list[tuple[int, ...]] = []
        for run in runs:
            known = rows.known[run]
            for session in known.ledger.sessions:
                for each in session.incarnations:
                    who = rows.number(run, each.process)
                    debtor = self._debtor(name, run, each.process, "was skipped without a receipt")
                    self._delivering.append((who, debtor))
                    self._purging.append((who, debtor))
                    self._giving_up += [(who, level, debtor) for level in (EXPIRED, ABANDONED, UNWANTED)]
                    starts += [
                        (who, rows.number(run, stream), start.seq, debtor)
                        for stream, start in each.starts.items()
                    ]
                if known.info.quiesced and session.there and not known.circular:
                    why = "was purged, and nothing replaces it"
                    debtor = self._debtor(name, run, session.last.process, why)
                    self._session_holds(run, debtor, session, [EXPIRED, ABANDONED, UNWANTED])
                    purged.append((rows.number(run, session.last.process), debtor))
        highest = rows.delivered.groupBy("who", "author").agg(fn.max("last").alias("upto"))
        started = highest.join(
            fn.broadcast(table(starts, "who", "author", "begin", "debtor")), ["who", "author"]
        )
        asked = rows.sent.join(started, "author").select(
            "debtor",
            "author",
            fn.greatest(fn.col("first"), fn.col("begin") + 1).alias("first"),
            fn.least("last", "upto").alias("last"),
        )
        self._asked.append(asked.where("first <= last"))
        purges = rows.of(Kind.PURGE).join(fn.broadcast(table(purged, "who", "debtor")), "who")
        self._asked.append(purges.select(*_SPAN))

    def _at_most_once(self, name: str, runs: list[str]) -> None:
        """No two incarnations of a session deliver the same message."""
        again: list[tuple[int, int]] = []
        for run in runs:
            for session in self._rows.known[run].ledger.sessions:
                for place, each in enumerate(session.incarnations):
                    if each.at_most_once and place:
                        why = "was delivered, and by a former incarnation, too"
                        debtor = self._debtor(name, run, each.process, why)
                        self._forbidden.append(debtor)
                        again.append((self._rows.number(run, each.process), debtor))
                        for former in session.incarnations[:place]:
                            self._delivering.append((self._rows.number(run, former.process), debtor))
        table = fn.broadcast(self._rows.run_index.table(again, "who", "debtor"))
        self._asked.append(self._rows.delivered.join(table, "who").select(*_SPAN))

    def _at_least_once(self, name: str, runs: list[str]) -> None:
        """Only what was not acknowledged before a crash is delivered again."""
        rows, run_index = self._rows, self._rows.run_index
        pairs: list[tuple[object, ...]] = []
        for run in runs:
            for session in rows.known[run].ledger.sessions:
                for former, later in pairwise(session.incarnations):
                    if former.end is not None and not later.at_most_once:
                        who = former.process
                        debtor = self._debtor(name, run, later.process, "was acknowledged, and comes again")
                        numbers = rows.number(run, later.process), debtor
                        pairs.append(((who.name, who.incarnation), former.end.at, *numbers, run))
        types = {"former": MEMBER, "until": WHOLE, "later": WHOLE, "debtor": WHOLE, "of": TEXT}
        table = fn.broadcast(small_frame(run_index.spark, types, pairs))
        told = with_author(of_kind(run_index.events, ACKNOWLEDGE), run_index.people)
        whose = (fn.get("members", fn.lit(0)) == fn.col("former")) & (fn.col("run") == fn.col("of"))
        settled = told.join(table, whose & (fn.col("at_ns") <= fn.col("until")))
        upto = settled.groupBy("later", "debtor", "author").agg(fn.max("seq").alias("upto"))
        again = rows.delivered.withColumnRenamed("who", "later").join(fn.broadcast(upto), ["later", "author"])
        spans = again.select("debtor", "author", "first", fn.least("last", "upto").alias("last"))
        self._asked.append(spans.where("first <= last"))

    # What logs have

    def _collected(self, name: str, runs: list[str]) -> None:
        """Where a log keeps what is not stable, nothing else is left in it."""
        logs: list[tuple[int, int]] = []
        for run in runs:
            ledger = self._rows.known[run].ledger
            for place, log in enumerate(ledger.logs):
                if STABLE in log.retention and log.logger in ledger.running:
                    process = max(
                        who for who in self._rows.known[run].history.processes if who.name == log.logger
                    )
                    debtor = self._debtor(name, run, process, "is still in the log")
                    logs.append((self._rows.logs[run, place], debtor))
        table = fn.broadcast(self._rows.run_index.table(logs, "log", "debtor"))
        rows = self._rows.in_logs.join(table, "log")
        self._asked.append(rows.where(fn.col("kind") != COLLECT.value).select(*_SPAN))
        self._held.append(rows.where(fn.col("kind") == COLLECT.value).select(*_SPAN))
