"""What came of a run: the recording judged, as `semcast check` does, and everything else in one line."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from semcast.core.ids import Nanos
from semcast.history import History, HistoryError, Kind, read_histories, read_journal, record_crash
from semcast.history.journal import SUFFIX, process_of
from semcast.specs import Status, Verdict, check
from semcast.specs.lightweight.kinds import ASK as LIGHT_ASK
from semcast.specs.lightweight.kinds import DELIVER as LIGHT_DELIVER

_LIGHT_SENDS = ("cast", "private")
"""What clients of daemons ask for that is a message."""


class Finding(msgspec.Struct, frozen=True):
    """The verdict on one property."""

    property: str
    status: str
    count: int = 0
    why: str = ""


class Judgement(msgspec.Struct, frozen=True):
    """The verdicts on a recording, and how much there is in it."""

    views: int = 0
    messages: int = 0
    deliveries: int = 0
    crashes: int = 0
    findings: tuple[Finding, ...] = ()

    def having(self, status: Status) -> list[Finding]:
        """The findings with this status."""
        return [finding for finding in self.findings if finding.status == status.value]


class ChaosOutcome(msgspec.Struct, frozen=True):
    """All of it."""

    stack: str
    members: int
    seconds: float
    seed: int
    network: str
    faults: dict[str, int]
    """How many of each kind."""
    stuck: tuple[str, ...]
    """Who did not come to one view, lacks a message, waits to send, or did not end; with why."""
    died: tuple[str, ...]
    """Processes that ended though nobody wanted them to; with how."""
    healed_after: float | None
    """Seconds from the end of all faults to one view in which all hear each other."""
    judgement: Judgement
    folder: str
    clients: int = 0
    """Of the members, in processes of their own."""

    @property
    def good(self) -> bool:
        """Whether nothing is violated, nobody was stuck and nobody died."""
        return not (self.stuck or self.died or self.judgement.having(Status.VIOLATED))

    def line(self) -> str:
        """One line for all of it."""
        judged = self.judgement
        faults = ", ".join(f"{count} {kind}" for kind, count in self.faults.items()) or "none"
        healed = "never healed" if self.healed_after is None else f"healed in {self.healed_after:.1f} s"
        clients = f" and {self.clients} clients" if self.clients else ""
        parts = [
            f"chaos {self.stack} ({self.network}, seed {self.seed})",
            f"{self.members} members{clients}, {self.seconds:.0f} s",
            f"{judged.views} views, {judged.messages} messages, {judged.deliveries} deliveries",
            f"faults: {faults} ({judged.crashes} crashes)",
            healed,
            f"holds: {_listed(each.property for each in judged.having(Status.HOLDS))}",
            "violated: "
            + _listed(f"{f.property} ({f.count}: {f.why})" for f in judged.having(Status.VIOLATED)),
            "unknown: " + _listed(f"{f.property} ({f.why})" for f in judged.having(Status.UNKNOWN)),
            f"stuck: {_listed(self.stuck)}",
            f"died: {_listed(self.died)}",
        ]
        return "; ".join(parts)


def judge(folder: Path, states: Mapping[str, str] | None = None, rest: Nanos | None = None) -> Judgement:
    """Judge what was recorded there.

    Args:
        folder: of the journals.
        states: what programs had in the end, where they share a state.
        rest: the time of day at which all were healed and quiet, and had everything: what is owed at rest is
            judged as of then. What came later is that they left, one after the other.
    """
    try:
        histories = [alone for history in read_histories(folder) for alone in history.by_group()]
    except HistoryError as error:
        return Judgement(findings=(Finding("history", Status.VIOLATED.value, 1, str(error)),))
    findings: dict[str, Finding] = {}
    views = set()
    messages = deliveries = 0
    crashed = set()
    for history in histories:
        for event in history.events:
            if event.kind is Kind.VIEW:
                views.add((event.view, event.members))
            elif event.kind is Kind.MULTICAST or (event.kind is LIGHT_ASK and event.level in _LIGHT_SENDS):
                messages += event.count
            elif event.kind in (Kind.DELIVER, LIGHT_DELIVER):
                deliveries += event.count
            elif event.kind is Kind.CRASH:
                crashed.add(event.process)
        several = len(histories) > 1
        for each in _verdicts(history, rest):
            named = several and each.status is Status.VIOLATED
            why = f"{history.info.only.name}: {each.detail}" if named else each.detail
            finding = Finding(each.property, each.status.value, each.count, why)
            findings[each.property] = _together(findings.get(each.property), finding)
    found = (*findings.values(), *_compare(states or {}))
    return Judgement(len(views), messages, deliveries, len(crashed), found)


_GRAVITY = {Status.HOLDS.value: 0, Status.UNKNOWN.value: 1, Status.VIOLATED.value: 2}


def _together(one: Finding | None, other: Finding) -> Finding:
    """Of two groups: the worse; what is violated in both counts in both."""
    if one is None or _GRAVITY[one.status] < _GRAVITY[other.status]:
        return other
    return msgspec.structs.replace(one, count=one.count + other.count)


def _verdicts(history: History, rest: Nanos | None) -> list[Verdict]:
    """Of the whole recording; where that shows nothing wrong, also of what is owed at rest."""
    found = check(history)
    if rest is None:
        return found
    info = msgspec.structs.replace(history.info, quiesced=True)
    upto = History(info, [event for event in history.events if event.at <= rest])
    asked = [each.property for each in found if each.status is not Status.VIOLATED]
    at_rest = {each.property: each for each in check(upto, asked)}
    return [_worse(each, at_rest.get(each.property, each)) for each in found]


def _worse(whole: Verdict, at_rest: Verdict) -> Verdict:
    """What is not known of the whole, or holds there, may be known or wrong at rest."""
    if whole.status is Status.UNKNOWN or at_rest.status is Status.VIOLATED:
        return at_rest
    return whole


def _compare(states: Mapping[str, str]) -> list[Finding]:
    """Whether all have the same state."""
    if not states:
        return []
    if len({*states.values()}) == 1:
        return [Finding("equal_states", Status.HOLDS.value)]
    told = "; ".join(f"{name} has {state or 'said nothing'}" for name, state in states.items())
    return [Finding("equal_states", Status.VIOLATED.value, len({*states.values()}) - 1, told)]


def journals_of(folder: Path, name: str) -> set[Path]:
    """The journals that a member's incarnations have begun so far."""
    return {path for path in folder.glob(f"*{SUFFIX}") if process_of(path).name == name}


def note_crash(folder: Path, name: str, before: set[Path]) -> None:
    """A process of this member was killed, whose journals are those that were not there before it started.

    What it did last is all in those of its last incarnation, one for each group and for its calls. A journal
    without its first row is of a process that did nothing there.
    """
    mine = journals_of(folder, name) - before
    last = max((process_of(path) for path in mine), default=None)
    for path in mine:
        if process_of(path) == last and read_journal(path).info is None:
            path.unlink()
    if last is not None and any(process_of(path) == last and path.exists() for path in mine):
        record_crash(folder, last)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"
