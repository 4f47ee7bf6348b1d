"""What is said of a run and a property, on Spark and in memory, and where that differs."""

from collections.abc import Iterable, Mapping, Sequence

from semcast.history import History
from semcast.pipeline.verify import FORMS, Verdict
from semcast.specs import (
    EVS,
    GOSSIP,
    GOSSIP_BATCHES,
    GOSSIP_LOGS,
    GOSSIP_READERS,
    PROPERTIES,
    REPLICATION,
    Status,
    check,
)

Said = dict[tuple[str, str], tuple[str, int]]

PLAIN = [name for name in FORMS if name not in EVS]
NAMES = [
    name
    for name in PROPERTIES
    if name not in (*GOSSIP, *GOSSIP_LOGS, *GOSSIP_BATCHES, *GOSSIP_READERS, *REPLICATION)
]
"""All but those of servers and of sessions, whose histories are judged in tests of their own."""


def said(verdicts: Iterable[Verdict]) -> Said:
    """Status and number of cases."""
    return {(v.run, v.property): (v.status.value, v.count) for v in verdicts}


def in_memory(histories: Sequence[History], names: Sequence[str]) -> Said:
    """The same by the checkers in memory."""
    return {
        (history.info.run, verdict.property): (verdict.status.value, verdict.count)
        for history in histories
        for verdict in check(history, names)
    }


def statuses(told: Said, name: str) -> set[str]:
    """What is said of a property anywhere."""
    return {status for (_, of), (status, _) in told.items() if of == name}


def differences(one: Said, other: Said) -> list[object]:
    """Where they do not agree."""
    return [
        (key, one.get(key), other.get(key))
        for key in sorted({*one, *other})
        if one.get(key) != other.get(key)
    ]


def contradictions(spark: Said, memory: Said) -> list[object]:
    """Where Spark says another thing; it may say that it cannot tell, and count fewer cases."""
    return [
        (key, spark[key], memory[key])
        for key in sorted(memory)
        if spark[key][0] not in (memory[key][0], "unknown") or (spark[key][0] == "violated") > spark[key][1]
    ]


def assert_nothing_holds_of_the_silent_group(verdicts: Iterable[Verdict], names: Sequence[str]) -> None:
    """Every property of the group of which nothing was recorded (`histories.two_groups`) is unknown."""
    told = [verdict for verdict in verdicts if verdict.run == "two-groups[silent]"]
    assert [verdict.property for verdict in told] == list(names)
    assert {verdict.status for verdict in told} == {Status.UNKNOWN}
    assert "nothing was recorded" in {verdict.detail for verdict in told}


class Judged:
    """Histories that Spark judged together: a job costs about the same for one run and for many."""

    def __init__(self, verdicts: Iterable[Verdict], events: int) -> None:
        self.verdicts: Mapping[tuple[str, str], Verdict] = {(v.run, v.property): v for v in verdicts}
        self.said = said(self.verdicts.values())
        self.events = events

    def unlike(self, expected: Said) -> list[object]:
        """Where it disagrees with what is expected."""
        return differences({key: self.said[key] for key in self.said.keys() & expected.keys()}, expected)
