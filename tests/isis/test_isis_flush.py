"""What a flush waits for where messages are replaced (1991, 7.3; rule 11)."""

import pytest
from tests.isis.lab import Lab

from semcast.core.ids import MemberId
from semcast.protocols.isis import Policy
from semcast.protocols.isis.frames import Taken
from semcast.protocols.isis.replaced import Replaced
from semcast.protocols.isis.taking import Taking
from semcast.sim.isis_programs import DomainProcess
from semcast.sim.mutants import isis as mutants


def _replaced(kind: type[DomainProcess] = DomainProcess) -> list[bool]:
    """q was given what p sent before its flush, or purged it; the replacement waits for a cause in c.

    Returns whether the flush has returned before q is given the replacement, and after.
    """
    lab = Lab({"a": "pq", "b": "pq", "c": "pq"}, Policy.FULL, kind, resilience="0")
    process = lab.at["p"]
    lab.hold(lambda _source, dest, group, carries: dest == "q" and group in "bc" and carries)
    lab.send("p", "b", "cause of old")
    lab.send("p", "a", "old", item="x")
    lab.send("p", "a", "plain")
    process.flush()
    process.settle(lab.now)
    lab.send("p", "c", "cause of new")
    lab.send("p", "a", "new", item="x")
    lab.run(5)
    assert lab.given["q"] == []
    lab.let(lambda _source, dest, group, carries: dest == "q" and group == "c" and carries)
    lab.run(500)
    assert lab.given["q"] == ["cause of old", "plain"], "old was purged, and new waits"
    found = [not process.program.flushes]
    lab.release()
    lab.run(500)
    assert lab.given["q"] == ["cause of old", "plain", "cause of new", "new"]
    return [*found, not process.program.flushes]


def test_a_flush_waits_for_what_replaces_a_purged_message() -> None:
    """Seed 600122 (conservative): it returned although neither the message nor its replacement was given."""
    assert _replaced() == [False, True]
    assert _replaced(mutants.FlushedBeforeReplacements) == [True, True]


def test_a_replacement_that_is_replaced_itself_stands_for_both() -> None:
    replaced = Replaced()
    replaced.purged(1, by=3)
    replaced.purged(3, by=6)
    replaced.purged(4, by=5)
    assert replaced.certain(2) == replaced.certain(5) == 0
    assert replaced.certain(6) == 6
    assert not replaced


def test_what_was_skipped_waits_for_all_that_may_replace_it() -> None:
    """Who purged it elsewhere says only which messages it knew of."""
    replaced = Replaced()
    replaced.skipped(2, upto=4)
    assert [replaced.certain(taken) for taken in (1, 3)] == [1, 1]
    replaced.purged(4, by=6)
    assert replaced.certain(5) == 1, "4 may be what replaces 2, and is replaced by 6"
    assert replaced.certain(6) == 6
    assert not replaced


def test_reports_of_what_was_taken_may_overtake_each_other() -> None:
    p, q = MemberId("p"), MemberId("q")
    taking = Taking(p)
    taking.begins((p, q), {p, q}, {p: 0, q: 0}, first=True)
    taking.took(p, 9)

    def hear(frame: Taken) -> tuple[int, int]:
        taking.hears(q, frame, (p, q), (20, 20))
        return taking.by(q), taking.certain(q, p)

    assert hear(Taken(1, [5, 0], 1, [(0, 3)])) == (5, 3)
    assert not taking.by_all(4)
    assert hear(Taken(1, [4, 0], 1)) == (5, 3), "an older one says nothing new"
    assert hear(Taken(1, [6, 0], 1)) == (6, 6)
    assert taking.by_all(6)
    assert hear(Taken(1, [5, 0], 1, [(0, 3)])) == (6, 6)


def _after_a_view(kind: type[DomainProcess] = DomainProcess) -> list[bool]:
    """p was given what q still waits to be given, in a view that is over for p; then p flushes.

    Returns whether the flush has returned before q is given it, and after.
    """
    lab = Lab({"a": "pqr", "b": "qr"}, Policy.FULL, kind, others="s", resilience="0")
    lab.hold(lambda _source, dest, group, carries: dest == "q" and group == "b" and carries)
    lab.send("r", "b", "cause")
    lab.send("r", "a", "news")
    lab.run(5)
    lab.join("s", "a")
    lab.run(300)
    assert lab.given["p"] == ["news"]
    assert lab.given["q"] == []
    assert (lab.views["p"], lab.views["q"]) == (2, 2), "q was not told of the second view of a"
    process = lab.at["p"]
    process.flush()
    process.settle(lab.now)
    lab.run(300)
    found = [not process.program.flushes]
    lab.release()
    lab.run(500)
    assert lab.given["q"] == ["cause", "news"]
    return [*found, not process.program.flushes]


def test_a_flush_waits_for_what_was_given_in_an_earlier_view() -> None:
    """Seed 720057 (conservative): nothing had been given in the view in which it was asked for."""
    assert _after_a_view() == [False, True]
    assert _after_a_view(mutants.FlushedForOneView) == [True, True]


def _after_leaving(kind: type[DomainProcess] = DomainProcess, *, leaves_first: bool) -> list[bool]:
    """p was given what q still waits to be given, and leaves; it flushes then, or while it leaves."""
    lab = Lab({"a": "pqr", "b": "qr"}, Policy.FULL, kind, resilience="0")
    lab.hold(lambda _source, dest, group, carries: dest == "q" and group == "b" and carries)
    lab.send("r", "b", "cause")
    lab.send("r", "a", "news")
    lab.run(5)
    assert lab.given["p"] == ["news"]
    process = lab.at["p"]
    process.ask_to_leave("a")
    if leaves_first:
        lab.look("p")
        lab.run(1000)
        assert not process.seats
    process.flush()
    process.settle(lab.now)
    lab.run(1000)
    assert lab.given["q"] == []
    found = [not process.program.flushes]
    lab.release()
    lab.run(500)
    assert lab.given["q"] == ["cause", "news"]
    return [*found, not process.program.flushes]


@pytest.mark.parametrize("leaves_first", [True, False])
def test_a_flush_waits_for_what_was_given_in_a_group_that_was_left(leaves_first: bool) -> None:
    """Seed 720010 (full): others in the group were given it only after the flush had returned."""
    assert _after_leaving(leaves_first=leaves_first) == [False, True]
    assert _after_leaving(mutants.FlushedWithoutWhoStays, leaves_first=leaves_first) == [True, True]


def test_a_flush_does_not_wait_for_a_group_that_is_gone() -> None:
    lab = Lab({"a": "pq"}, Policy.FULL)
    lab.send("q", "a", "news")
    lab.run(100)
    lab.leave("p", "a")
    lab.run(1000)
    lab.crash("q")
    process = lab.at["p"]
    process.flush()
    process.settle(lab.now)
    lab.run(10000)
    assert not process.program.flushes
