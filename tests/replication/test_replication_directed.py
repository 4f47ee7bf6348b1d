"""Schedules that chance does not meet: each is broken without one rule, and fine with it.

The rules and most schedules are those of the corrections to the algorithm (docs/protocols/replication.md).
"""

from collections.abc import Callable

import pytest
from tests.replication.world import (
    World,
    alter,
    ask,
    deliver_all,
    founded,
    make_durable,
    put,
    send_all,
    sid,
    to_construct,
)

from semcast.core.events import Answered, Note
from semcast.replication import pull
from semcast.replication.actions import Join, Leave
from semcast.replication.colours import GapError
from semcast.replication.machine import Machine
from semcast.replication.reads import ReadQueue
from semcast.replication.records import decode
from semcast.replication.snapshots import KeptState
from semcast.replication.states import State
from semcast.sim.mutants import replication as mutants

Schedule = Callable[[type[Machine]], World]


def everywhere(world: World, line: int) -> Callable[[], bool]:
    """Whether all have so many actions green, on their disks."""
    return lambda: all(
        node.line >= line and node.machine.journal.durable.line >= line for node in world.nodes.values()
    )


def removed(size: int, who: str, kind: type[Machine]) -> World:
    """A group that has removed one of its servers, all of it on disks."""
    world = founded(size, kind=kind)
    world.held = True
    assert alter(world, "b1", Leave(sid(who)))
    assert world.go(world.nodes, 9000, everywhere(world, 1))
    for name in world.nodes:
        world.nodes[name].sync_all()
    return world


def split(world: World, *groups: str) -> None:
    """Form configurations, and let the servers in them do what they will."""
    world.reform([[group[at : at + 2] for at in range(0, len(group), 2)] for group in groups])


def in_state(world: World, **states: State) -> Callable[[], bool]:
    return lambda: all(world.nodes[name].state is state for name, state in states.items())


def heal(world: World, rounds: int = 3) -> World:
    """All who are there come together, until nothing is open."""
    world.held = False
    for _ in range(rounds):
        if world.ring():
            world.reform([world.ring()])
        if world.go(world.alive(), 9000, world.at_rest):
            break
    return world


# Guests


def guest_without_record(kind: type[Machine]) -> World:
    """a was removed; a and b install {b}; then a, not bound by that, helps c to install {c}."""
    world = removed(3, "a1", kind)
    split(world, "a1b1", "c1")
    to_construct(world, ["a1", "b1"])
    deliver_all(world, "b1")
    make_durable(world, "b1")
    assert world.nodes["b1"].prim == 2
    split(world, "a1c1", "b1")
    world.go(world.nodes, 6000)
    return heal(world)


def guest_not_awaited(kind: type[Machine]) -> World:
    """The same, and the disk of a never finished the sync of the attempt."""
    world = removed(3, "a1", kind)
    split(world, "a1b1", "c1")
    for _ in range(20000):
        name = world.rng.choice(["a1", "b1"])
        if name == "a1" and world.nodes[name].state is State.CONSTRUCT:
            conf = world.of[name]
            assert conf is not None
            conf.recv[name] = len(conf.log)
            continue
        world.progress(name)
        if world.nodes["b1"].prim == 2:
            make_durable(world, "b1")
            break
    world.crash("a1", world.nodes["a1"].durable)
    world.nodes["a1"].start()
    world.go(["a1"], 200)
    split(world, "b1")
    split(world, "a1c1")
    world.go(world.nodes, 6000)
    return heal(world)


def guest_installs(kind: type[Machine]) -> World:
    """Guest a installs on its disk; c, the only server of the new primary, does not; b and c go on."""
    world = removed(3, "a1", kind)
    split(world, "a1c1", "b1")
    to_construct(world, ["a1", "c1"])
    deliver_all(world, "a1")
    make_durable(world, "a1")
    split(world, "b1c1", "a1")
    world.go(world.nodes, 6000)
    return heal(world)


def guest_stops_early(kind: type[Machine]) -> World:
    """Of {a, b}, a was removed; it stops, b crashes before its sync, and has half of the last primary."""
    world = removed(2, "a1", kind)
    split(world, "a1b1")
    to_construct(world, ["a1", "b1"])
    deliver_all(world, "a1")
    world.crash("b1", world.nodes["b1"].durable)
    world.nodes["b1"].start()
    world.go(["b1"], 300)
    return heal(world)


def base_edited(kind: type[Machine]) -> World:
    """Leave(c) is green at a only: a alone against b and c."""
    world = founded(3, kind=kind)
    world.held = True
    assert alter(world, "b1", Leave(sid("c1")))
    send_all(world, "b1")
    deliver_all(world, "a1")
    make_durable(world, "a1")
    split(world, "a1", "b1c1")
    world.go(world.nodes, 6000)
    return heal(world)


# Attempts


def newcomer(kind: type[Machine]) -> World:
    """d is new to the attempt of a, b, d that b completes; a, c, d meet after that."""
    world = founded(4, kind=kind)
    split(world, "a1b1c1", "d1")
    assert world.go(
        world.nodes, 9000, in_state(world, a1=State.REG_PRIM, c1=State.REG_PRIM, d1=State.NON_PRIM)
    )
    for node in world.nodes.values():
        node.sync_all()
    split(world, "a1b1d1", "c1")
    to_construct(world, ["a1", "b1", "d1"])
    deliver_all(world, "b1")
    make_durable(world, "b1")
    split(world, "a1", "b1", "c1", "d1")
    world.go(world.nodes, 900)
    put(world, "a1")
    world.go(world.nodes, 300)
    split(world, "a1c1d1", "b1")
    world.go(world.nodes, 3000)
    return heal(world)


def undecided(kind: type[Machine]) -> World:
    """b has installed; a, in Un, cannot know that, and meets c."""
    world = founded(3, kind=kind)
    split(world, "a1b1", "c1")
    to_construct(world, ["a1", "b1"])
    deliver_all(world, "b1")
    make_durable(world, "b1")
    split(world, "a1", "b1", "c1")
    world.go(world.nodes, 900)
    split(world, "a1c1", "b1")
    world.go(world.nodes, 3000)
    return heal(world)


def all_of_an_attempt_crash(kind: type[Machine]) -> World:
    """All crash in Construct: together they know that nothing came of it."""
    world = founded(3, kind=kind)
    split(world, "a1b1c1")
    to_construct(world, ["a1", "b1", "c1"])
    for name in ("a1", "b1", "c1"):
        world.crash(name, world.nodes[name].durable)
    for name in ("a1", "b1", "c1"):
        world.nodes[name].start()
    world.go(world.nodes, 900)
    return heal(world)


def attempt_before_disk(kind: type[Machine]) -> World:
    """b installs by the word of a, whose disk has not the attempt when it crashes; a then meets c."""
    world = founded(3, kind=kind)
    split(world, "a1b1", "c1")
    for _ in range(20000):
        name = world.rng.choice(["a1", "b1"])
        if world.nodes[name].state is State.CONSTRUCT and name == "a1":
            break
        world.progress(name)
    before = world.nodes["a1"].durable
    conf = world.of["a1"]
    assert conf is not None
    for _ in range(5000):
        if world.queue["a1"]:
            conf.log.append(world.queue["a1"].pop(0))
        conf.recv["a1"] = len(conf.log)
        conf.safe["a1"] = 0
        world.progress("b1")
        if world.nodes["b1"].prim == 2:
            make_durable(world, "b1")
            break
    world.crash("a1", before)
    world.nodes["a1"].start()
    world.go(["a1"], 300)
    split(world, "b1")
    split(world, "a1c1")
    world.go(world.nodes, 4000)
    return heal(world)


def state_before_disk(kind: type[Machine]) -> World:
    """The disk of c stands still; a and b take from its state that it has what they have: white."""
    world = founded(3, kind=kind)
    put(world, "a1")
    send_all(world, "a1")
    for name in ("a1", "b1", "c1"):
        deliver_all(world, name)
    for name in ("a1", "b1"):
        world.nodes[name].sync_all()
    split(world, "a1b1c1")
    conf = world.of["a1"]
    assert conf is not None
    for _ in range(3000):
        name = world.rng.choice(["a1", "b1", "c1"])
        if world.pend[name]:
            world.step_pend(name)
        elif name != "c1":
            world.progress(name)
        elif world.queue[name]:
            conf.log.append(world.queue[name].pop(0))
            conf.recv[name] = len(conf.log)
    return heal(world)


def shrinking(kind: type[Machine]) -> World:
    """Of five, one after the other is cut off: the two that are left still are a primary."""
    world = founded(5, kind=kind)
    for there in ("a1b1c1d1", "a1b1c1", "a1b1"):
        split(world, there)
        names = [there[at : at + 2] for at in range(0, len(there), 2)]
        done = world.go(
            names,
            9000,
            lambda names=names: all(  # type: ignore[misc]
                world.nodes[name].state is State.REG_PRIM and len(world.nodes[name].servers) == len(names)
                for name in names
            ),
        )
        if not done:
            raise AssertionError(f"{there} is no primary")
    return heal(world)


# Order


def yellow(kind: type[Machine]) -> World:
    """a is delivered two actions as safe; b and c have them, but cannot know that a performed them."""
    world = founded(3, kind=kind)
    put(world, "c1")
    put(world, "b1")
    send_all(world, "c1", "b1")
    deliver_all(world, "a1")
    make_durable(world, "a1")
    split(world, "a1", "b1c1")
    world.go(world.nodes, 6000)
    return heal(world)


def agreed(kind: type[Machine]) -> World:
    """a is delivered actions that nobody else has, and is cut off."""
    world = founded(3, kind=kind)
    put(world, "a1")
    conf = world.of["a1"]
    assert conf is not None
    conf.log += world.queue["a1"]
    world.queue["a1"] = []
    conf.recv["a1"] = len(conf.log)
    while conf.dlv["a1"] < conf.recv["a1"] and not conf.log[conf.dlv["a1"]].safe:
        conf.dlv["a1"] += 1
        world.nodes["a1"].deliver(conf.log[conf.dlv["a1"] - 1])
    make_durable(world, "a1")
    split(world, "a1", "b1c1")
    put_later = world.go(world.nodes, 6000, in_state(world, b1=State.REG_PRIM, c1=State.REG_PRIM))
    assert put_later
    put(world, "c1")
    world.go(world.nodes, 3000)
    return heal(world)


def total_crash(kind: type[Machine]) -> World:
    """c, b, a are answered in this order; then all crash, and no disk has the order."""
    world = founded(3, kind=kind)
    for ticket, name in enumerate(("c1", "b1", "a1"), 1):
        put(world, name, ticket=ticket)
        make_durable(world, name)
        world.nodes[name].machine.creation.durable(0)
    send_all(world, "c1", "b1", "a1")
    for node in world.nodes.values():
        node.syncs.clear()
    keep = {name: node.durable for name, node in world.nodes.items()}
    for name in world.nodes:
        deliver_all(world, name)
    for name in world.nodes:
        world.crash(name, keep[name])
    for name in world.nodes:
        world.nodes[name].start()
    world.go(world.nodes, 900)
    return heal(world)


def half_an_installation(kind: type[Machine]) -> World:
    """d has performed c's action, then b's; a, b and c have them yellow, and crash as they install."""
    world = founded(4, kind=kind)
    put(world, "c1")
    put(world, "b1")
    send_all(world, "c1", "b1")
    deliver_all(world, "d1")
    make_durable(world, "d1")
    split(world, "a1b1c1", "d1")
    to_construct(world, ["a1", "b1", "c1"])
    before = world.nodes["a1"].durable
    deliver_all(world, "a1")
    world.crash("a1", before + 1)
    for name in ("b1", "c1"):
        world.crash(name, world.nodes[name].durable)
    for name in ("a1", "b1", "c1"):
        world.nodes[name].start()
    world.go(["a1", "b1", "c1"], 900)
    split(world, "a1b1c1")
    world.go(
        ["a1", "b1", "c1"], 9000, in_state(world, a1=State.REG_PRIM, b1=State.REG_PRIM, c1=State.REG_PRIM)
    )
    return heal(world)


def half_exchange(kind: type[Machine]) -> World:
    """d asks, c answers, both in a minority; they meet the primary and part in the middle of the exchange."""
    world = founded(4, kind=kind)
    split(world, "a1b1", "c1d1")
    prime = in_state(world, a1=State.REG_PRIM, b1=State.REG_PRIM, c1=State.NON_PRIM, d1=State.NON_PRIM)
    assert world.go(world.nodes, 9000, prime)
    put(world, "d1")
    assert world.go(["c1", "d1"], 3000, lambda: world.nodes["c1"].reds == 1)
    put(world, "c1")
    assert world.go(["c1", "d1"], 4000, lambda: world.nodes["d1"].reds == 2)
    world.reform([world.alive()])
    conf = world.of["a1"]
    assert conf is not None
    for _ in range(40000):
        world.progress(world.rng.choice(sorted(world.nodes)))
        if any(node.machine.stats.retransmitted for node in world.nodes.values()):
            break
    # One share is one message here: take the one run of c that answers, without the one of d that asked.
    for name in ("a1", "b1"):
        while conf.dlv[name] < len(conf.log):
            conf.dlv[name] += 1
            world.nodes[name].deliver(conf.log[conf.dlv[name] - 1])
        conf.recv[name] = len(conf.log)
    for name in ("c1", "d1"):
        for sent in world.queue[name][:1]:
            for other in ("a1", "b1"):
                world.nodes[other].deliver(sent)
    split(world, "a1b1", "c1d1")
    world.go(world.nodes, 9000)
    return heal(world)


def question_and_answer(kind: type[Machine]) -> World:
    """c asks and b, who knows the question, answers, both in a minority."""
    world = founded(5, kind=kind)
    split(world, "b1c1", "a1d1e1")
    assert world.go(
        world.nodes, 9000, in_state(world, b1=State.NON_PRIM, c1=State.NON_PRIM, a1=State.REG_PRIM)
    )
    put(world, "c1")
    assert world.go(["b1", "c1"], 3000, lambda: world.nodes["b1"].reds == 1)
    put(world, "b1")
    world.go(["b1", "c1"], 3000)
    return heal(world)


def other_arrivals(kind: type[Machine]) -> World:
    """Two minorities make actions; whoever meets has them in another order of arrival."""
    world = founded(5, kind=kind)
    split(world, "a1b1", "c1d1", "e1")
    world.go(world.nodes, 6000, in_state(world, a1=State.NON_PRIM, c1=State.NON_PRIM, e1=State.NON_PRIM))
    for name in ("a1", "c1", "e1", "b1", "d1"):
        put(world, name)
    world.go(world.nodes, 6000)
    return heal(world)


def sent_in_the_next(kind: type[Machine]) -> World:
    """An action of c waits to be sent when the configuration changes; a is further when it is delivered."""
    world = founded(3, kind=kind)
    split(world, "a1b1", "c1")
    prime = in_state(world, a1=State.REG_PRIM, b1=State.REG_PRIM, c1=State.NON_PRIM)
    assert world.go(world.nodes, 9000, prime)
    put(world, "c1")
    late = world.queue["c1"].pop()
    split(world, "a1b1c1")
    for name in world.nodes:
        while world.pend[name]:
            world.step_pend(name)
    for name in ("b1", "c1"):
        world.nodes[name].sync_all()  # they tell their states
        world.nodes[name].deliver(late)  # in this configuration, after that
    world.go(world.nodes, 9000, in_state(world, a1=State.REG_PRIM, b1=State.REG_PRIM, c1=State.REG_PRIM))
    put(world, "a1")
    world.go(world.nodes, 3000)
    return heal(world)


# Disks, pulls, stores


def reused_index(kind: type[Machine]) -> World:
    """An action of c reached a and b, and not its own disk; c starts again and makes another."""
    world = founded(3, kind=kind)
    keep = world.nodes["c1"].durable
    put(world, "c1", b"first")
    send_all(world, "c1")
    for name in ("a1", "b1"):
        deliver_all(world, name)
        make_durable(world, name)
    world.crash("c1", keep)
    split(world, "a1b1")
    world.go(["a1", "b1"], 3000)
    world.nodes["c1"].start()
    world.go(["c1"], 600)
    put(world, "c1", b"second")
    world.go(["c1"], 600)
    return heal(world)


def pull_volatile(kind: type[Machine]) -> World:
    """c, outside, pulls greens that a and b have not on their disks; then both crash."""
    world = founded(3, kind=kind)
    split(world, "a1b1", "c1")
    prime = in_state(world, a1=State.REG_PRIM, b1=State.REG_PRIM, c1=State.NON_PRIM)
    assert world.go(world.nodes, 9000, prime)
    for node in world.nodes.values():
        node.sync_all()
    for name in ("b1", "a1"):
        put(world, name)
        make_durable(world, name)  # the own actions are on the disks, their order is not
        world.nodes[name].syncs = []
    send_all(world, "b1", "a1")
    for name in ("a1", "b1"):
        deliver_all(world, name)
    pulling = world.nodes["c1"].machine
    pulling.state, world.of["c1"], pulling.exchange = State.OUT, None, None
    world.pull("c1", "a1")
    make_durable(world, "c1")
    for name in ("a1", "b1"):
        world.crash(name, world.nodes[name].durable)
        world.nodes[name].start()
    world.go(["a1", "b1"], 600)
    split(world, "a1b1")
    world.go(["a1", "b1"], 9000)
    return heal(world)


def behind_votes(kind: type[Machine]) -> World:
    """b crashed with less than an exchange brings, so it is not counted; without it c is no quorum."""
    world = founded(3, kind=kind, limits={"exchange_limit": 2})
    keep = world.nodes["b1"].durable
    for _ in range(4):
        put(world, "c1")
    send_all(world, "c1")
    for name in ("a1", "b1", "c1"):
        deliver_all(world, name)
    for name in ("a1", "c1"):
        world.nodes[name].sync_all()
    world.crash("b1", keep)
    world.nodes["b1"].start()
    world.go(["b1"], 300)
    split(world, "b1c1", "a1")
    for _ in range(9000):
        if world.nodes["b1"].state is State.OUT and world.nodes["c1"].state is not State.EXCHANGE_STATES:
            break
        world.progress("c1" if world.nodes["b1"].state is State.OUT else world.rng.choice(["b1", "c1"]))
    if world.nodes["c1"].state is State.CONSTRUCT:
        world.nodes["c1"].sync_all()
        send_all(world, "c1")
        deliver_all(world, "c1")
        make_durable(world, "c1")
    world.go(world.nodes, 9000)
    return heal(world)


def founders_not_told(kind: type[Machine]) -> World:
    """c learns of the first primary from the states of others only; then it is needed."""
    world = World(3, 4, kind, exchange_limit=1000)
    world.go(world.nodes, 1200)
    world.reform([world.alive()])
    to_construct(world, ["a1", "b1", "c1"])
    for name in ("a1", "b1"):
        deliver_all(world, name)
        make_durable(world, name)
    split(world, "a1b1", "c1")
    world.go(world.nodes, 4000)
    split(world, "b1c1", "a1")
    world.go(world.nodes, 6000)
    return heal(world)


def wiped_majority(kind: type[Machine]) -> World:
    """b and c lose their disks, and start with the names that founded the group."""
    world = founded(3, kind=kind)
    put(world, "a1")
    assert world.go(world.nodes, 9000, everywhere(world, 1))
    split(world, "a1", "b1c1")
    world.go(world.nodes, 3000)
    for name in ("b1", "c1"):
        world.wipe(name)
    for name in ("b2", "c2"):
        world.deploy(name, world.names)
    world.go(world.nodes, 600)
    split(world, "b2c2", "a1")
    world.go(world.nodes, 9000)
    return world


def wiped_founder(kind: type[Machine]) -> World:
    """b founds on its disk; a and c crash in Construct, a and b are wiped; a2, b2 and c start as named."""
    world = World(3, 5, kind, exchange_limit=1000)
    world.go(world.nodes, 1200)
    world.reform([world.alive()])
    to_construct(world, ["a1", "b1", "c1"])
    deliver_all(world, "b1")
    make_durable(world, "b1")
    for name in ("a1", "c1"):
        world.crash(name, world.nodes[name].durable)
    world.wipe("a1")
    world.deploy("a2", world.names)
    world.nodes["c1"].start()
    world.deploy("b2", world.names)
    world.go(["a2", "c1", "b2"], 900)
    split(world, "a2b2c1", "b1")
    world.go(["a2", "b2", "c1"], 9000)
    return world


def forget(kind: type[Machine]) -> World:
    """a forgets b; c, who crashed, has answered what a never heard of."""
    world = founded(3, kind=kind)
    keep = world.nodes["a1"].durable
    put(world, "c1", ticket=1)
    answered = [answer for _, answer in world.answers]
    assert world.go(world.nodes, 9000, lambda: any(isinstance(each, Answered) for _, each in world.answers))
    assert not answered
    world.crash("a1", keep)
    world.crash("c1", len(world.nodes["c1"].records))
    world.wipe("b1")
    world.forget("a1", ["b1"])
    world.nodes["a1"].start()
    world.go(["a1"], 3000)
    world.nodes["a1"].request()
    if world.nodes["a1"].machine.accepts:
        put(world, "a1")
    world.go(["a1"], 3000)
    world.nodes["c1"].start()
    world.go(["c1"], 300)
    split(world, "a1c1")
    world.go(["a1", "c1"], 9000)
    return world


def given_up(kind: type[Machine]) -> World:
    """b ordered what nobody else has on a disk; all crash, a forgets b and goes on with c; then b is back."""
    world = founded(3, kind=kind)
    keep = {name: world.nodes[name].durable for name in ("a1", "c1")}
    put(world, "b1", ticket=1)
    assert world.go(world.nodes, 9000, lambda: bool(world.answers))
    for name in ("a1", "c1"):
        world.crash(name, keep[name])
    world.crash("b1", len(world.nodes["b1"].records))
    world.forget("a1", ["b1"])
    for name in ("a1", "c1"):
        world.nodes[name].start()
    world.go(["a1", "c1"], 300)
    split(world, "a1c1")
    prime = in_state(world, a1=State.REG_PRIM, c1=State.REG_PRIM)
    assert world.go(["a1", "c1"], 9000, prime)
    put(world, "c1", b"other")
    world.go(["a1", "c1"], 3000)
    world.nodes["b1"].start()
    world.go(["b1"], 300)
    return world


def test_a_server_with_an_order_that_was_given_up_stops_and_says_what_it_has() -> None:
    world = given_up(Machine)
    line, order = world.nodes["a1"].line, world.nodes["a1"].machine.books.colours.digest
    split(world, "a1b1c1")
    world.go(world.nodes, 9000)
    rest = [world.nodes[name] for name in ("a1", "c1")]
    assert world.nodes["b1"].state is State.STOPPED
    assert [node.state for node in rest] == [State.REG_PRIM] * 2
    assert [(node.line, node.machine.books.colours.digest) for node in rest] == [(line, order)] * 2
    assert [node.machine.alarm for node in rest] == ["", ""]
    for node in rest:  # c was never told by a record of its own
        assert [server.name for server in node.machine.books.members.weights] == ["a", "c"]
    again = Machine(Machine.books_kind(), world.nodes["c1"].machine.settings, world.nodes["c1"].machine.out)
    again.books.replay(map(decode, world.nodes["c1"].records))
    assert again.books.prim.forgot == (sid("b1"),)


def test_without_that_it_takes_part_with_its_order() -> None:
    world = given_up(mutants.EstrangedTakesPart)
    split(world, "a1b1c1")
    world.go(world.nodes, 9000)
    assert world.nodes["b1"].state is not State.STOPPED
    assert len({node.line for node in world.nodes.values()}) == 1
    assert len({node.machine.books.colours.digest for node in world.nodes.values()}) == 2


def test_a_server_outside_with_an_order_that_was_given_up_is_given_nothing() -> None:
    world = given_up(Machine)
    node = world.nodes["b1"]
    line = node.line
    node.machine.stall("its disk takes too long")
    world.leaving.pop("b1", None)
    world.of["b1"] = None
    assert not world.pull("b1", "a1")
    assert node.state is State.STOPPED
    assert node.line == line
    said = node.machine.exit
    assert said.startswith("this server was forgotten by an operator")
    assert said.endswith(f"positions {line} to {line} were ordered here, and are not part of the database")


def test_a_server_that_was_away_when_others_were_forgotten_comes_back() -> None:
    world = founded(4)
    split(world, "d1", "a1b1c1")
    prime = in_state(world, a1=State.REG_PRIM, b1=State.REG_PRIM, c1=State.REG_PRIM, d1=State.NON_PRIM)
    assert world.go(world.nodes, 9000, prime)
    put(world, "a1")
    world.go(world.nodes, 3000)
    put(world, "d1")  # what it was asked meanwhile is not lost
    world.go(world.nodes, 3000)
    for name in ("a1", "c1"):
        world.crash(name, len(world.nodes[name].records))
    world.wipe("b1")
    world.forget("a1", ["b1"])
    for name in ("a1", "c1"):
        world.nodes[name].start()
    world.go(["a1", "c1", "d1"], 600)
    for _ in range(2):  # it pulls what it lacks outside, and comes back
        split(world, "a1c1d1")
        world.go(["a1", "c1", "d1"], 9000, world.at_rest)
    assert world.at_rest()
    lines = {world.nodes[name].line for name in ("a1", "c1", "d1")}
    assert lines == {2}
    for name in ("a1", "c1", "d1"):
        members = world.nodes[name].machine.books.members.weights
        assert [server.name for server in members] == ["a", "c", "d"]


# Old copies of disks


def old_copy(kind: type[Machine], *, actions: bool) -> World:
    """b's disk is put back: to before it was in another primary with a, or before it made actions there."""
    world = founded(3, kind=kind)
    world.held = True
    node = world.nodes["b1"]
    copied = list(node.records)
    both = [world.nodes[name] for name in ("a1", "b1")]
    for number in (2, 3):
        split(world, "a1b1", "c1")
        assert world.go(world.nodes, 9000, lambda: all(each.prim == number for each in both))  # noqa: B023
    if actions:
        node.sync_all()
        copied = list(node.records)
        for line in (1, 2):  # the second one tells that the first is on the disk
            put(world, "b1")
            assert world.go(world.nodes, 9000, lambda: all(each.line == line for each in both))  # noqa: B023
            node.sync_all()
    for name in world.nodes:
        world.nodes[name].sync_all()
    world.recorder.note(world.tick(), node.member, Note("put-back"))
    world.crash("b1", len(node.records))
    node.records, node.durable = copied, len(copied)
    return world


def put_back(kind: type[Machine]) -> World:
    """a was there, and has worked since."""
    world = old_copy(kind, actions=True)
    world.nodes["b1"].start()
    world.go(["b1"], 300)
    split(world, "a1b1", "c1")
    world.go(world.nodes, 9000)
    return world


def put_back_unseen(kind: type[Machine]) -> World:
    """a was there, crashed with b, and only its disk knows; the primary of both had no action."""
    world = old_copy(kind, actions=False)
    world.crash("a1", len(world.nodes["a1"].records))
    for name in ("a1", "b1"):
        world.nodes[name].start()
        world.go([name], 300)
    split(world, "a1b1", "c1")
    world.go(world.nodes, 9000)
    return world


def put_back_undecided(kind: type[Machine]) -> World:
    """b installed a primary alone; a heard that all agreed to it, and not what came of that (seed 520098)."""
    world = founded(3, kind=kind)
    world.held = True
    node = world.nodes["b1"]
    copied = list(node.records)
    split(world, "a1b1", "c1")
    to_construct(world, ["a1", "b1"])
    deliver_all(world, "b1")
    assert node.state is State.REG_PRIM
    node.sync_all()
    split(world, "a1", "b1", "c1")
    assert world.go(["a1"], 900, lambda: world.nodes["a1"].machine.books.vulnerable is not None)
    world.recorder.note(world.tick(), node.member, Note("put-back"))
    world.crash("b1", len(node.records))
    node.records, node.durable = copied, len(copied)
    node.start()
    world.go(["b1"], 300)
    split(world, "a1b1", "c1")
    world.go(world.nodes, 9000)
    return world


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        (put_back_undecided, "it agreed to attempt 1 at primary 2, and does not know of it now"),
        (put_back, "its log ended at position 1, and ends at 0 now"),
        (put_back_unseen, "it agreed to primary 3, and knows of 1 now"),
    ],
)
def test_a_server_whose_disk_is_an_old_copy_stops_and_says_so(schedule: Schedule, why: str) -> None:
    world = schedule(Machine)
    a, b = world.nodes["a1"], world.nodes["b1"]
    assert b.state is State.STOPPED
    goes_on = schedule is put_back  # it has half of the last primary, and is the first by name
    assert a.state is (State.REG_PRIM if goes_on else State.NON_PRIM)
    assert why in a.machine.trouble
    assert f"({why}): a copy of it was put back" in b.machine.exit


def test_without_that_it_is_counted_though_all_know_better() -> None:
    world = put_back(mutants.RolledBackVotes)
    assert world.nodes["b1"].state is State.REG_PRIM
    assert put_back(Machine).broken() == set()


def test_without_that_there_are_two_primaries_where_one_was_not_sure() -> None:
    assert "repl_one_primary" in put_back_undecided(mutants.RolledBackVotes).broken()
    assert put_back_undecided(Machine).broken() == set()


def test_what_others_told_outlives_a_short_log() -> None:
    world = old_copy(Machine, actions=True)
    books = world.nodes["a1"].machine.books
    split(world, "a1", "c1")
    assert world.go(world.nodes, 9000, lambda: world.nodes["a1"].prim == 4)
    assert books.heard[sid("b1")] == 1
    again = Machine.books_kind()
    again.replay(books.condensed())
    assert again.heard == books.heard


# Clients


def roam(kind: type[Machine]) -> World:
    """A client saw a red of a minority, and writes where the clocks are as high."""
    world = founded(3, kind=kind)
    split(world, "a1", "b1c1")
    prime = in_state(world, a1=State.NON_PRIM, b1=State.REG_PRIM, c1=State.REG_PRIM)
    assert world.go(world.nodes, 6000, prime)
    ask(world, "a1", "q", 1, level="queued")
    world.go(["a1"], 800)
    shown = ReadQueue(world.nodes["a1"].machine).read("dirty", "k")
    assert shown is not None
    assert shown.cut
    for _ in range(3):
        put(world, "b1")
    assert world.go(["b1", "c1"], 9000, lambda: world.nodes["c1"].line == 3)
    ask(world, "c1", "k", 1, seen=shown.cut)
    world.go(["b1", "c1"], 3000)
    return heal(world)


def roam_streamed(kind: type[Machine]) -> World:
    """The reds that the client saw were handed in to the primary: known there, and not green."""
    world = founded(3, kind=kind)
    split(world, "a1", "b1c1")
    prime = in_state(world, a1=State.NON_PRIM, b1=State.REG_PRIM, c1=State.REG_PRIM)
    assert world.go(world.nodes, 6000, prime)
    ask(world, "a1", "q", 1, level="queued")
    world.go(["a1"], 800)
    shown = ReadQueue(world.nodes["a1"].machine).read("dirty", "k")
    assert shown is not None
    pull.hand_in(world.nodes["c1"].machine, world.nodes["a1"].machine.lacking(()))
    world.nodes["c1"].drain()
    assert world.go(["b1", "c1"], 3000, lambda: world.nodes["b1"].reds == world.nodes["c1"].reds == 1)
    ask(world, "c1", "k", 1, seen=shown.cut)
    world.go(["b1", "c1"], 3000)
    return heal(world)


def late_queued(kind: type[Machine]) -> World:
    """n is answered as queued in a minority; n + 1 is done in the primary before they meet."""
    world = founded(3, kind=kind)
    split(world, "a1", "b1c1")
    prime = in_state(world, a1=State.NON_PRIM, b1=State.REG_PRIM, c1=State.REG_PRIM)
    assert world.go(world.nodes, 6000, prime)
    ask(world, "a1", "k", 1, level="queued", ticket=1)
    world.go(["a1"], 800)
    assert world.answers
    ask(world, "b1", "k", 2, floor=1)
    world.go(["b1", "c1"], 3000)
    return heal(world)


def session(reading: type[ReadQueue]) -> World:
    """A client was answered at b; c, who has not delivered that, is asked to read."""
    world = founded(3)
    ask(world, "b1", "k", 1, ticket=1)
    send_all(world, "b1")
    deliver_all(world, "b1")
    world.nodes["b1"].sync_all()
    position = world.answers[-1][1].position
    assert position == 1
    reading(world.nodes["c1"].machine).read("session", "k", position)
    world.nodes["c1"].drain()
    return heal(world)


def unfounded(kind: type[Machine]) -> World:
    """A store that starts with the names of the founders, and was never let in, is asked for something."""
    world = founded(3, kind=kind)
    world.deploy("d2", world.names)
    world.go(["d2"], 600)
    ask(world, "d2", "k", 1, level="queued", ticket=1)
    world.go(["d2"], 600)
    return heal(world)


def stranger(kind: type[Machine]) -> World:
    """The same store meets the group."""
    world = founded(3, kind=kind)
    world.deploy("d2", world.names)
    world.go(["d2"], 600)
    world.reform([world.ring()])
    world.go(world.nodes, 9000)
    return heal(world)


def handed_in(kind: type[Machine]) -> World:
    """c asks and b answers in a minority; their reds are handed in, and the first of them arrives alone."""
    world = founded(5, kind=kind, limits={"run_bytes": 1})
    split(world, "b1c1", "a1d1e1")
    assert world.go(
        world.nodes, 9000, in_state(world, b1=State.NON_PRIM, c1=State.NON_PRIM, a1=State.REG_PRIM)
    )
    put(world, "c1")
    assert world.go(["b1", "c1"], 3000, lambda: world.nodes["b1"].reds == 1)
    put(world, "b1")
    assert world.go(["b1", "c1"], 3000, lambda: world.nodes["b1"].reds == 2)
    world.go(world.nodes, 3000)
    pull.hand_in(world.nodes["a1"].machine, world.nodes["b1"].machine.lacking(()))
    world.nodes["a1"].drain()
    assert len(world.queue["a1"]) == 2
    del world.queue["a1"][1]
    send_all(world, "a1")
    for name in ("a1", "d1", "e1"):
        deliver_all(world, name)
    split(world, "a1d1e1")
    world.go(["a1", "d1", "e1"], 9000)
    return heal(world)


def told_before_disk(kind: type[Machine]) -> World:
    """All tell how far they are, and the disk of c is not that far."""
    world = founded(3, kind=kind, limits={"line_every": 1})
    put(world, "a1")
    send_all(world, "a1")
    for name in ("a1", "b1", "c1"):
        deliver_all(world, name)
    for name in ("a1", "b1"):
        world.nodes[name].sync_all()
    put(world, "c1")
    send_all(world, "a1", "b1", "c1")
    deliver_all(world, "a1")
    return heal(world)


def lagging(kind: type[Machine]) -> World:
    """c lacks an action of b that is green, and a later one that is not."""
    world = founded(3, kind=kind)
    split(world, "a1b1", "c1")
    assert world.go(
        world.nodes, 9000, in_state(world, a1=State.REG_PRIM, b1=State.REG_PRIM, c1=State.NON_PRIM)
    )
    put(world, "b1")
    assert world.go(["a1", "b1"], 9000, lambda: world.nodes["b1"].line == world.nodes["a1"].line == 1)
    split(world, "a1", "b1")
    assert world.go(world.nodes, 9000, in_state(world, b1=State.NON_PRIM))
    put(world, "b1")
    world.go(["b1"], 600)
    split(world, "b1c1")
    world.go(["b1", "c1"], 9000)
    return heal(world)


def repeated(kind: type[Machine]) -> World:
    """A request is done, all forget what is white, crash, and the client asks again."""
    world = founded(3, kind=kind, limits={"line_every": 1, "trim_every": 1})
    ask(world, "a1", "k", 1)
    assert world.go(world.nodes, 9000, lambda: all(node.machine.white == 1 for node in world.nodes.values()))
    for node in world.nodes.values():
        node.machine.collect(1)
        node.drain()
        assert node.machine.books.colours.start == 1
        node.sync_all()
        assert len(node.records) == 2, "a base, and that it is complete"
    for name in world.nodes:
        world.crash(name, world.nodes[name].durable)
        world.nodes[name].start()
    world.go(world.nodes, 900)
    heal(world)
    ask(world, "b1", "k", 1)
    world.go(world.nodes, 3000)
    return heal(world)


def late_joiner(kind: type[Machine]) -> World:
    """A server is let in when the others have forgotten actions, and is asked for one of these."""
    world = founded(2, kind=kind, limits={"line_every": 1, "trim_every": 1})
    ask(world, "a1", "k", 1)
    assert world.go(world.nodes, 9000, lambda: all(node.machine.white == 1 for node in world.nodes.values()))
    for node in world.nodes.values():
        node.machine.keep(KeptState(1, b"what the service is"))
        node.drain()
        node.sync_all()
        assert node.machine.books.colours.start == 1
    world.deploy("c1")
    world.nodes["c1"].sync_all()
    alter(world, "a1", Join(sid("c1"), 1))
    assert world.go(world.nodes, 20000, in_state(world, c1=State.NON_PRIM)), world.nodes["c1"].state
    assert world.stats["snapshots"]
    heal(world)
    state = world.nodes["c1"].machine.books.state
    assert state is not None
    assert state.state == b""
    ask(world, "c1", "k", 1)
    world.go(world.nodes, 3000)
    return heal(world)


def trimmed(kind: type[Machine]) -> World:
    """All crash right after the first sync that a trimmed log asks for."""
    world = founded(3, kind=kind, limits={"line_every": 1, "trim_every": 1})
    put(world, "a1", ticket=1)
    assert world.go(world.nodes, 9000, lambda: all(node.machine.white == 1 for node in world.nodes.values()))
    for name, node in world.nodes.items():
        node.sync_all()
        node.machine.keep(KeptState(1, b""))
        node.drain()
        node.synced()
        world.crash(name, node.durable)
        node.start()
    world.go(world.nodes, 900)
    return heal(world)


DIRECTED: list[tuple[Schedule, type[Machine], str]] = [
    (guest_without_record, mutants.GuestWithoutRecord, "repl_one_primary"),
    (guest_not_awaited, mutants.GuestNotAwaited, "repl_one_primary"),
    (guest_installs, mutants.GuestInstalls, "repl_one_primary"),
    (guest_stops_early, mutants.GuestStopsEarly, "repl_liveness"),
    (base_edited, mutants.QuorumBaseEditedOnLeave, "repl_one_primary"),
    (newcomer, mutants.Step3AsPrinted, "repl_one_primary"),
    (newcomer, mutants.UnvulnerableInUn, "repl_one_primary"),
    (undecided, mutants.QuorumIgnoresVulnerable, "repl_one_primary"),
    (undecided, mutants.HalfIsEnough, "repl_one_primary"),
    (all_of_an_attempt_crash, mutants.BitsAsPrinted, "repl_liveness"),
    (attempt_before_disk, mutants.CpcBeforeSync, "repl_one_primary"),
    (state_before_disk, mutants.StateBeforeSync, "repl_white"),
    (yellow, mutants.YellowForgotten, "repl_total_order"),
    (yellow, mutants.GreenInTransitional, "repl_green_in_primary"),
    (agreed, mutants.AgreedInsteadOfSafe, "repl_total_order"),
    (total_crash, mutants.AnsweredBeforeDurable, "repl_answered"),
    (half_an_installation, mutants.InstallNotAtomic, "repl_total_order"),
    (half_exchange, mutants.ExchangeRedsAtOnce, "repl_causal"),
    (question_and_answer, mutants.RedsById, "repl_causal"),
    (other_arrivals, mutants.RedsInArrivalOrder, "repl_total_order"),
    (sent_in_the_next, mutants.QueuedActionCounted, "repl_total_order"),
    (reused_index, mutants.IndexReusedAfterCrash, "repl_knowledge"),
    (pull_volatile, mutants.PullVolatile, "repl_total_order"),
    (behind_votes, mutants.BehindServerVotes, "repl_one_primary"),
    (founders_not_told, mutants.FoundersNotTold, "repl_liveness"),
    (wiped_majority, mutants.WipedMajorityFounds, "repl_one_primary"),
    (wiped_founder, mutants.VulnerableByName, "repl_one_primary"),
    (forget, mutants.ForgetByQuorum, "repl_total_order"),
    (put_back_unseen, mutants.RolledBackVotes, "repl_memory"),
    (roam, mutants.RoamByClock, "repl_causal"),
    (roam_streamed, mutants.RoamRedInPrimary, "repl_causal"),
    (late_queued, mutants.LateQueuedDropped, "repl_queued"),
    (repeated, mutants.DedupeNotInSnapshot, "repl_integrity"),
    (late_joiner, mutants.DedupeNotInSnapshot, "repl_integrity"),
    (trimmed, mutants.TrimmedBeforeSynced, "repl_white"),
    (unfounded, mutants.WritesBeforeFounding, "repl_queued"),
    (stranger, mutants.JoinerVotesWithoutState, "repl_join"),
    (handed_in, mutants.StreamByCreator, "repl_causal"),
    (told_before_disk, mutants.WhiteFromVolatileLine, "repl_white"),
]
_IDS = [f"{schedule.__name__}-{mutant.__name__}" for schedule, mutant, _ in DIRECTED]
_SCHEDULES = list(dict.fromkeys(schedule for schedule, _, _ in DIRECTED))


@pytest.mark.parametrize("schedule", _SCHEDULES, ids=lambda schedule: schedule.__name__)
def test_it_is_fine_with_the_rule(schedule: Schedule) -> None:
    world = schedule(Machine)
    assert world.broken() == set()


@pytest.mark.parametrize(("schedule", "mutant", "name"), DIRECTED, ids=_IDS)
def test_it_is_broken_without_the_rule(schedule: Schedule, mutant: type[Machine], name: str) -> None:
    world = schedule(mutant)
    assert name in world.broken()


def test_a_shrinking_group_goes_on() -> None:
    assert shrinking(Machine).broken() == set()
    with pytest.raises(AssertionError, match="is no primary"):
        shrinking(mutants.MajorityOfSAndLast)


def test_reds_do_not_overtake_greens() -> None:
    assert lagging(Machine).broken() == set()
    with pytest.raises(GapError):
        lagging(mutants.RedBeforeGreenInExchange)


def test_a_session_waits_for_its_own_writes() -> None:
    assert session(ReadQueue).broken() == set()
    assert "repl_session" in session(mutants.SessionIgnoresOwn).broken()
