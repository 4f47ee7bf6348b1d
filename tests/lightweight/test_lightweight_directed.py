"""Situations that somebody once got wrong, each as a script, and the mutants that get them wrong again."""

from collections.abc import Callable

import pytest
from tests.lightweight.world import World, wander

from semcast.protocols.lightweight import LightweightSettings, Machine
from semcast.protocols.lightweight.events import (
    Block,
    Cause,
    ClientEvent,
    Delivered,
    GroupTransitional,
    GroupView,
    LeftGroup,
    Placed,
    PrivateDelivered,
    Undeliverable,
)
from semcast.sim.lightweight_clients import Client
from semcast.sim.mutants import MUTANTS
from semcast.sim.mutants.clients import MUTANTS as CLIENTS  # in tests/daemon/test_client_swarm.py

PLENTY = LightweightSettings(notes=True, send_messages=4096, memberships=4096, window=4096)


def united(size: int, machine: type[Machine] = Machine) -> World:
    world = World(size, machine)
    world.change()
    world.settle()
    return world


def with_members(size: int, group: str, machine: type[Machine] = Machine) -> tuple[World, list[Client]]:
    """A daemon for each member of a group."""
    world = united(size, machine)
    clients = [world.connect(number, "a") for number in range(size)]
    for client in clients:
        world.join(client, group)
        world.settle()
    return world, clients


def told(client: Client) -> list[ClientEvent]:
    """What waits for it, but for what became of its own requests."""
    return [event for event in client.session.take() if not isinstance(event, Placed)]


def views(events: list[ClientEvent]) -> list[GroupView]:
    return [event for event in events if isinstance(event, GroupView)]


def names(event: ClientEvent) -> list[str]:
    assert isinstance(event, GroupView | GroupTransitional)
    return [client.name for client in event.members]


# Daemons


def test_a_frozen_daemon_wakes_and_its_clients_hear_that_the_others_went() -> None:
    """Corosync #347: they were told of nothing, since the others were back when it woke."""
    world, clients = with_members(3, "e")
    world.change([0, 1])
    world.settle(only=[0, 1])
    world.cast(clients[0], "e")
    world.settle(only=[0, 1])
    world.change()
    world.settle(reading=False)
    transitional, view = told(clients[2])
    assert names(transitional) == ["a@p2"]
    assert names(view) == ["a@p0", "a@p1", "a@p2"]
    assert world.broken() == set()


def dies_in_the_census(machine: type[Machine] = Machine) -> World:
    """Corosync #828: a daemon joins and dies before the lists of all are there."""
    world = World(3, machine)
    world.change([0, 1], [2])
    world.settle()
    a, ghost = world.connect(0, "a"), world.connect(2, "ghost")
    world.join(a, "e")
    world.join(ghost, "e")
    world.settle()
    world.change()
    world.number(world.daemons[2])
    for number in (0, 1):
        world.receive(world.daemons[number])
        world.handle(world.daemons[number])
    world.crash(2)
    world.change([0, 1])
    world.settle()
    return world


def test_a_daemon_joins_and_dies_within_the_census() -> None:
    world = dies_in_the_census()
    assert world.broken() == set()
    assert [client.name for client in world.daemons[0].machine.map.groups["e"].members] == ["a@p0"]


def test_a_merge_is_one_event() -> None:
    """Corosync #351: one for each member that came."""
    world = World(4)
    world.change([0, 1], [2, 3])
    world.settle()
    clients = [world.connect(number, name) for number in range(4) for name in "ab"]
    for client in clients:
        world.join(client, "e")
    world.settle()
    world.change()
    world.settle(reading=False)
    for client in clients:
        (view,) = views(client.session.take())
        assert len(view.members) == 8
        assert view.cause is Cause.CONFIGURATION
        assert len(view.joined) == 4
    assert world.broken() == set()


def test_a_group_that_a_merge_does_not_touch_hears_nothing() -> None:
    world = World(3)
    world.change([0, 1], [2])
    world.settle()
    a, b = world.connect(0, "a"), world.connect(1, "b")
    for client in (a, b):
        world.join(client, "e")
        world.settle()
    before = world.daemons[0].machine.map.groups["e"].view
    world.change()
    world.settle(reading=False)
    assert views(a.session.take()) == views(b.session.take()) == []
    assert world.daemons[2].machine.map.groups["e"].view == before
    assert world.broken() == set()


def test_a_crash_is_a_warning_and_one_view_without_a_census() -> None:
    world, clients = with_members(3, "e")
    world.crash(2)
    world.change([0, 1])
    assert all(daemon.machine.census is None for daemon in world.alive)
    transitional, view = told(clients[0])
    assert names(transitional) == ["a@p0", "a@p1"]
    assert isinstance(view, GroupView)
    assert [client.name for client in view.failed] == ["a@p2"]
    world.settle()
    assert world.broken() == set()


def joins_in_two_rests(machine: type[Machine] = Machine) -> World:
    """Two joins are under way as two daemons part: each handles its own in its own rest."""
    world = united(2, machine)
    a, b = world.connect(0, "a"), world.connect(1, "b")
    world.settle()
    world.join(b, "e")
    world.join(a, "e")
    world.number(world.daemons[1])
    world.number(world.daemons[0])
    world.change([0], [1])
    return world


def test_a_join_is_numbered_in_the_transitional_configuration() -> None:
    world = joins_in_two_rests()
    first = [views(each.clients[0].session.take())[0].id for each in world.daemons]
    assert [view.epoch.rest for view in first] == [True, True]
    assert first[0] != first[1]
    world.change()
    world.settle()
    assert world.broken() == set()


def test_who_joins_in_a_rest_is_warned_behind_its_first_view() -> None:
    world = united(2)
    a, b = world.connect(0, "a"), world.connect(1, "b")
    world.join(b, "e")
    world.settle()
    world.join(a, "e")
    world.number(world.daemons[0])
    world.change([0], [1])
    first, warning, last = told(a)
    assert names(first) == ["b@p1", "a@p0"]
    assert isinstance(warning, GroupTransitional)
    assert names(warning) == names(last) == ["a@p0"]
    world.change()
    world.settle()
    assert world.broken() == set()


# Clients


def test_a_client_in_a_thousand_groups_disconnects() -> None:
    world = World(2, settings=PLENTY)
    world.change()
    world.settle()
    a, b = world.connect(0, "a"), world.connect(1, "b")
    groups = [f"e{number}" for number in range(1000)]
    world.join(a, *groups)
    world.join(b, *groups)
    world.settle()
    world.vanish(a)
    world.settle(reading=False)
    told = views(b.session.take())
    assert len(told) == 1000
    assert all(names(view) == ["b@p1"] for view in told)
    assert len({view.id for view in told}) == 1000
    machine = world.daemons[1].machine
    assert list(machine.map.clients) == [b.session.client]
    assert world.daemons[0].machine.requests.sessions == {}


def test_a_message_to_64_groups_is_delivered_once() -> None:
    world = World(2, settings=PLENTY)
    world.change()
    world.settle()
    a, b = world.connect(0, "a"), world.connect(1, "b")
    groups = [f"e{number}" for number in range(64)]
    world.join(b, *groups)
    world.settle()
    world.cast(a, *groups)
    world.settle(reading=False)
    (given,) = [event for event in b.session.take() if isinstance(event, Delivered)]
    assert given.groups == tuple(groups)
    assert not [event for event in a.session.take() if isinstance(event, Delivered)]
    assert world.broken() == set()


def test_senders_from_outside_of_an_empty_group() -> None:
    world = united(2)
    a, b = world.connect(0, "a"), world.connect(1, "b")
    world.cast(a, "e")
    world.settle()
    assert world.daemons[0].machine.map.groups == {}, "a message makes no group"
    world.join(b, "e")
    world.settle()
    world.cast(a, "e")
    world.settle(reading=False)
    (given,) = [event for event in b.session.take() if isinstance(event, Delivered)]
    assert (given.sender, given.first) == (a.session.client, 2)
    assert world.broken() == set()


def test_the_same_name_again_at_once_is_another_client() -> None:
    world, (first, other) = with_members(2, "e")
    world.cast(first, "e")
    world.vanish(first)
    again = world.connect(0, "a")
    world.join(again, "e")
    world.private(other, first.session.client)
    world.settle(reading=False)
    last = views(other.session.take())[-1]
    assert [client for client in last.members if client.name == "a@p0"] == [again.session.client]
    assert not [event for event in again.session.take() if isinstance(event, PrivateDelivered)]
    assert world.broken() == set()


def private_to_one_who_is_gone(machine: type[Machine] = Machine) -> World:
    world = united(2, machine)
    a, b = world.connect(0, "a"), world.connect(1, "b")
    world.settle()
    world.vanish(b)
    again = world.connect(1, "b")
    world.settle()
    world.private(a, b.session.client)
    world.settle(reading=False)
    heard = [event for event in a.session.take() if isinstance(event, Undeliverable)]
    assert bool(heard) == (not again.session.take())
    return world


def test_a_private_message_for_a_session_that_is_over() -> None:
    assert private_to_one_who_is_gone().broken() == set()


def test_a_client_dies_with_messages_that_were_taken_and_not_placed() -> None:
    world, (a, b) = with_members(2, "e")
    world.read(b)
    world.cast(a, "e", run=3)
    world.vanish(a)
    world.settle(reading=False)
    events = b.session.take()
    kinds = [type(event) for event in events if isinstance(event, Delivered | GroupView)]
    assert kinds == [Delivered, GroupView], "what it sent, and then that it is gone"
    assert world.broken() == set()


def test_all_leave_a_group_while_another_joins_it() -> None:
    world, clients = with_members(3, "e")
    late = world.connect(0, "late")
    for client in clients:
        world.leave(client, "e")
    world.join(late, "e")
    world.settle(reading=False)
    assert all(isinstance(told(client)[-1], LeftGroup) for client in clients)
    assert names(views(late.session.take())[-1])[-1] == "late@p0"
    assert list(world.daemons[1].machine.map.groups["e"].members) == [late.session.client]
    assert world.broken() == set()


# Sending view delivery


def test_a_view_of_a_blocking_group_waits_for_all_to_flush() -> None:
    world, (a, b) = with_members(2, "v")
    late = world.connect(0, "late")
    world.cast(b, "v")
    world.join(late, "v")
    world.settle(reading=False)
    assert not views(late.session.take()), "b has not answered"
    given, block = [event for event in b.session.take() if isinstance(event, Delivered | Block)]
    assert isinstance(given, Delivered)
    assert isinstance(block, Block)
    world.home(b).machine.requests.ready(b.session, "v", block.view)
    for client in (a, late):
        world.read(client)
    world.settle()
    assert late.views["v"] == a.views["v"] == b.views["v"]
    assert world.broken() == set()


def sends_before_ready(machine: type[Machine] = Machine) -> World:
    """A client sends several messages, and then is ready for the next view."""
    world, (a, _) = with_members(2, "v", machine)
    late = world.connect(1, "late")
    world.join(late, "v")
    world.settle(reading=False)
    for _ in range(8):
        world.cast(a, "v")
    world.settle()
    return world


def apart_within_a_flush(machine: type[Machine] = Machine) -> World:
    """A split and a merge within one flush: both are in one view, and have different messages of it."""
    world, (a, b) = with_members(2, "v", machine)
    world.change([0], [1])
    world.cast(a, "v")
    world.settle(reading=False)
    world.change()
    world.settle(reading=False)
    world.cast(a, "v")
    world.settle(reading=False)
    world.settle()
    assert a.views["v"] == b.views["v"]
    return world


def placed_and_lost(machine: type[Machine] = Machine) -> World:
    """A daemon does something, tells its client, and dies before anybody else has it."""
    world = united(2, machine)
    a = world.connect(0, "a")
    world.settle()
    world.join(a, "e")
    daemon = world.daemons[0]
    assert all(step(daemon) for step in (world.number, world.receive, world.handle))
    world.crash(0)
    world.change([1])
    world.settle()
    return world


def merged(machine: type[Machine] = Machine) -> World:
    world = World(2, machine)
    for number in range(2):
        world.join(world.connect(number, "a"), "e")
    world.settle()
    world.change()
    world.settle()
    return world


def emptied(machine: type[Machine] = Machine) -> World:
    """A group is empty for a moment, and then has other members."""
    world = united(1, machine)
    a, b = world.connect(0, "a"), world.connect(0, "b")
    for client in (a, b):
        world.join(client, "e")
        world.leave(client, "e")
    world.settle()
    return world


def one_goes(machine: type[Machine] = Machine) -> World:
    world, clients = with_members(2, "e", machine)
    world.vanish(clients[0])
    world.settle()
    return world


def to_two_groups(machine: type[Machine] = Machine) -> World:
    world, (a, _) = with_members(2, "e", machine)
    world.join(a, "f")
    world.settle()
    world.cast(a, "e", "f")
    world.settle()
    return world


def joins_while_others_send(machine: type[Machine] = Machine) -> World:
    """Something comes before a join in the order that was not there when it was asked for."""
    world, (_, b) = with_members(2, "e", machine)
    late, other = world.connect(0, "late"), world.connect(1, "other")
    world.settle()
    world.join(other, "e")
    world.number(world.daemons[1])
    world.join(late, "e")
    world.cast(b, "e")
    world.settle()
    return world


def from_outside_to_a_group_that_changes(machine: type[Machine] = Machine) -> World:
    world, _ = with_members(2, "e", machine)
    late, outside = world.connect(1, "late"), world.connect(0, "outside")
    world.settle()
    world.join(late, "e")
    world.number(world.daemons[1])
    world.cast(outside, "e")
    world.settle()
    return world


def one_is_lost(machine: type[Machine] = Machine) -> World:
    world, _ = with_members(2, "e", machine)
    world.crash(1)
    world.change([0])
    world.settle()
    return world


def mute(machine: type[Machine] = Machine) -> World:
    """Somebody never answers at the end of a view; time passes."""
    world = united(2, machine)
    a, b = world.connect(0, "a"), world.connect(1, "b", mute=True)
    for client in (b, a):
        world.join(client, "v")
        world.settle()
    world.now += 2 * world.settings.flush_timeout
    for daemon in world.daemons:
        daemon.machine.now = world.now
        daemon.machine.tend()
    world.settle()
    return world


def slow_in_two_groups(machine: type[Machine] = Machine) -> World:
    """Somebody in two groups never reads; it has too much to take, and time passes."""
    world = World(1, machine, LightweightSettings(notes=True, queue_messages=4))
    a, slow = world.connect(0, "a"), world.connect(0, "slow")
    world.join(a, "e", "f")
    world.join(slow, "e", "f")
    world.settle(reading=False)
    for _ in range(9):
        world.cast(a, "e")
    world.settle(reading=False)
    world.read(a)
    daemon = world.daemons[0]
    for _ in range(2):
        daemon.machine.tend()
        world.now += 2 * world.settings.leave_after
        daemon.machine.now = world.now
    for group in "ef":
        world.cast(a, group)
    world.settle()
    return world


def test_who_is_put_out_is_out_of_all_groups_and_comes_back_as_another() -> None:
    world = slow_in_two_groups()
    [a, slow] = world.daemons[0].clients
    assert slow.session.closed
    assert not a.session.closed
    again = world.connect(0, "slow")
    assert again.session.client.incarnation > slow.session.client.incarnation
    world.join(again, "f")
    world.settle()
    assert world.broken() == set()


def accepted(machine: type[Machine] = Machine) -> World:
    world = united(1, machine)
    world.join(world.connect(0, "a"), "e")
    world.settle()
    return world


def under_way_at_a_merge(machine: type[Machine] = Machine) -> World:
    """What was handed to the ring before a merge is numbered behind it, before the map is agreed on."""
    world = World(2, machine)
    a = world.connect(0, "a")
    world.settle()
    world.join(a, "e")
    for _ in range(3):
        world.cast(a, "e")
    world.number(world.daemons[0])
    world.change()
    world.settle()
    return world


def flush_of_an_interrupted_merge(machine: type[Machine] = Machine) -> World:
    """One daemon has flushed, and then daemons meet."""
    world = World(3, machine)
    world.change([0, 1], [2])
    world.settle()
    a, b, late = world.connect(0, "a"), world.connect(1, "b"), world.connect(0, "late")
    for client in (a, b):
        world.join(client, "v")
        world.settle()
    world.join(late, "v")
    world.settle(reading=False)
    world.read(a)
    world.settle(reading=False)
    world.change()
    world.settle()
    return world


CAUGHT: dict[str, tuple[str, Callable[[type[Machine]], World]]] = {
    "join-at-request": ("lw_view_agreement", joins_while_others_send),
    "census-without-configuration": ("lw_gone", dies_in_the_census),
    "operations-untagged": ("lw_same_view", lambda machine: wander(100, machine)),
    "index-per-group": ("lw_view_agreement", emptied),
    "merge-one-by-one": ("lw_one_event", merged),
    "no-transitional-for-changed": ("lw_one_event", one_is_lost),
    "open-in-the-senders-view": ("lw_open", from_outside_to_a_group_that_changes),
    "private-to-the-next-session": ("lw_private", private_to_one_who_is_gone),
    "flushed-before-the-last-send": ("lw_sending_view", sends_before_ready),
    "delivered-once-per-group": ("lw_order", to_two_groups),
    "settled-when-accepted": ("lw_settled", accepted),
    "gone-forgotten": ("lw_gone", one_goes),
    "ids-of-the-old-configuration": ("lw_view_agreement", joins_in_two_rests),
    "census-without-flush": ("lw_gone", flush_of_an_interrupted_merge),
    "whoever-is-in-the-view": ("lw_sending_view", apart_within_a_flush),
    "mute-never-gone": ("lw_gone", mute),
    "placed-when-ordered": ("lw_settled", placed_and_lost),
    "void-forgotten": ("lw_settled", under_way_at_a_merge),
    "put-out-of-one-group-only": ("one_fate", slow_in_two_groups),
}


@pytest.mark.parametrize("mutant", sorted(MUTANTS["lightweight"].keys() - CLIENTS.keys()))
def test_every_mutant_is_caught_by_name(mutant: str) -> None:
    name, script = CAUGHT[mutant]
    world = script(Machine)
    if script is joins_in_two_rests:  # it ends in two parts
        world.change()
        world.settle()
    assert world.broken() == set()
    assert name in script(MUTANTS["lightweight"][mutant].daemon).broken()
