"""Who was in which configuration, and so who owes what to whom, before anybody looks at a message.

There are as many rows as configurations times members, whatever was sent in them. The driver reads them by
the code that the checkers in memory use: of each run a history of just these rows is made, so that stays,
com(c) and who owes what mean here exactly what they mean there.

A debtor is one or several stays of a process, which must hold what it is asked for: a stay by itself
(specification 4), all stays of com(c) (3 and 7.1), or none, where the process never came (7.2). A source is
stays of several processes, whose deliveries are asked of debtors together. In primary views every stay is a
debtor of its own, and those that are closed, from which a process went on, owe something. A view is known by
its run and number.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from pyspark.sql import DataFrame, Row

from semcast.core.ids import MemberId
from semcast.history import GONE, Event, History, Kind, RunInfo
from semcast.history.schema import kind_named
from semcast.pipeline.verify.events import member_of, of_kind
from semcast.specs.evs.configurations import (
    Configuration,
    Configurations,
    Life,
    Stay,
    configurations_of,
    groups,
)
from semcast.specs.vsync.views import Views, going_on_together, number_of, views_of

CHANGES = (Kind.VIEW, Kind.TRANSITIONAL, Kind.MERGED, *GONE)
"""The kinds of rows that say who is where."""

Who = tuple[str, MemberId]
"""A run, and a process or sender there."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The rows of one process from one change on: of its configuration, or that it is gone."""

    who: Who
    first: int
    """The index of the first row."""

    stay: int | None
    view: int | None
    crashed: bool

    @property
    def outside(self) -> bool:
        """Whether nothing should happen here."""
        return self.stay is None or self.crashed


def changes(events: DataFrame) -> DataFrame:
    """The rows that say who is where."""
    return of_kind(events, *CHANGES).select(
        "run", "process", "index", "at_ns", "kind", "sender", "view", "members", "order"
    )


def skeletons(infos: Mapping[str, RunInfo], rows: Iterable[Row]) -> dict[str, History]:
    """Every run with only these rows."""
    found: dict[str, list[Event]] = {run: [] for run in infos}
    for row in rows:
        found[row["run"]].append(_event(infos[row["run"]].only.name, row))
    return {
        run: History(infos[run], sorted(events, key=lambda event: event.index))
        for run, events in found.items()
    }


class Stays:
    """The stays of all runs, numbered."""

    def __init__(self, histories: Mapping[str, History]) -> None:
        self.histories = histories
        self.runs: dict[str, Configurations] = {}
        self._offset: dict[str, int] = {}
        offset = 0
        for run, history in histories.items():
            self.runs[run] = configurations_of(history)
            self._offset[run] = offset
            offset += len(self.runs[run].stays)

    def number(self, run: str, stay: Stay) -> int:
        """The number of a stay among those of all runs."""
        return self._offset[run] + stay.slot

    def at(self, segment: Segment) -> Stay | None:
        """The stay that a segment is in; None before the first."""
        if segment.stay is None:
            return None
        run = segment.who[0]
        return self.runs[run].stays[segment.stay - self._offset[run]]

    def segments(self, processes: Iterable[Who]) -> list[Segment]:
        """What the rows of each process are cut into, process by process and in their order."""
        return [segment for who in processes for segment in self._segments(who)]

    def _segments(self, who: Who) -> list[Segment]:
        run, process = who
        known = self.runs[run]
        segments = [Segment(who, 0, None, None, crashed=False)]
        stays = {stay.event.index: stay for stay in known.life(process).stays}
        for event in known.rows.get(process, ()):
            last = segments[-1]
            if event.kind is Kind.MERGED:
                continue
            if event.kind in GONE:
                segments.append(Segment(who, event.index, last.stay, last.view, crashed=True))
            else:
                stay = self.number(run, stays[event.index])
                segments.append(Segment(who, event.index, stay, event.view, crashed=last.crashed))
        return segments


def _event(group: str, row: Row) -> Event:
    return Event(
        process=member_of(row["process"]),
        index=row["index"],
        at=row["at_ns"],
        kind=kind_named(row["kind"]),
        group=group,
        sender=None if row["sender"] is None else member_of(row["sender"]),
        view=row["view"],
        order=row["order"],
        members=None if row["members"] is None else tuple(map(member_of, row["members"])),
    )


SAME, PROMISED = "same", "promised"
"""What others delivered is asked for: of those who go on with them, or of everybody it was promised to."""


@dataclass(slots=True)
class Debtor:
    """Who is asked for something."""

    number: int
    who: Who
    alone: bool
    """One stay and no more: there 1.3 looks for what does not belong."""

    same: list[str] = field(default_factory=list)
    """The properties that ask it for what others delivered in the same configuration."""

    safe: str | None = None
    """The property that asks it for safe messages."""


@dataclass(slots=True)
class Claims:
    """All of it, by numbers of stays, debtors and sources."""

    debtors: list[Debtor] = field(default_factory=list)
    holds: list[tuple[int, int]] = field(default_factory=list)
    """(stay, debtor): what is delivered there the debtor has."""

    own: list[tuple[int, int]] = field(default_factory=list)
    """(stay, debtor): what is sent there is asked of the debtor."""

    sources: list[tuple[int, int]] = field(default_factory=list)
    """(stay, source)"""

    asked: list[tuple[int, int, str]] = field(default_factory=list)
    """(source, debtor, SAME or PROMISED)"""

    regs: dict[str, dict[Configuration, int]] = field(default_factory=dict)
    """By run, the regular configurations, numbered."""

    regular: list[tuple[int, int]] = field(default_factory=list)
    """(stay, number of its regular configuration)"""

    senders: list[tuple[int, Who, int]] = field(default_factory=list)
    """(number of a regular configuration, member, debtor): whose messages may be delivered there."""


def claims_of(stays: Stays) -> Claims:
    """The claims in all runs."""
    claims = Claims()
    debtors, sources, regs = count(), count(), count()
    for run, known in stays.runs.items():
        _Run(claims, stays, run, known, debtors, sources, regs).claim()
    return claims


class _Run:
    """The claims in one run."""

    def __init__(
        self,
        claims: Claims,
        stays: Stays,
        run: str,
        known: Configurations,
        debtors: Iterator[int],
        sources: Iterator[int],
        regs: Iterator[int],
    ) -> None:
        self._claims = claims
        self._stays = stays
        self._run = run
        self._known = known
        self._debtors = debtors
        self._sources = sources
        self._reg = claims.regs[run] = {reg: next(regs) for reg in known.regs}
        self._alone: dict[int, Debtor] = {}

    def claim(self) -> None:
        for stay in self._known.stays:
            self._alone[stay.slot] = self._debtor(stay.process, [stay], alone=True)
            self._name_senders(stay)
        for together in groups(self._known.stays, _from_and_to):
            self._same(together)
        for reg in self._known.regs:
            self._com(reg)

    def _debtor(self, process: MemberId, stays: list[Stay], *, alone: bool = False) -> Debtor:
        debtor = Debtor(next(self._debtors), (self._run, process), alone)
        self._claims.debtors.append(debtor)
        self._claims.holds += [(self._number(stay), debtor.number) for stay in stays]
        return debtor

    def _number(self, stay: Stay) -> int:
        return self._stays.number(self._run, stay)

    def _source(self, stays: list[Stay]) -> int:
        source = next(self._sources)
        self._claims.sources += [(self._number(stay), source) for stay in stays]
        return source

    def _name_senders(self, stay: Stay) -> None:
        """1.3: what is delivered in c was sent in reg(c), by a member of it, as the process saw it."""
        if stay.configuration.regular:
            self._claims.regular.append((self._number(stay), self._reg[stay.configuration]))
        reg = stay.configuration.reg
        com = self._known.lives[stay.process].com[reg]
        members = next((s.members for s in com if s.configuration == reg), stay.members)
        debtor = self._alone[stay.slot].number
        self._claims.senders += [(self._reg[reg], (self._run, member), debtor) for member in sorted(members)]

    def _same(self, together: list[Stay]) -> None:
        """4, and the pairwise rules: who goes on together delivered the same."""
        if len(together) < 2:
            return
        source = self._source(together)
        names = ["evs_4_failure_atomicity", *_pairwise(together[0])]
        for stay in together:
            self._alone[stay.slot].same = names
            self._claims.asked.append((source, self._alone[stay.slot].number, SAME))

    def _com(self, reg: Configuration) -> None:
        """3, 7.1 and 7.2: what com(c) asks of its members."""
        lives = self._known.living_in(reg)
        there = {stay.process for stay in self._known.of.get(reg, ())}
        alike: dict[tuple[Configuration, frozenset[MemberId]], list[Stay]] = {}
        for life in lives:
            for stay in life.com[reg]:
                alike.setdefault((stay.configuration, stay.members), []).append(stay)
        sources = {key: self._source(stays) for key, stays in alike.items()}
        members = {life.process for life in lives}.union(*(members for _, members in alike))
        for process in sorted(members):
            if not self._known.owes(process, reg):
                continue
            promised = [(conf, source) for (conf, who), source in sources.items() if process in who]
            self._one(self._known.life(process), reg, [source for _, source in promised])
            if process not in there:
                self._absent(process, [source for conf, source in promised if conf == reg])

    def _one(self, life: Life, reg: Configuration, promised: list[int]) -> None:
        stays = life.com.get(reg, [])
        debtor = self._debtor(life.process, stays)
        debtor.safe = "evs_7_1_safe"
        self._claims.own += [(self._number(stay), debtor.number) for stay in stays]
        self._claims.asked += [(source, debtor.number, PROMISED) for source in promised]

    def _absent(self, process: MemberId, promised: list[int]) -> None:
        if promised:
            debtor = self._debtor(process, [])
            debtor.safe = "evs_7_2_safe_configuration_installed"
            self._claims.asked += [(source, debtor.number, PROMISED) for source in promised]


def _from_and_to(stay: Stay) -> tuple[Configuration, Configuration] | None:
    return None if stay.after is None else (stay.configuration, stay.after.configuration)


def _pairwise(stay: Stay) -> list[str]:
    """Which of the pairwise rules is about the way that a stay ends."""
    assert stay.after is not None
    here, there = stay.configuration, stay.after.configuration
    if here.regular and not there.regular and there.reg == here:
        return ["pair_transitional"]
    if not here.regular and there.regular:
        return ["pair_transitional_then_regular"]
    return []


@dataclass(slots=True)
class ViewClaims:
    """All of it, by numbers of stays, views and sources."""

    views: dict[tuple[str, int], int] = field(default_factory=dict)
    """By run and number of the view."""

    stays: list[tuple[int, int, Who, bool]] = field(default_factory=list)
    """(stay, view, who, closed)"""

    sources: list[tuple[int, int]] = field(default_factory=list)
    """(stay, source)"""

    asked: list[tuple[int, int, str]] = field(default_factory=list)
    """(source, stay, SAME or PROMISED): what is delivered there is asked of the stay."""

    def closed(self) -> Iterator[int]:
        """The stays from which processes went on."""
        return (stay for stay, _, _, closed in self.stays if closed)


def view_claims_of(stays: Stays, runs: Iterable[str]) -> ViewClaims:
    """The claims in these runs."""
    claims = ViewClaims()
    sources = count()
    for run in runs:
        _claim(claims, stays, run, views_of(stays.histories[run]), sources)
    return claims


def _claim(claims: ViewClaims, stays: Stays, run: str, views: Views, sources: Iterator[int]) -> None:
    for number in views.of:
        claims.views[run, number] = len(claims.views)
    for stay in views.known.stays:
        view = claims.views[run, number_of(stay)]
        claims.stays.append((stays.number(run, stay), view, (run, stay.process), views.closed(stay)))

    def ask(whose: Iterable[Stay], debtors: Iterable[Stay], kind: str) -> None:
        source = next(sources)
        claims.sources += [(stays.number(run, stay), source) for stay in whose]
        claims.asked += [(source, stays.number(run, stay), kind) for stay in debtors]

    for together in going_on_together(views):
        if len(together) > 1:
            ask(together, together, SAME)
    for everybody in views.of.values():
        debtors = list(filter(views.closed, everybody))
        if debtors and len(everybody) > 1:
            ask([stay for stay in everybody if not views.bereft(stay)], debtors, PROMISED)
