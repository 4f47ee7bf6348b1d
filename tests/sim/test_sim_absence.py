"""Members that start late, are away and come back, and links that fail: every stack copes with them."""

from random import Random

import msgspec
import pytest

from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.protocols.semantic import Settings
from semcast.protocols.vsync import VsyncSettings
from semcast.sim.absence import Absence, absence, with_absences
from semcast.sim.cluster import QUIET, Cluster
from semcast.sim.faults import Crash, Disconnect, LinkDown, LinkLoss, Reconnect, Recover, ends_at
from semcast.sim.mutants import Mutant
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.routed import RoutedNetwork
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.scheduler import Scheduler
from semcast.sim.simulate import build, simulate
from semcast.sim.stacks import s_rm
from semcast.sim.swarm import examine, scenario_of
from semcast.sim.workloads import Source, constant, plain

TRAFFIC = (Traffic(0, "items", "constant", 100.0, 60), Traffic(1, "plain", "constant", 100.0, 60))
BASE = Scenario(seed=3, stack="s-rm", size=4, buffer=200, traffic=TRAFFIC, duration=SECOND)
BASE = msgspec.structs.replace(BASE, vsync=VsyncSettings(minimum=3))
STACKS = ("s-rm", "reliable", "ring", "vsync")


@pytest.mark.parametrize("stack", STACKS)
def test_who_was_away_has_everything_in_the_end(stack: str) -> None:
    away = absence(200 * MILLISECOND, 300 * MILLISECOND, 3)
    finding = examine(msgspec.structs.replace(BASE, stack=stack, faults=away))
    assert finding.clean, finding.broken


@pytest.mark.parametrize("stack", STACKS)
def test_any_swarm_may_have_absences(stack: str) -> None:
    for seed in range(3):
        scenario = with_absences(Random(f"absences/{stack}/{seed}"), scenario_of(stack, seed))
        assert any(isinstance(fault, Disconnect) for fault in scenario.faults)
        finding = examine(scenario)
        assert finding.clean, (scenario, finding.broken)


def test_a_sender_that_is_away_is_heard_when_it_is_back() -> None:
    away = absence(200 * MILLISECOND, 500 * MILLISECOND, 0)
    traffic = tuple(Traffic(sender, "plain", "constant", 100.0, 60) for sender in (0, 1))
    finding = examine(msgspec.structs.replace(BASE, traffic=traffic, faults=away))
    assert finding.clean, finding.broken
    assert [stats.delivered for stats in finding.outcome.stacks] == [120] * 4


def test_who_restarts_while_it_is_away_is_let_in_when_it_is_back() -> None:
    at = 200 * MILLISECOND
    crash = Crash(at + 50 * MILLISECOND, 3, 0), Recover(at + 100 * MILLISECOND, 3)
    faults = (*absence(at, 400 * MILLISECOND, 3), *crash)
    finding = examine(msgspec.structs.replace(BASE, stack="ring", faults=faults))
    assert finding.clean, finding.broken


@pytest.mark.parametrize("stack", ["s-rm", "ring", "vsync"])
def test_who_starts_late_catches_up(stack: str) -> None:
    finding = examine(msgspec.structs.replace(BASE, stack=stack, late={3: 400 * MILLISECOND}))
    assert finding.clean, finding.broken


def told(notice: Nanos | None) -> tuple[list[tuple[str, Nanos]], int]:
    """What the stack of a member that is away was told, and how many packets were lost meanwhile."""
    heard: list[tuple[str, Nanos]] = []
    scheduler = Scheduler()
    network = SwitchedNetwork(scheduler, Random(1), 3, Conditions())
    cluster = Cluster(
        scheduler,
        network,
        s_rm(Settings(buffer_messages=50, senders=(0,))),
        size=3,
        rng=Random(2),
        programs=Programs(sources={0: Source(constant(100.0), plain(), 50)}, observe=False),
        absence=Absence(
            goes=lambda _stack, now: heard.append(("goes", now)),
            returns=lambda _stack, now: heard.append(("returns", now)),
        ),
    )
    cluster.schedule(absence(100 * MILLISECOND, 50 * MILLISECOND, 2, notice=notice))
    cluster.start()
    cluster.run(SECOND)
    assert [host.stack.stats.delivered for host in cluster.hosts] == [50, 50, 50]
    return heard, network.lost


def test_a_program_that_knows_tells_its_stack_before_and_after() -> None:
    heard, lost = told(10 * MILLISECOND)
    assert heard == [("goes", 100 * MILLISECOND), ("returns", 160 * MILLISECOND)]
    assert lost > 5


def test_a_program_that_does_not_know_says_nothing() -> None:
    heard, lost = told(None)
    assert heard == []
    assert lost > 5


def test_faults_say_when_they_are_over() -> None:
    away = absence(100, 50, 2, notice=7)
    assert away == (Disconnect(100, 2, 7), Reconnect(157, 2, announced=True))
    assert [ends_at(fault) for fault in away] == [107, 157]


@pytest.mark.parametrize("fault", [LinkLoss(100 * MILLISECOND, 400 * MILLISECOND, 0.3), None])
def test_links_that_lose_packets_lose_no_messages(fault: LinkLoss | None) -> None:
    losing = msgspec.structs.replace(BASE, network="routed", link_loss=0.02, queue_packets=50)
    finding = examine(msgspec.structs.replace(losing, faults=() if fault is None else (fault,)))
    assert finding.clean, finding.broken


def test_a_region_that_is_cut_off_gets_everything_later() -> None:
    """The wire of a regional node: all sites behind it are away at once, and hear each other."""
    routed = msgspec.structs.replace(BASE, network="routed", size=8)
    network = build(routed, Mutant()).network
    assert isinstance(network, RoutedNetwork)
    wires = [ends for ends in network.links if ends[0] < 3 <= ends[1] < 7]
    for nodes in wires[:2]:
        down = LinkDown(100 * MILLISECOND, 500 * MILLISECOND, nodes)
        finding = examine(msgspec.structs.replace(routed, faults=(down,)))
        assert finding.clean, finding.broken


def test_a_group_has_no_more_members_than_its_family_allows() -> None:
    with pytest.raises(ValueError, match="ring: 1025 members, a group has 1024 at most"):
        simulate(msgspec.structs.replace(BASE, stack="ring", size=1025))


@pytest.mark.parametrize("quiet", [QUIET, 3 * QUIET])
def test_a_family_says_how_long_quiet_lasts(quiet: Nanos) -> None:
    scheduler = Scheduler()
    cluster = Cluster(
        scheduler,
        SwitchedNetwork(scheduler, Random(1), 2, Conditions()),
        s_rm(Settings(buffer_messages=50, senders=(0,))),
        size=2,
        rng=Random(2),
        programs=Programs(sources={0: Source(constant(100.0), plain(), 10)}, observe=False),
        quiet=quiet,
    )
    cluster.start()
    cluster.run(SECOND)
    assert cluster.settle(60 * SECOND)
    assert scheduler.now == SECOND + quiet
