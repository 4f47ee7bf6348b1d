"""What a form for large runs says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from semcast.pipeline.verify.scene import Scene
from semcast.specs import Verdict

Wanted = Mapping[str, Sequence[str]]
"""By run, the properties to be judged."""


@dataclass(slots=True)
class Findings:
    """Violations, and what cannot be told."""

    violations: list[DataFrame] = field(default_factory=list)
    """In the columns of `violations`."""

    unknown: dict[tuple[str, str], str] = field(default_factory=dict)
    """By run and property, why."""

    doubts: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why it is not known to hold, if nothing breaks it."""

    verdicts: list[tuple[str, Verdict]] = field(default_factory=list)
    """Runs, and what the checkers in memory said of an excerpt of them, where that is final."""

    def add(self, other: "Findings") -> None:
        """Both together."""
        self.violations += other.violations
        self.unknown.update(other.unknown)
        self.doubts.update(other.doubts)
        self.verdicts += other.verdicts


@dataclass(frozen=True, slots=True)
class Given:
    """What the forms for large runs start from."""

    scene: Scene
    """Of these runs only."""

    rows: DataFrame
    """As they are stored, by the names of runs."""

    positions: DataFrame
    """Where annotated messages stand in the total order: (run, sender, seq, position)."""

    tails: DataFrame | None
    """What senders are known to have sent whose recordings are cut off: (run, sender, tail)."""

    circular: set[str]
    """Runs whose obsolescence relation is not an order."""

    untold: set[str]
    """Runs with a message that was sent where the recording of its sender is cut off."""


Form = Callable[[Given, Wanted], Findings]
"""Judges some properties; those of a run that it cannot judge it says so of."""
