"""The swarm in short: clean for the real protocols, and every mutant caught by name.

Longer swarms are run by hand: `semcast sim swarm --stack s-rm --seeds 0..2000`.
"""

import msgspec
import pytest

from semcast.history import Kind
from semcast.sim import swarm
from semcast.sim.mutants import MUTANTS, swarmed
from semcast.sim.swarm import examine, first_catch, hunt, patrol, scenario_of

# Seeds that once failed, and why.
REGRESSIONS = {
    ("s-rm", 312): "loss came back after the network had healed",
    ("s-srm", 26): "a sender whose own delivery queue was full was never told that there is room",
    ("s-srm", 37): "programs that read where they send waited for each other for ever",
    ("s-srm", 108): "later messages filled the room of the next one, which was refused for ever",
    ("vsync", 5023): "a program that waits in send was in the way of everybody, and nobody delivered to it",
    ("vsync", 7039): "the same, and a newcomer waited for the state of that program",
    ("vsync", 150): "members answered a decision with a decision, for ever, and talked the wire full",
    ("vsync", 14): "what was purged in a view that waits for the program was recorded nowhere",
    ("vsync", 56): "who does not read forgot the end of a view when the state was lost",
    ("vsync", 99): "the same, in a view of others who join",
    ("vsync", 141): "a program that never reads, and has no state, was compared with those who have one",
    ("vsync", 180): "two total crashes: what was agreed on between them named nobody who lived, for ever",
    ("vsync", 129): "the same, where all crashed while they founded the group",
    ("vsync", 314): "a program that reads too seldom was put out by policy, and healing was awaited in vain",
    ("vsync", 316): "a founder that slept was left out of the view that it had promised to found",
    ("vsync", 184): "who got the state of the next view instead was said to lack what was confirmed before",
    ("vsync", 326): "all but one had left the view, and that one had crashed: who comes back waits rightly",
    ("vsync", 434): "a first member that had fallen silent made all others put themselves out at once",
    ("vsync", 573): "a program gave up waiting for an answer, read all there was, and never sent again",
    ("vsync", 423): "messages were drawn that are larger than the buffers",
    ("vsync", 840): "the first of two left while it did not hear the other, which waited for it for ever",
    ("vsync", 885): "the last member left, and who came back just then was expected to go on",
    (
        "vsync",
        915,
    ): "a founder left before it was in the view, and another crashed: the third waits rightly",
    ("vsync", 948): "notes of a sender that others had replaced left an empty state at some members only",
    ("vsync", 269): "a program that waits for an answer in a view without a quorum was said to owe a message",
    ("vsync", 751069): "an answer was received without what it answers, and outlived that and who knew it",
    ("s-rm", 125): "a program that never read, and never filled its queue, owed what waited for it",
    ("ring", 241): "a program that gave up on a confirmation, and read since, never sent again",
    ("s-rm", 77): "who reads and waits in one task takes its own messages into the reserve",
    ("s-rm", 144): "a run of large messages was taken whole where bytes had room for one",
    ("ring", 891): "what was sent when a program began to be skipped was delivered before it was sent",
    ("source", 715046): "who was refused left a session behind at a logger that had been slow, for days",
    ("source", 716222): "a session was on disk, and recorded as that only once it had come a second time",
    ("sessions", 717078): "a session began after what its own program had sent meanwhile, and not read",
    ("rpbcast", 161218): "a stream was never closed: a session had let go of what it had said that it holds",
    ("rpbcast", 760030): "loggers far apart said each session to each other for ever, and admitted nobody",
}


# Where mutants were caught last, if not among the first seeds: looked at before all others.
CAUGHT_AT = {
    ("isis", "flushed-when-sent"): 19,
    ("isis", "other-groups-ignored"): 12,
    ("isis", "newest-ready-first"): 0,
    ("isis", "put-out-of-one-group-only"): 2,
    ("rpbcast", "compacts-in-part"): 5,
    ("rpbcast", "positions-given-anew"): 4,
    ("rpbcast", "expires-newest-first"): 30,
    ("rpbcast", "start-ignored"): 98,
    ("rpbcast", "begins-with-what-was-collected"): 447,
    ("rpbcast", "filter-too-narrow"): 19,
    ("gateway", "last-keys-forgotten"): 846,
    ("rpbcast", "gc-note-as-printed"): 1,
    ("rpbcast", "ack-from-gossip-phase"): 2,
    ("rpbcast", "joiner-from-zero"): 15,
    ("rpbcast", "silent-expiry"): 27,
    ("rpbcast", "slow-member-blocks"): 1,
    ("rpbcast", "forgets-unlogged"): 78,
    ("rpbcast", "at-most-once-from-logger"): 25,
    ("rpbcast", "logged-before-synced"): 7,
    ("rpbcast", "confirm-before-synced"): 8,
    ("rpbcast", "disconnected-forgotten"): 2,
    ("rpbcast", "compact-before-logged"): 5,
    ("rpbcast", "compact-across-operation"): 7,
    ("rpbcast", "receipt-lost-with-segment"): 5,
    ("rpbcast", "recollected-message-readded"): 8,
    ("rpbcast", "no-holes"): 28,
    ("rpbcast", "one-speaks-for-all"): 1,
    ("rpbcast", "asks-nobody"): 75,
    ("rpbcast", "closed-sender-goes-on"): 74,
    ("rpbcast", "confirm-before-replicated"): 8,
    ("rpbcast", "collects-own-sessions-only"): 8,
    ("rpbcast", "counts-one-logger-twice"): 13,
    ("rpbcast", "hearsay-keeps-alive"): 17,
    ("pbcast", "silent-expiry"): 1,
    ("pbcast", "sponsor-while-pending"): 3,
    ("rpbcast", "sponsor-while-pending"): 7,
    ("rpbcast", "published-on-one-disk"): 13,
    ("rpbcast", "expired-counts-as-replaced"): 31,
    ("rpbcast", "dead-sessions-of-others"): 430,
    ("rpbcast", "forgotten-awaited"): 9,
    ("rpbcast", "forgotten-comes-back"): 65,
    ("replication", "estranged-takes-part"): 13,
    ("replication", "rolled-back-votes"): 38,
    ("replication", "red-before-green-in-exchange"): 12,
    ("replication", "state-before-sync"): 4,
    ("replication", "index-reused-after-crash"): 5,
    ("vsync", "skipped-before-causes"): 25,
    ("vsync", "never-raises"): 11,
    ("vsync", "non-readers-awaited"): 5,
    ("ring", "discarded-before-a-hole"): 56,
    ("ring", "purge-across-configurations"): 15,
    ("ring", "purge-without-replacement"): 16,
    ("ring", "unseen-views"): 13,
    ("ring", "never-raises"): 43,
    ("ring", "non-readers-awaited"): 84,
    ("ring", "waiting-untold"): 13,
    ("s-rm", "purge-without-safety"): 187,
    ("s-rm", "purge-announced-early"): 23,
    ("s-rm", "safety-with-f-votes"): 23,
    ("s-rm", "confirmed-safe-at-once"): 24,
    ("s-rm", "figure-3.8-as-printed"): 12,
    ("vsync", "purge-across-views"): 25,
    ("vsync", "stamp-lost-with-purged"): 12,
    ("vsync", "clock-not-reset"): 12,
    ("vsync", "delivered-before-safe"): 40,
    ("vsync", "safe-with-f-votes"): 124,
    ("vsync", "confirmed-safe-at-once"): 261,
    ("ring", "confirmed-when-sent"): 4,
    ("ring", "delivered-after-a-hole"): 4,
    ("replication", "reds-in-arrival-order"): 3,
    ("ring", "no-transitional-configuration"): 4,
    ("vsync", "decision-without-majority"): 3,
    ("vsync", "old-holder-obeyed"): 3,
    ("vsync", "joiner-without-state"): 3,
    ("vsync", "founded-beside-a-view"): 4,
    ("vsync", "vector-too-small"): 7,
    ("replication", "agreed-instead-of-safe"): 60,
    ("replication", "half-is-enough"): 8,
    ("replication", "reds-by-id"): 4,
    ("s-rm", "safety-counts-received"): 189,
    ("lightweight", "operations-untagged"): 488,
    ("lightweight", "census-without-flush"): 28,
    ("lightweight", "placed-when-ordered"): 40,
    ("lightweight", "mute-never-gone"): 11,
    ("lightweight", "flushed-before-the-last-send"): 5,
    ("lightweight", "resumed-without-the-rest"): 24,
    ("calls", "replies-to-others-counted"): 1,
    ("calls", "transitional-ignored"): 62,
    ("calls", "nobody-takes-over"): 27,
    ("calls", "replies-overtake"): 4,
    ("gateway", "half-a-batch"): 2,
    ("gateway", "keys-forgotten"): 10,
    ("gateway", "key-beside-the-batch"): 10,
    ("gateway", "stages-forgotten"): 8,
    ("gateway", "keys-trimmed"): 45,
    ("sessions", "acknowledged-before-synced"): 15,
    ("sessions", "ends-with-its-program"): 13,
    ("source", "trims-what-was-read"): 1,
    ("source", "other-log-read"): 6,
    ("source", "read-before-synced"): 5,
    ("source", "trimmed-untold"): 3,
    ("source", "trimmed-passed-over"): 3,
    ("source", "replans-what-is-repeated"): 4,
    ("source", "done-before-handed-on"): 4,
}


# Thirty seeds of each stack, without the three of virtual synchrony that take as long as its other thirty.
SWARMS = [(stack, first) for stack in ("s-rm", "s-srm", "reliable", "ring") for first in (0, 10, 20)]
SWARMS += [("vsync", first) for first in (0, 13, 26)]


@pytest.mark.parametrize(("stack", "first"), SWARMS)
def test_the_swarm_finds_nothing(stack: str, first: int) -> None:
    for report in patrol(stack, range(first, first + 10)):
        assert not report.broken, f"seed {report.seed}: {report.scenario}"


@pytest.mark.parametrize(("stack", "seed"), REGRESSIONS)
def test_seeds_that_once_failed(stack: str, seed: int) -> None:
    finding = examine(scenario_of(stack, seed))
    assert finding.clean, finding.broken


@pytest.mark.parametrize("seed", [202, 206, 213])
@pytest.mark.parametrize("stack", ["s-rm", "vsync"])
def test_programs_wait_for_what_they_asked(stack: str, seed: int) -> None:
    scenario = scenario_of(stack, seed)
    assert scenario.bursts is not None
    for single in (False, True):
        bursts = msgspec.structs.replace(scenario.bursts, confirms=1, single=single, waits=True)
        finding = examine(msgspec.structs.replace(scenario, bursts=bursts))
        assert finding.clean, finding.broken
        assert any(event.kind is Kind.CONFIRMED for event in finding.outcome.history.events)


def test_messages_replace_those_of_others() -> None:
    """Seed 288: in total order, notes name positions of anybody's messages."""
    finding = examine(scenario_of("vsync", 288))
    assert finding.clean, finding.broken
    purges = [event for event in finding.outcome.history.events if event.kind is Kind.PURGE]
    assert any(event.by is not None and event.by.sender != event.sender for event in purges)


@pytest.mark.parametrize(
    ("stack", "mutant"), [(stack, mutant) for stack in MUTANTS for mutant in swarmed(stack)]
)
def test_every_mutant_is_caught(stack: str, mutant: str) -> None:
    seed = CAUGHT_AT.get((stack, mutant), 0)
    found = first_catch(mutant, stack, range(seed, seed + 1)) or first_catch(mutant, stack, range(100))
    assert found is not None


def test_several_processes_give_the_same_reports() -> None:
    assert list(patrol("s-rm", range(6), jobs=2)) == list(patrol("s-rm", range(6)))
    [(name, report)] = hunt("s-rm", range(3), ["out-of-order"], jobs=2)
    assert name == "out-of-order"
    assert report is not None


def test_a_mutant_that_takes_far_more_steps_is_caught_as_endless() -> None:
    real = swarm.report(0, "s-rm", None)
    assert real.steps > 0
    assert not real.broken
    endless = swarm.report(0, "s-rm", "out-of-order", most=real.steps // 2)
    assert len(endless.broken) == 1
    assert endless.broken[0].startswith(f"does not end: {real.steps // 2} steps")
    found = first_catch("out-of-order", "s-rm", range(3), steps={0: real.steps})
    assert found is not None
