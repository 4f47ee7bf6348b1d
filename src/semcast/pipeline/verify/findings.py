"""What a form starts from, and what it says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from semcast.pipeline.verify.run_index import RunIndex
from semcast.pipeline.verify.stays import Who
from semcast.pipeline.verify.totals import Participant
from semcast.specs import Verdict

Wanted = Mapping[str, Sequence[str]]
"""By run, the properties to be judged."""

Case = tuple[str, str]
"""A run and a property."""


@dataclass(frozen=True, slots=True)
class Given:
    """Some runs, and what is known of them before any form looks at messages."""

    run_index: RunIndex
    rows: DataFrame
    """As they are stored, by the names of runs."""

    roster: Sequence[Participant]
    positions: DataFrame
    """Where annotated messages stand in the total order: (run, sender, seq, position)."""

    tails: Mapping[Who, int]
    """The last message that is known of senders whose recordings are cut off."""

    circular: set[str]
    """Runs whose obsolescence relation is not an order."""

    untold: set[str]
    """Runs with a message that was sent where the recording of its sender is cut off."""


@dataclass(slots=True)
class Findings:
    """Violations, and what cannot be told."""

    violations: list[DataFrame] = field(default_factory=list)
    """In the columns of `violations`."""

    unknown: dict[Case, str] = field(default_factory=dict)
    """Why it cannot be told."""

    doubts: dict[Case, str] = field(default_factory=dict)
    """Why it is not known to hold, if nothing breaks it."""

    notes: dict[Case, str] = field(default_factory=dict)
    """What was not looked at."""

    verdicts: list[tuple[str, Verdict]] = field(default_factory=list)
    """Runs, and what the checkers in memory said of them or of an excerpt, where that is final."""

    def add(self, other: "Findings") -> None:
        """Both together."""
        self.violations += other.violations
        self.unknown.update(other.unknown)
        self.doubts.update(other.doubts)
        self.notes.update(other.notes)
        self.verdicts += other.verdicts


Judge = Callable[[Given, Wanted], Findings]
"""A form: judges some properties of some runs."""
