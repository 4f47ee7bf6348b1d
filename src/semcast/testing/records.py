"""What the members of a world did, group by group, and what else happened."""

from collections.abc import Iterable

from semcast.core.ids import SECOND, Nanos
from semcast.history import History, Recorder, RunInfo
from semcast.specs import Status, Verdict, check


class Records:
    """Of one world.

    Args:
        seed: of the world.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._recorders: dict[RunInfo, Recorder] = {}
        self._notes: list[tuple[Nanos, str]] = []

    def of(self, info: RunInfo) -> Recorder:
        """Where members of a group that was joined in this way are recorded."""
        return self._recorders.setdefault(info, Recorder(info))

    def note(self, at: Nanos, what: str) -> None:
        """Something happened that concerns no group: a fault, or the end of one."""
        self._notes.append((at, what))

    def histories(self, *, at_rest: bool = False) -> list[History]:
        """One for each group, so far."""
        return [recorder.close(quiesced=at_rest) for recorder in self._recorders.values()]

    def verdicts(self, *, at_rest: bool) -> list[Verdict]:
        """On every property that the stacks promise."""
        found: list[Verdict] = []
        for history in self.histories(at_rest=at_rest):
            if history.events:
                found += [verdict.about(history.info.only.name) for verdict in check(history)]
        return found

    def trace(self) -> list[str]:
        """Everything that happened, a line each, in the order of time."""
        rows = [(at, "", number, what) for number, (at, what) in enumerate(self._notes)]
        for history in self.histories():
            group = history.info.only.name
            rows += [(each.at, f"{group}/{each.process}", each.index, str(each)) for each in history.events]
        return [f"{at / SECOND:12.6f} {what}" for at, _, _, what in sorted(rows)]


def violated(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that say that something is broken."""
    return [verdict for verdict in verdicts if verdict.status is Status.VIOLATED]
