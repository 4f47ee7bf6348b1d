"""Sessions and logs of gossip runs, from the few rows that are not about messages.

The driver reads them by the code that the checkers in memory use (`semcast.specs.gossip.ledger`): of each run
a history of just these rows is made, so that sessions, logs and who is there mean here what they mean there.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow.compute as pc
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId, Nanos
from semcast.history import Event, History, HistoryError
from semcast.history.schema import GONE
from semcast.pipeline.verify.forms import Given, Wanted
from semcast.pipeline.verify.memory import history_of
from semcast.specs.gossip.kinds import (
    ABANDONED,
    ADMIT,
    BEGIN,
    DETACHED,
    DISCONNECT,
    DISMISSED,
    EXPIRED,
    EXPLICIT,
    FENCED,
    FORGOT,
    JOINED,
    LEAVE,
    LIMITS,
    OPENED,
    PUBLISHER,
    READER,
    RECONNECT,
    START,
    UNWANTED,
    VOUCHED,
)
from semcast.specs.gossip.ledger import Session, ledger_of, unheard

_SESSIONS = (START, BEGIN, VOUCHED, JOINED, ADMIT, LEAVE, FENCED, DETACHED, DISCONNECT, RECONNECT)
_KINDS = (*_SESSIONS, EXPLICIT, OPENED, FORGOT, DISMISSED, PUBLISHER, READER, *GONE)
_END = 1 << 62
"""Later than every moment, and beyond every row."""


class LogPart(NamedTuple):
    """The rows of a logger from one opening of a log to the next."""

    process: MemberId
    rank: int
    """The place of the process among the incarnations of the logger."""
    first: int
    last: int
    log: int
    """Its place in the ledger."""


class Owed(NamedTuple):
    """A session is owed what comes after `begin` in a stream: from the moment `since` on, before `until`."""

    session: int
    stream: MemberId
    begin: int
    since: Nanos
    until: Nanos


def outlines(given: Given, wanted: Wanted) -> "dict[str, Outline]":
    """Of all runs that something is wanted of."""
    kinds = [kind.value for kind in _KINDS]
    chosen = fn.col("kind").isin(kinds) & fn.col("run").isin(*wanted)
    rows = given.rows.where(chosen).toArrow()
    counted = sum(each.rows for each in given.run_index.totals if each.kind in kinds and each.run in wanted)
    if rows.num_rows != counted:
        raise HistoryError(
            f"{counted} rows about sessions and logs were there at first, then {rows.num_rows}"
        )
    histories = {run: history_of(given, run, rows.filter(pc.equal(rows["run"], run))) for run in wanted}
    return {run: Outline(history, circular=run in given.circular) for run, history in histories.items()}


class Outline:
    """One run."""

    def __init__(self, history: History, *, circular: bool) -> None:
        self.info = history.info
        self.history = history
        self.ledger = ledger_of(self.history)
        self.circular = circular

    def why_not(self, name: str) -> str:
        """What keeps a property from being judged, in the words of its checker; empty if nothing does."""
        reasons: Mapping[str, tuple[tuple[bool, str], ...]] = {
            "gossip_delivery": self._of_delivery(),
            "gossip_agreement": self._of_delivery(),
            "gossip_logged": (
                (not self.info.quiesced, "the run was not over"),
                (not self.ledger.running or self.ledger.disk_lost, "no logger is there, or a disk was lost"),
            ),
            "gossip_collected": (
                (
                    not self.info.quiesced or not self.ledger.running,
                    "the run was not over, or no logger is there",
                ),
                (
                    self.ledger.disk_missed or self.ledger.leave_missed or self.ledger.somebody_away,
                    "a disk was lost, or a session that is owed something is away",
                ),
            ),
            "gossip_collection": (
                (self.info.seed is None, "the clocks of processes cannot be compared"),
                (self.ledger.disk_lost, "who was owed something was lost with a disk"),
                (self.circular, "the obsolescence relation is not an order"),
            ),
            "gossip_beginning": (
                (
                    self.info.seed is None or len(self.ledger.logs) != 1,
                    "clocks cannot be compared, or there is not one log",
                ),
            ),
            "gossip_chains": ((self.circular, "the obsolescence relation is not an order"),),
            "gossip_compacted": (
                (
                    not self.info.quiesced or not self.ledger.running or self.circular,
                    "the run was not over, or no logger is there",
                ),
            ),
            "published_all": (
                (not self.info.quiesced, "the run was not over"),
                (self.ledger.disk_lost, "a log was lost"),
            ),
            "gossip_again": self._of_again(),
            "at_least_once": ((self.ledger.disk_lost, "what was acknowledged was lost with a disk"),),
        }
        return next((why for holds, why in reasons.get(name, ()) if holds), "")

    def _of_delivery(self) -> tuple[tuple[bool, str], ...]:
        return (
            (not self.info.quiesced, "the run was not over"),
            (self.circular, "the obsolescence relation is not an order"),
            (not self.ledger.logs, "there is no logger: nothing is promised but receipts"),
            (not self.ledger.running, "no logger is there at the end"),
        )

    def _of_again(self) -> tuple[tuple[bool, str], ...]:
        return (
            (not self.info.quiesced, "the run was not over"),
            (self.circular, "the obsolescence relation is not an order"),
            (self.ledger.disk_lost, "what was acknowledged was lost with a disk"),
        )

    @property
    def there(self) -> list[Session]:
        """The sessions that are there at the end."""
        return [session for session in self.ledger.sessions if session.there]

    def excuses(self, session: Session) -> list[str]:
        """The reasons for which a session may give messages up."""
        ledger = self.ledger
        limited = ledger.disk_lost or any(LIMITS in log.retention for log in ledger.logs) or session.orphaned
        given_up = ((EXPIRED, limited), (ABANDONED, ledger.disk_lost), (UNWANTED, True))
        return [level for level, may in given_up if may]

    def begin(self, session: Session, stream: MemberId) -> int | None:
        """A session is owed what comes after this; None if it is owed nothing."""
        begin = session.begin(stream)
        if begin is None:
            if session.last.at_most_once:
                return None
            begin = 0
        if self.ledger.disk_lost and stream in session.last.starts:
            begin = max(begin, session.last.starts[stream].seq)
        return begin

    def starts(self) -> dict[tuple[MemberId, MemberId], Event]:
        """By process and stream, where it starts."""
        found: dict[tuple[MemberId, MemberId], Event] = {}
        for row in self.history.events:
            if row.kind is START and row.sender is not None:
                found.setdefault((row.process, row.sender), row)
        return found

    def log_parts(self) -> Iterator[LogPart]:
        """Which rows of loggers are about which log."""
        opened = {row.process.name for row in self.history.events if row.kind is OPENED}
        logs = enumerate(self.ledger.logs)
        for name in sorted(opened):
            number = identity = None
            incarnations = [process for process in self.history.processes if process.name == name]
            for rank, process in enumerate(incarnations):
                first = 0
                for row in self.history.of(process):
                    if row.kind is not OPENED:
                        continue
                    if number is not None:
                        yield LogPart(process, rank, first, row.index, number)
                    if number is None or row.order != identity:
                        (number, _), identity = next(logs), row.order
                    first = row.index + 1
                if number is not None:
                    yield LogPart(process, rank, first, _END, number)

    def away(self) -> Iterator[tuple[MemberId, int, int]]:
        """The rows of sessions that no logger heard: the process, after which moment, before which row."""
        for process in self.history.processes:
            for since, upto in unheard(self.history.of(process)):
                yield process, since, upto

    def owed(self) -> Iterator[Owed]:
        """At which moments a session is owed which part of a stream, if a log collects it as stable."""
        for number, session in enumerate(self.ledger.sessions):
            incarnations = session.incarnations
            leaves = min(_END, session.over_at)
            alone = any(each.at_most_once for each in incarnations)
            for place, each in enumerate(incarnations):
                since, until = 0, leaves
                if alone:  # only the last one counts that has not ended
                    later = [_END if one.end is None else one.end.at for one in incarnations[place + 1 :]]
                    since = max(later, default=0)
                    until = min(leaves, _END if each.end is None else each.end.at)
                for stream, start in each.starts.items():
                    owed = max(since, session.owed_since(each, stream))
                    yield Owed(number, stream, start.seq, owed, until)
