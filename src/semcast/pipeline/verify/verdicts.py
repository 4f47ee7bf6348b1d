"""From what was found to what is said: one verdict for each run and property."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import Row

from semcast import specs
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.history import Event, RunInfo
from semcast.pipeline.session import SMALL_ROWS
from semcast.pipeline.verify.events import member_of
from semcast.pipeline.verify.forms import PROPERTIES, Case, Findings, Need, needs
from semcast.pipeline.verify.violations import NOBODY, Violation
from semcast.specs import Status

_MAX_REASONS = 3
NOTHING_RECORDED = "nothing was recorded"


@dataclass(frozen=True, slots=True)
class Options:
    """How to verify."""

    properties: Sequence[str] | None = None
    """By default those that the stack of each run promises."""

    max_sample: int = 10
    allow_missing: bool = False
    out: str | Path | None = None
    """A folder, or the URI of one."""

    memory_rows: int = 500_000
    """The most rows of a run that one task may hold to judge what needs all of them at once."""

    small_rows: int = SMALL_ROWS
    """Up to so many rows of all runs together, everything is one task, and the driver holds the tables."""


@dataclass(frozen=True, slots=True)
class Offence:
    """One broken case, and the event that shows it where there is one."""

    process: MemberId | None
    message: MessageId | None
    reason: str
    at_process: MemberId | None
    index: int | None
    at: Nanos | None
    kind: str | None

    def __str__(self) -> str:
        about = (
            ""
            if self.message is None
            else f"{self.message} "
            if self.message.seq
            else f"{self.message.sender}: "
        )
        return f"{self.process}: {about}{self.reason}"

    @property
    def event(self) -> str:
        """The event, empty if there is none."""
        if self.index is None:
            return ""
        return f"{self.at_process}[{self.index}] at {self.at} ns: {self.kind}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one property of one run."""

    run: str
    property: str
    status: Status
    count: int = 0
    detail: str = ""
    sample: tuple[Offence, ...] = ()
    note: str = ""
    """What was not looked at, and why."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it."""

    runs: Mapping[str, RunInfo]
    events: int
    verdicts: list[Verdict]


@dataclass(slots=True)
class Evidence:
    """What was found out about all runs, beside violations."""

    runs: Mapping[str, RunInfo]
    circular: set[str] = field(default_factory=set)
    """Runs whose obsolescence relation is not an order."""

    untold: Mapping[str, MessageId] = field(default_factory=dict)
    """Runs with a message that was sent where the recording of its sender is cut off."""

    nowhere: set[str] = field(default_factory=set)
    """Runs in which no configuration was recorded."""

    empty: set[str] = field(default_factory=set)
    """Groups of which no row was recorded."""

    looked_at: set[Case] = field(default_factory=set)
    """What some form judged. Nothing else holds."""

    findings: Findings = field(default_factory=Findings)
    """What the forms say."""

    in_memory: dict[Case, Verdict] = field(default_factory=dict)
    """What the checkers in memory said."""

    def unknown(self, run: str, name: str) -> str:
        """Why the history cannot tell, empty if it can."""
        if (run, name) in self.in_memory:
            return ""
        if run in self.empty:
            return NOTHING_RECORDED
        missing = (self._missing(run, name, need) for need in PROPERTIES[name].needs)
        found = next((why for why in missing if why), self.findings.unknown.get((run, name), ""))
        return found or ("" if (run, name) in self.looked_at else "no form looked at it")

    def _missing(self, run: str, name: str, need: Need) -> str:
        """What is missing of what a property needs, empty if nothing is."""
        info = self.runs[run]
        match need:
            case Need.END if not info.quiesced:
                return "the run was not over"
            case Need.CONFIGURATIONS if run in self.nowhere:
                return "no configuration was recorded"
            case Need.VIEWS if run in self.nowhere:
                return "no view was recorded"
            case Need.RELATION if run in self.circular:
                return "the obsolescence relation is not an order"
            case Need.RELATION | Need.ALL_SENT:
                return self.doubt(run, name)
            case Need.LIMIT if info.only.buffer_limit is None:
                return "the run had no limit"
        return ""

    def doubt(self, run: str, name: str) -> str:
        """Why it is not known to hold, even if nothing is known to break it."""
        if (run, name) in self.findings.doubts:
            return self.findings.doubts[run, name]
        if run not in self.untold or not needs(name, Need.RELATION, Need.ALL_SENT, Need.SENT):
            return ""
        message = self.untold[run]
        return f"the recording of {message.sender} is cut off before it sent {message.seq}"


def judge(
    evidence: Evidence, wanted: Mapping[str, Iterable[str]], counts: Iterable[Row], samples: Iterable[Row]
) -> list[Verdict]:
    """The verdicts, run by run and in the order in which properties are wanted."""
    count = {(row["run"], row["property"]): int(row["count"]) for row in counts}
    sample: dict[tuple[str, str], list[Offence]] = {}
    for row in samples:
        sample.setdefault((row["run"], row["property"]), []).append(_offence(row))
    return [
        _verdict(evidence, run, name, count.get((run, name), 0), sample.get((run, name), []))
        for run, names in wanted.items()
        for name in names
    ]


def _verdict(evidence: Evidence, run: str, name: str, count: int, sample: list[Offence]) -> Verdict:
    if (run, name) in evidence.in_memory:
        return evidence.in_memory[run, name]
    note = evidence.findings.notes.get((run, name), "")
    unknown = evidence.unknown(run, name) or ("" if count else evidence.doubt(run, name))
    if unknown:
        return Verdict(run, name, Status.UNKNOWN, detail=unknown, note=note)
    if not count:
        return Verdict(run, name, Status.HOLDS, note=note)
    reasons = [str(offence) for offence in sample[:_MAX_REASONS]]
    rest = count - len(reasons)
    detail = "; ".join([*reasons, f"and {rest} more"] if rest else reasons)
    return Verdict(run, name, Status.VIOLATED, count, detail, tuple(sample), note)


def in_memory(run: str, verdict: specs.Verdict, most: int) -> Verdict:
    """What a checker in memory said, in the same form."""
    sample = tuple(map(_shown, verdict.offending[:most]))
    return Verdict(run, verdict.property, verdict.status, verdict.count, verdict.detail, sample, verdict.note)


def _shown(event: Event) -> Offence:
    about = None if event.sender is None or not event.seq else MessageId(event.sender, event.seq)
    return Offence(
        event.process, about, "is at fault", event.process, event.index, event.at, event.kind.value
    )


def as_violation(verdict: Verdict) -> Violation:
    """The cases of a verdict from memory as one row of violations, at its first event if there is one."""
    if not verdict.sample:
        return verdict.run, verdict.property, NOBODY, None, 0, 0, verdict.count, None, verdict.detail
    first = verdict.sample[0]
    process, about = first.process, first.message
    assert process is not None
    sender = None if about is None else (about.sender.name, about.sender.incarnation)
    seq = 0 if about is None else about.seq
    where = (process.name, process.incarnation)
    run, name, count = verdict.run, verdict.property, verdict.count
    return (run, name, where, sender, seq, seq, count, first.index, verdict.detail)


def _offence(row: Row) -> Offence:
    event = row["event"]
    return Offence(
        process=member_of(row["process"]),
        message=None if row["sender"] is None else MessageId(member_of(row["sender"]), row["seq"]),
        reason=row["reason"],
        at_process=None if event is None else member_of(event["process"]),
        index=None if event is None else event["index"],
        at=None if event is None else event["at_ns"],
        kind=None if event is None else event["kind"],
    )
