"""Messages for one member (1991, 7.2): what overtakes them, what ends the wait, and who is given them."""

import pytest
from tests.isis.lab import Lab

from semcast.core.events import Left
from semcast.core.ids import MemberId
from semcast.protocols.isis import Policy
from semcast.protocols.lightweight.events import ClientEvent, Undeliverable
from semcast.sim.isis_programs import DomainProcess
from semcast.sim.mutants import isis as mutants

FULL, CONSERVATIVE = Policy.FULL, Policy.CONSERVATIVE


def _multicast_follows(policy: Policy, kind: type[DomainProcess] = DomainProcess) -> Lab:
    """p tells q something alone, which is late, and then the group."""
    lab = Lab({"a": "pqr"}, policy, kind)
    lab.hold(lambda _source, dest, _group, carries: dest == "q" and carries)
    lab.tell("p", "q", "first")
    lab.run(1)
    lab.hold(lambda *_: False)
    lab.send("p", "a", "second")
    lab.run(5)
    return lab


@pytest.mark.parametrize("policy", [FULL, CONSERVATIVE])
def test_nothing_overtakes_a_direct_message(policy: Policy) -> None:
    lab = _multicast_follows(policy)
    assert lab.given["q"] == lab.given["r"] == []
    lab.release()
    lab.run(50)
    assert lab.given["q"] == ["first", "second"]
    assert lab.given["r"] == ["second"]
    assert _multicast_follows(policy, mutants.DirectOvertaken).given["q"] == ["second"]


def _cause_is_late(kind: type[DomainProcess]) -> list[str]:
    """q has not received what the direct message comes after, and hears of it in another group."""
    lab = Lab({"h": "pqr", "g": "pq"}, FULL, kind)
    lab.hold(lambda source, dest, group, carries: source == "r" and dest == "q" and group == "h" and carries)
    lab.send("r", "h", "cause")
    lab.run(10)
    lab.tell("p", "q", "direct")
    lab.send("p", "g", "effect")
    lab.run(5)
    assert lab.given["q"] == []
    lab.release()
    lab.run(100)
    return lab.given["q"]


def test_it_is_acknowledged_when_it_stands_in_the_line() -> None:
    assert _cause_is_late(DomainProcess) == ["cause", "direct", "effect"]
    assert _cause_is_late(mutants.DirectAcknowledgedOnReception) == ["cause", "effect", "direct"]


def _cause_is_lost(kind: type[DomainProcess]) -> list[str]:
    """Only p has what r sent; it tells q, and both crash."""
    lab = Lab({"h": "pqrst"}, FULL, kind)
    lab.hold(lambda source, dest, _group, carries: source == "r" and dest != "p" and carries)
    lab.send("r", "h", "cause")
    lab.run(1)
    lab.tell("p", "q", "direct")
    lab.run(1)
    lab.crash("p", "r")
    lab.release()
    lab.run(5000)
    assert {member.name for member in lab.members("q", "h")} == set("qst")
    return lab.given["q"]


def test_one_whose_causes_are_lost_goes_with_its_view() -> None:
    assert _cause_is_lost(DomainProcess) == []
    assert _cause_is_lost(mutants.DirectKeptWithoutCauses) == ["direct"]


def test_the_failure_of_the_addressee_ends_the_wait_and_is_told() -> None:
    lab = Lab({"a": "pqrs"}, CONSERVATIVE)
    process = lab.at["p"]
    told: list[ClientEvent] = []
    take = process.program.take

    def taken(most: int | None = None) -> list[ClientEvent]:
        events = take(most)
        told.extend(events)
        return events

    process.program.take = taken  # type: ignore[method-assign]
    lab.crash("q")
    lab.tell("p", "q", "lost")
    lab.send("p", "a", "next")
    lab.run(100)
    assert lab.given["r"] == []
    held = process.held_back()
    assert held is not None
    assert held.by == MemberId("q")
    lab.run(5000)
    assert lab.given["r"] == ["next"]
    assert [event.to for event in told if isinstance(event, Undeliverable)] == [MemberId("q")]
    lab.tell("p", "q", "nobody")
    assert [event.seq for event in told if isinstance(event, Undeliverable)] == [2, 4], "not in any group"


@pytest.mark.parametrize("policy", [FULL, CONSERVATIVE])
def test_who_has_left_is_given_what_was_sent_to_it_before(policy: Policy) -> None:
    lab = Lab({"a": "pqr"}, policy)
    lab.hold(lambda _source, dest, _group, carries: dest == "q" and carries)
    lab.tell("p", "q", "letter")
    lab.leave("q", "a")
    lab.send("p", "a", "next")
    lab.run(2000)
    assert "a" not in lab.at["q"].seats
    assert lab.given["r"] == [], "that it left does not end the wait"
    lab.release()
    lab.run(2000)
    assert lab.given["q"] == ["letter"]
    assert lab.given["r"] == ["next"]


def test_who_has_left_the_domain_does_not_hold_its_sender_up_for_ever() -> None:
    lab = Lab({"a": "pqr"}, CONSERVATIVE)
    lab.hold(lambda _source, dest, _group, carries: dest == "q" and carries)
    lab.tell("p", "q", "letter")
    lab.at["q"].leave(lab.now)
    lab.run(500)
    lab.crash("q")
    lab.send("p", "a", "next")
    lab.run(6000)
    assert lab.given["r"] == ["next"]


def test_a_large_one_travels_in_parts_also_to_oneself() -> None:
    lab = Lab({"a": "pq"}, CONSERVATIVE)
    lab.tell("p", "q", "large", b"x" * 100_000)
    lab.tell("p", "p", "own")
    lab.send("p", "a", "next")
    lab.run(500)
    assert lab.given == {"p": ["own", "next"], "q": ["large", "next"]}


def test_so_many_wait_for_a_program_as_its_credit_allows() -> None:
    lab = Lab({"a": "pq"}, CONSERVATIVE, credit=2)
    process = lab.at["q"]
    process._slow = True
    process._reads = True  # it is about to, and never does
    for number in range(5):
        lab.tell("p", "q", f"m{number}")
    lab.run(500)
    assert lab.given["q"] == ["m0", "m1"]
    process._slow = False
    process.settle(lab.now)
    lab.run(2000)
    assert lab.given["q"] == [f"m{number}" for number in range(5)]


def test_who_is_put_out_while_a_message_is_on_its_way_waits_for_nobody() -> None:
    """Its requests are gone, and whoever asked what held it back was told that there is no first one."""
    lab = Lab({"g": "pq"}, FULL)
    lab.hold(lambda _source, dest, _group, carries: dest == "q" and carries)
    lab.tell("p", "q", "alone")
    process = lab.at["p"]
    assert process.held_back() is not None
    process.put_out("g", Left("put out: failed", again=True))
    assert process.held_back() is None
