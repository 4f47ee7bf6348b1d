"""Calls, one rule at a time, and what breaks each."""

from random import Random

import pytest
from tests.calls.world import World, names

from semcast.core.events import Merged, Note, Rejoining
from semcast.core.ids import SECOND, MemberId
from semcast.history import Kind
from semcast.patterns.calls import ALL, ONE, Ask, CallLimits, Calls, CallsFullError, Say, encode, read
from semcast.sim.families.calls import CALLS
from semcast.sim.mutants import MUTANTS
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.swarm import examine, scenario_of
from semcast.specs.calls.kinds import MADE, RETURNED, SAID


def mutant(name: str) -> type[Calls]:
    return MUTANTS["calls"][name].calls


@pytest.mark.parametrize(
    ("replies", "enough"), [("first", "b"), ("majority", "ba"), ("all", "bac"), (2, "cb")]
)
def test_a_call_returns_with_as_many_replies_as_were_asked_for(replies: str | int, enough: str) -> None:
    world = World("abc")
    world.call("a", replies)  # type: ignore[arg-type]
    world.rest()
    for place, name in enumerate(enough):
        assert not world.done["a"]
        world.answer(name)
        world.rest()
        assert bool(world.done["a"]) is (place == len(enough) - 1)
    result = world.result("a")
    assert (result.outcome, names(result.replies)) == ("complete", enough)
    assert set(names(result.missing)) == set("abc") - set(enough)
    world.answer("abc")
    world.rest()
    assert world["a"].counts.late == 3 - len(enough)
    assert world.broken() == set()


def test_an_error_is_an_answer() -> None:
    world = World("ab")
    world.call("a")
    world.rest()
    world.answer("a", b"broken", error=True)
    world.answer("b")
    world.rest()
    result = world.result("a")
    assert result.complete
    assert result.errors == {MemberId("a"): "broken"}
    assert result.result == b"!"


def test_who_answers_no_calls_is_not_waited_for() -> None:
    world = World("abcd", serve="cd")
    world.call("a", "majority")
    world.rest()
    world.answer("c")
    world.rest()
    assert not world.done["a"], "two of the two who serve are a majority"
    world.answer("d")
    world.rest()
    result = world.result("a")
    assert (names(result.replies), sorted(names(result.abstained))) == ("cd", ["a", "b"])
    world.call("b")
    world.rest()
    world.answer("cd")
    world.rest()
    assert world.result("b").complete
    assert world.broken() == set()


def test_where_nobody_answers_calls_that_is_told() -> None:
    world = World("ab", serve="")
    world.call("a")
    world.rest()
    assert world.result("a").outcome == "too few"
    with pytest.raises(LookupError, match="no reply"):
        _ = world.result("a").result


def test_those_have_to_answer_who_are_there_when_the_request_is_delivered() -> None:
    """Correction 16 of the specification: not those who were there when the program called."""
    for kind, broken in ((Calls, set()), (mutant("expected-when-made"), {"call_complete"})):
        world = World("abc", kind)
        world.call("a", "majority")
        world.view("ab")
        world.rest("ab")
        world.answer("ab")
        world.rest("ab")
        assert world.broken() == broken
        if kind is Calls:
            assert world.result("a").complete
            assert world.result("a").departed == ()


def test_replies_that_come_before_the_request_count() -> None:
    for kind, broken in ((Calls, set()), (mutant("early-replies-dropped"), {"call_complete"})):
        world = World("ab", kind)
        world.call("a", timeout=SECOND)
        payload = world["a"].outgoing.popleft()
        world.deliver(MemberId("a"), payload, to="b")
        world.answer("b")
        world.carry("b")
        world.deliver(MemberId("a"), payload, to="a")
        world.answer("a")
        world.rest()
        world.expire(2 * SECOND)
        assert world.broken() == broken
        assert world.result("a").complete is (kind is Calls)


def test_members_answer_in_later_views() -> None:
    for kind, broken in ((Calls, set()), (mutant("answers-only-in-its-view"), {"call_complete"})):
        world = World("abc", kind)
        world.call("a")
        world.rest()
        world.view("ab")
        world.answer("ab")
        world.rest("ab")
        assert world.broken() == broken
        if kind is Calls:
            assert (names(world.result("a").departed), names(world.result("a").replies)) == ("c", "ab")


def test_a_majority_is_one_of_those_who_were_asked() -> None:
    """Correction 16: also of those who departed; and where that cannot come the call returns at once."""
    for kind, broken in ((Calls, set()), (mutant("majority-of-those-left"), {"call_complete"})):
        world = World("abcd", kind)
        world.call("a", "majority")
        world.rest()
        world.answer("a")
        world.rest()
        world.view("a")
        result = world.result("a")
        assert result.outcome == ("too few" if kind is Calls else "complete")
        assert world.broken() == broken


def test_what_cannot_come_is_not_waited_for() -> None:
    world = World("abcd", mutant("waits-for-the-impossible"))
    world.call("a", "majority")
    world.rest()
    world.view("a")
    assert world.broken() == {"call_complete"}


def test_what_somebody_says_after_it_departed_does_not_count() -> None:
    for kind, broken in ((Calls, set()), (mutant("replies-of-departed-counted"), {"call_replies"})):
        world = World("abc", kind)
        world.call("a", timeout=SECOND)
        world.rest()
        world.answer("b")
        late = list(world["b"].outgoing)
        world["b"].outgoing.clear()
        world.part("ac")
        world.view("abc", among="ac")
        world.answer("a")
        world.carry("a", "ac")
        for payload in late:
            world.deliver(MemberId("b"), payload, to="ac")
        world.answer("c")
        world.carry("c", "ac")
        assert world.broken(quiesced=False) >= broken
        assert bool(broken) is bool(world.broken(quiesced=False))
        if kind is Calls:
            assert world["a"].counts.strangers == 1
            assert names(world.result("a").departed) == "b"


def test_who_was_elsewhere_in_between_departed() -> None:
    """It is in the next view, but did not come along: it may have dropped the request."""
    world = World("ab")
    world.call("a")
    world.rest()
    world.answer("a")
    world.rest()
    world.part("a")
    world.view("ab", among="a")
    assert names(world.result("a").departed) == "b"
    world = World("ab")
    world.call("a")
    world.rest()
    world["a"].on_delivery(0, Merged(3))
    world.view("ab")
    world.answer("a")
    world.carry("a")
    assert names(world.result("a").departed) == "b"


# One of them


def test_a_request_for_one_is_the_same_members_for_all() -> None:
    world = World("abc")
    had = []
    for _ in range(6):
        world.call("a", "first", ONE)
        world.rest()
        (who,) = [name for name in "abc" if world.runs[name]]
        had.append(who)
        world.answer(who)
        world.rest()
        assert names(world.result("a").replies) == who
    assert sorted(had) == list("aabbcc")
    assert world.broken() == set()


def test_a_request_for_one_is_chosen_by_its_place_in_the_order() -> None:
    world = World("abc")
    for place in range(6):
        batch = encode(Ask(place + 1, ONE, 0, b""))
        world.seq += 1
        for machine in world.machines.values():
            machine.on_envelope(0, MemberId("c"), read(batch), 7 + place)
        world.settle()
    assert [len(world.runs[name]) for name in "abc"] == [2, 2, 2]
    assert world.runs["b"][0].number == 1


def test_the_next_one_takes_over() -> None:
    for kind, broken in ((Calls, set()), (mutant("nobody-takes-over"), {"call_complete"})):
        world = World("abc", kind)
        world.call("a", "first", ONE)
        world.rest()
        (first,) = [name for name in "abc" if world.runs[name]]
        if first == "a":  # the caller itself: ask again
            world.answer("a")
            world.rest()
            world.call("a", "first", ONE)
            world.rest()
            (first,) = [name for name in "abc" if world.runs[name]]
        left = "abc".replace(first, "")
        world.view(left)
        if kind is Calls:
            (then,) = [name for name in left if world.runs[name]]
            assert [member.name for member in world.runs[then][0].former] == [first]
            world.answer(then)
            world.rest(left)
            result = world.result("a")
            assert (names(result.replies), names(result.departed)) == (then, first)
            assert world[then].counts.taken_over == 1
        assert world.broken() == broken


def test_the_next_one_has_it_where_one_answers_no_calls() -> None:
    world = World("abc", serve="c")
    for _ in range(3):
        world.call("a", "first", ONE)
        world.rest()
        assert [len(world.runs[name]) for name in "abc"] == [0, 0, 1]
        world.answer("c")
        world.rest()
        assert world.result("a").complete
    assert world.broken() == set()
    world = World("abc", serve="")
    world.call("a", "first", ONE)
    world.rest()
    assert world.result("a").outcome == "too few"


def test_sides_of_a_partition_each_have_one() -> None:
    """The caller's side goes on; on the other the request is forgotten with the caller."""
    world = World("abcd")
    for _ in range(4):
        world.call("a", "first", ONE)
    world.rest()
    world.part("ab")
    world.part("cd")
    world.view("ab")
    world.view("cd")
    assert len(world.runs["a"]) + len(world.runs["b"]) == 4
    assert [len(world[name]._duties) for name in "abcd"] == [4, 4, 0, 0]
    world.answer("ab")
    world.rest("ab")
    assert [done.answer.outcome for done in world.done["a"] if done.answer] == ["complete"] * 4
    world.answer("cd")
    assert not world["c"].outgoing
    assert not world["d"].outgoing
    assert world.broken() == set()


# Time, bounds, strangers


def test_who_is_missing_is_told_when_the_time_is_over() -> None:
    world = World("abc")
    world.call("a", timeout=SECOND)
    world.rest()
    world.answer("b")
    world.rest()
    assert world["a"].next_at() == SECOND
    world.expire(SECOND - 1)
    assert not world.done["a"]
    world.expire(SECOND)
    result = world.result("a")
    assert (result.outcome, names(result.replies), names(result.missing)) == ("timeout", "b", "ac")
    assert sorted(key[1] for key in world.forgotten) == [1, 1], "nobody waits for the others"
    world.answer("ac")
    assert world["a"].counts.orphaned == world["c"].counts.orphaned == 1
    assert world["a"].next_at() is None
    assert world.broken() == set()


def test_a_request_that_is_not_delivered_in_time_may_be_yet() -> None:
    world = World("ab")
    world.call("a", timeout=SECOND)
    world.expire(SECOND)
    assert world.result("a").view is None
    world.rest()
    assert len(world.runs["b"]) == 1
    world.answer("ab")
    world.rest()
    assert world["a"].counts.late == 2
    assert world.broken() == set()


def test_everything_has_a_bound() -> None:
    world = World("ab", limits=CallLimits(calls=3, requests=2, body=10, unsent=4, early=2))
    for _ in range(3):
        world.call("a")
    with pytest.raises(CallsFullError, match="3 calls wait"):
        world.call("a")
    world.rest()
    assert world["b"].counts.refused == 1
    assert [len(world.runs[name]) for name in "ab"] == [2, 2]
    world.answer("b", bytes(11))
    world.rest()
    assert world["b"].counts.failed == 2
    with pytest.raises(ValueError, match="request of 11 bytes: at most 10"):
        world["a"].call(0, bytes(11))
    for number in range(100, 110):
        world.deliver(MemberId("a"), encode(Ask(number, ALL, 0, b"")), to="b")
    assert len(world["b"].outgoing) <= 4
    assert world["b"].counts.dropped > 0
    for number in range(200, 210):
        world.deliver(MemberId("a"), encode(Say(MemberId("b"), number, 2, b"")), to="b")
    assert len(world["b"]._duties._early) == 2


@pytest.mark.parametrize("replies", [0, -1, True, "some", 1.5, None])
def test_numbers_of_replies_that_make_no_sense(replies: object) -> None:
    with pytest.raises(ValueError, match="replies="):
        World("a").call("a", replies)  # type: ignore[arg-type]


def test_what_strangers_and_liars_say_is_dropped_and_counted() -> None:
    world = World("ab")
    world.call("a")
    world.rest()
    a = world["a"]
    world.deliver(MemberId("x"), encode(Say(MemberId("a"), 1, 0, b"!")))
    assert a.counts.strangers == 1
    world.deliver(MemberId("b"), encode(Say(MemberId("a"), 1, 0, b"!")))
    world.deliver(MemberId("b"), encode(Say(MemberId("a"), 1, 0, b"?")))
    assert a.counts.duplicates == 1
    world.deliver(MemberId("b"), encode(Say(MemberId("a"), 99, 0, b"!")))
    assert a.counts.late == 1
    world.deliver(MemberId("a"), encode(Ask(1, ALL, 0, b"again")), to="b")
    assert world["b"].counts.duplicates == 1
    rng = Random(1)
    for _ in range(500):
        world.deliver(MemberId("b"), rng.randbytes(rng.randrange(30)))
    assert a.counts.malformed > 400
    world.answer("a")
    world.rest()
    assert world.result("a").replies[MemberId("b")] == b"!"


def test_who_was_put_out_knows_nothing_of_its_calls() -> None:
    world = World("ab")
    world.call("a")
    world.call("b")
    world.rest()
    world["a"].on_delivery(0, Rejoining(MemberId("a"), MemberId("a", 1), "it lagged"))
    world.settle()
    assert world.done["a"][0].answer is None
    assert "put out of the group" in world.done["a"][0].cause
    world.answer("a")
    assert not world["a"].outgoing, "the former one was asked"
    assert world["a"].me == MemberId("a", 1)


def test_a_caller_that_is_gone_is_not_answered() -> None:
    world = World("abc")
    world.call("a")
    world.rest()
    world.view("bc")
    world.answer("bc")
    assert not world["b"].outgoing
    assert world["b"].counts.orphaned == 1


def test_a_program_may_stop_waiting() -> None:
    world = World("ab")
    number = world.call("a")
    world["a"].abandon(number)
    world.rest()
    world.answer("ab")
    world.rest()
    assert not world.done["a"]
    assert world["a"].under_way() == (0, 0)
    assert world["a"].counts.abandoned == 1


# Checkers


def test_a_reply_to_nothing_breaks_call_replies() -> None:
    world = World("ab")
    world.rows.append((MemberId("b"), Note("call-said", MemberId("a"), 7, 1, level="reply")))
    assert world.broken() == {"call_replies"}


def test_two_who_have_a_request_for_one_break_call_one() -> None:
    world = World("ab", mutant("chosen-by-each"))
    world.call("a", "first", ONE)
    world.rest()
    assert world.broken(quiesced=False) == {"call_one"}


def test_a_departure_that_was_none_breaks_call_complete() -> None:
    world = World("ab")
    world.call("a")
    world.rest()
    world.answer("ab")
    world.settle()
    world.rows.append((MemberId("a"), Note("call-departed", seq=1, count=1, members=(MemberId("b"),))))
    world.rest()
    assert "call_complete" in world.broken(quiesced=False)


def test_the_swarm_finds_nothing_and_sees_everything() -> None:
    """Longer ones by hand: `semcast sim swarm --stack calls --seeds 0..1000`."""
    outcomes: set[str | None] = set()
    said: set[str | None] = set()
    for seed in range(15):
        finding = examine(scenario_of("calls", seed))
        assert finding.clean, f"seed {seed}: {finding.broken}"
        for event in finding.outcome.history.events:
            if event.kind is RETURNED:
                outcomes.add(event.level)
            elif event.kind is SAID:
                said.add(event.level)
    assert outcomes == {"complete", "too few", "timeout", "left"}
    assert said == {"reply", "error", "abstains"}


def test_who_is_left_of_a_group_that_was_founded_anew_has_an_answer_to_every_call() -> None:
    """Seed 6484: a majority left or crashed and forgot, and founded the group again, while p1 was cut off.

    It waits for a majority of its view, which is no more (docs/protocols/vsync.md, "Without a disk"); its
    calls return.
    """
    finding = examine(scenario_of("calls", 6484))
    assert finding.clean, finding.broken
    events = finding.outcome.history.events
    rows = [event for event in events if event.process == MemberId("p1", 1)]
    assert sum(event.kind is MADE for event in rows) == sum(event.kind is RETURNED for event in rows) > 0
    firsts = {event.members for event in events if event.kind is Kind.VIEW and event.view == 1}
    assert len(firsts) == 2


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_a_group_that_was_founded_once_is_not_excused(seed: int) -> None:
    """The first has a ring, the others virtual synchrony."""
    assert not CALLS.excused(examine(scenario_of("calls", seed)).outcome.history)


def test_the_workload_of_a_run_is_made_of_calls() -> None:
    """`semcast sim run --stack calls`."""
    traffic = (Traffic(0, content="plain", arrivals="constant", rate=500.0, count=50),)
    finding = examine(Scenario(seed=1, stack="calls", size=3, traffic=traffic, duration=SECOND))
    assert finding.clean, finding.broken
    levels = [event.level for event in finding.outcome.history.events if event.kind is RETURNED]
    assert levels == ["complete"] * 50
