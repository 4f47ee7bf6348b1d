"""Contacts that are clients themselves: nobody waits in a circle for what they are to multicast."""

import pytest
from tests.isis.lab import Lab

from semcast.protocols.isis import Policy
from semcast.sim.isis_programs import DomainProcess
from semcast.sim.isis_scenario import IsisVariant
from semcast.sim.mutants import isis_clients as mutants
from semcast.sim.swarm import examine, scenario_of
from semcast.specs import check

POLICIES = pytest.mark.parametrize("policy", list(Policy))
STYLES = {"g": "client-server", "h": "client-server"}


def _broken(lab: Lab) -> set[str]:
    return {verdict.property for verdict in check(lab.history()) if verdict.count}


def _contact(lab: Lab, letter: str, group: str) -> str:
    contact = lab.at[letter].clientele.visits[group].contact
    assert contact is not None
    return contact.name


def _clients_of_each_other(policy: Policy, kind: type[DomainProcess] = DomainProcess) -> Lab:
    """a serves g and is a client of b, and b serves h and is a client of a; both send at the same time."""
    lab = Lab({"g": "a", "h": "b"}, policy, kind, styles=STYLES)
    lab.visit("a", "h")
    lab.visit("b", "g")
    lab.run(300)
    lab.hold(lambda *_: True)
    lab.send("a", "h", "one")
    lab.send("b", "g", "two")
    lab.release()
    lab.run(1000)
    return lab


@POLICIES
def test_two_that_are_clients_of_each_other_send(policy: Policy) -> None:
    lab = _clients_of_each_other(policy)
    assert lab.given == {"a": ["two"], "b": ["one"]}
    assert not _broken(lab)


def test_else_each_waits_for_what_the_other_is_to_multicast() -> None:
    lab = _clients_of_each_other(Policy.FULL, mutants.RelaysWaitForContacts)
    assert lab.given == {"a": [], "b": []}


def _contacts_wait_for_credit(policy: Policy, kind: type[DomainProcess] = DomainProcess) -> Lab:
    """a is in g with b, and a client of d; c is in h with d, and a client of b.

    a and c wait for what they have sent as clients to be with all. What b is to multicast for c waits for the
    program of a to take something, and what d is to multicast for a for that of c.
    """
    groups = {"g": "ab", "h": "cd", "k": "a", "m": "c"}
    lab = Lab(groups, policy, kind, others="xy", styles=STYLES, credit=1)
    for client, group in (("x", "g"), ("y", "h"), ("a", "h"), ("c", "g")):
        lab.visit(client, group)
        lab.run(300)
    assert (_contact(lab, "a", "h"), _contact(lab, "c", "g")) == ("d", "b")
    lab.hold(lambda source, dest, _group, carries: carries and source + dest in ("ad", "cb"))
    lab.send("a", "h", "one")
    lab.send("a", "k", "behind one")
    lab.send("c", "g", "two")
    lab.send("c", "m", "behind two")
    lab.send("b", "g", "before two")
    lab.send("d", "h", "before one")
    lab.run(100)
    lab.release()
    lab.run(2000)
    return lab


@POLICIES
def test_who_waits_for_its_contact_takes_what_that_may_wait_for(policy: Policy) -> None:
    lab = _contacts_wait_for_credit(policy)
    assert sorted(lab.given["a"]) == ["before two", "behind one", "two"]
    assert sorted(lab.given["c"]) == ["before one", "behind two", "one"]
    assert lab.given["b"] == ["before two", "two"]
    assert lab.given["d"] == ["before one", "one"]
    assert not _broken(lab)


def test_else_programs_wait_for_each_other_by_way_of_credit() -> None:
    lab = _contacts_wait_for_credit(Policy.FULL, mutants.PausedForContacts)
    assert lab.given["a"] == lab.given["c"] == []


def test_contacts_do_not_wait_for_their_clients() -> None:
    """Seed 600157: a client waited for its contact, that for its own, and this for the first to read."""
    finding = examine(scenario_of("isis", 600157, IsisVariant(policy=Policy.BLOCKS, clients=True)))
    assert finding.clean, finding.broken
