"""One order over groups (1991, 6.2): what it waits for, and what becomes of it when views end."""

import pytest
from tests.isis.lab import Lab

from semcast.protocols.isis import Policy
from semcast.protocols.isis.total import Says, Totals, may_precede, written
from semcast.sim.isis_programs import DomainProcess
from semcast.sim.mutants import isis as mutants

FULL, CONSERVATIVE = Policy.FULL, Policy.CONSERVATIVE


def _two_orders(policy: Policy, kind: type[DomainProcess] = DomainProcess) -> tuple[list[str], list[str]]:
    """x in a and y in b are sent at once, each by who gives the numbers; p hears of x first, q of y."""
    lab = Lab({"a": "kpq", "b": "mpq"}, policy, kind)
    for sender, group in ("ka", "mb"):  # so that all have said how far they have come
        lab.send(sender, group, "before", ordered=True)
        lab.run(100)
    for given in lab.given.values():
        given.clear()
    lab.hold(lambda source, dest, _group, _carries: source + dest in ("kq", "mp"))
    lab.send("k", "a", "x", ordered=True)
    lab.send("m", "b", "y", ordered=True)
    lab.run(5)
    lab.release()
    lab.run(500)
    return lab.given["p"], lab.given["q"]


@pytest.mark.parametrize("policy", list(Policy))
def test_who_is_in_two_groups_is_given_their_ordered_messages_in_one_order(policy: Policy) -> None:
    one, other = _two_orders(policy)
    assert one == other
    assert sorted(one) == ["x", "y"]
    assert _two_orders(policy, mutants.OrderWithoutAdvance) == (["x", "y"], ["y", "x"])


def _follows_in_another_group(kind: type[DomainProcess]) -> list[str]:
    """p does not hear which number its message has, though others do."""
    lab = Lab({"a": "kpq", "b": "pq"}, FULL, kind)
    lab.hold(lambda source, dest, _group, _carries: source + dest == "kp")
    lab.send("p", "a", "first", ordered=True)
    lab.send("p", "b", "second")
    lab.run(5)
    found = list(lab.given["q"])
    lab.release()
    lab.run(200)
    assert lab.given["q"] == ["first", "second"]
    return found


def test_who_sent_an_ordered_message_waits_for_it_before_it_sends_elsewhere() -> None:
    assert "second" not in _follows_in_another_group(DomainProcess)
    assert _follows_in_another_group(mutants.OrderOvertakenByItsSender) == ["first", "second"]


def _number_that_travels(kind: type[DomainProcess]) -> list[str]:
    """y in b, then word of it in c, then x in a: only q is in a and b, and k hears nothing of it."""
    lab = Lab({"a": "kqr", "b": "mpq", "c": "pr"}, CONSERVATIVE, kind)
    for sender, group in ("ka", "mb"):  # so that all have said how far they have come
        lab.send(sender, group, "before", ordered=True)
        lab.run(100)
    lab.given["q"].clear()
    lab.hold(lambda source, dest, _group, _carries: source + dest == "qk")
    for name in ("w", "y"):
        lab.send("m", "b", name, ordered=True)
    lab.run(20)
    assert lab.given["p"][-1] == "y"
    lab.send("p", "c", "word")
    lab.run(20)
    assert lab.given["r"][-1] == "word"
    lab.send("r", "a", "x", ordered=True)
    lab.run(20)
    lab.release()
    lab.run(300)
    return lab.given["q"]


def test_a_number_is_above_those_of_other_groups_that_its_sender_heard_of() -> None:
    assert _number_that_travels(DomainProcess) == ["w", "y", "x"]
    found = _number_that_travels(mutants.NumbersWithoutLamport)
    assert found.index("x") < found.index("y"), "an effect before its cause"


@pytest.mark.parametrize("policy", [FULL, CONSERVATIVE])
def test_the_holder_fails_and_what_has_no_number_gets_one(policy: Policy) -> None:
    lab = Lab({"a": "pqrs", "b": "qr"}, policy)
    assert lab.members("q", "a")[0].name == "p", "who gives the numbers"
    lab.hold(lambda source, _dest, group, _carries: source == "p" and group == "a")
    for number, letter in enumerate("qrs"):
        lab.send(letter, "a", f"m{number}", ordered=True)
    lab.run(5)
    assert lab.given["q"] == []
    lab.crash("p")
    lab.release()
    lab.run(5000)
    assert sorted(lab.given["q"]) == ["m0", "m1", "m2"]
    assert lab.given["q"] == lab.given["r"] == lab.given["s"]
    lab.send("q", "a", "next", ordered=True)
    lab.send("r", "b", "other", ordered=True)
    lab.run(200)
    assert lab.given["q"][3:] == lab.given["r"][3:]
    assert sorted(lab.given["q"][3:]) == ["next", "other"]


def test_who_joins_begins_behind_what_was_numbered_before() -> None:
    """q has come far in b; then it joins a, whose numbers are low."""
    lab = Lab({"a": "pr", "b": "qr"}, FULL)
    for number in range(5):
        lab.send("q", "b", f"b{number}", ordered=True)
        lab.run(20)
    lab.join("q", "a")
    lab.run(1000)
    lab.send("p", "a", "low", ordered=True)
    lab.send("r", "b", "high", ordered=True)
    lab.run(500)
    assert lab.at["p"].totals.lamport > 5
    assert lab.given["q"][-2:] == lab.given["r"][-2:]


def test_causal_and_ordered_messages_of_one_sender_stay_in_order() -> None:
    lab = Lab({"a": "pqr"}, CONSERVATIVE)
    for number in range(6):
        lab.send("q", "a", f"m{number}", ordered=bool(number % 2))
    lab.run(500)
    assert lab.given["r"] == [f"m{number}" for number in range(6)]


def test_what_a_peer_cannot_have_said_is_not_sound() -> None:
    lab = Lab({"a": "pq"}, FULL)
    stream = lab.at["q"].seats["a"].member.stream
    assert stream is not None
    order = lab.at["q"].seats["a"].order(stream)
    assert order.sound(written(Says(3, [(1, 1, 3)])))
    assert not order.sound(written(Says(3, [(2, 1, 3)]))), "no such member"
    assert not order.sound(written(Says(3, [(1, 1, 4)]))), "above what it says itself"
    assert not order.sound(b"\xc1\x00")


def test_numbers_say_what_cannot_be_a_cause() -> None:
    class Waiting:
        def __init__(self, turn: int, lamport: int, *, ordered: bool) -> None:
            self.turn, self.lamport, self.ordered = turn, lamport, ordered

    plain, third = Waiting(0, 2, ordered=False), Waiting(3, 1, ordered=True)
    assert may_precede(plain, third)
    assert not may_precede(third, plain)
    assert may_precede(Waiting(0, 0, ordered=True), plain), "its number is not known"
    assert Totals({}).next_number == 0
