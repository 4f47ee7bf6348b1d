"""Simulated networks: who gets what, when, and what the faults do."""

from pathlib import Path
from random import Random

import pytest

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND
from semcast.pipeline.data import data_folder
from semcast.sim.networks import FRAME_GAP, Conditions, Network, Packet, SharedSegment, SwitchedNetwork
from semcast.sim.routed import RoutedNetwork
from semcast.sim.scheduler import Scheduler
from semcast.sim.topologies import (
    Edge,
    Topology,
    TopologyError,
    neighbours_of,
    read_links,
    shortest_paths,
    surveyed,
    thirty,
    tiered,
)

Arrivals = list[tuple[int, int]]


def watch(network: Network, scheduler: Scheduler) -> Arrivals:
    arrivals: Arrivals = []
    for host in range(network.hosts):
        network.attach(host, lambda _packet, host=host: arrivals.append((host, scheduler.now)))  # type: ignore[misc]
    return arrivals


def packet(source: int, size: int = 1204) -> Packet:
    return Packet(source, bytes(size), None)  # 1250 bytes on the wire: 0.1 ms at 100 Mbit/s


def switched(hosts: int = 3, **conditions: float) -> tuple[Scheduler, SwitchedNetwork, Arrivals]:
    scheduler = Scheduler()
    settings = Conditions(**conditions)  # type: ignore[arg-type]
    network = SwitchedNetwork(scheduler, Random(1), hosts, settings, latency=10 * MICROSECOND)
    return scheduler, network, watch(network, scheduler)


def test_ties_go_in_the_order_they_were_asked_for() -> None:
    scheduler = Scheduler()
    done: list[str] = []
    for name in "abc":
        scheduler.at(5, done.append, name)
    scheduler.at(3, done.append, "first")
    scheduler.run(10)
    assert done == ["first", "a", "b", "c"]
    assert scheduler.now == 10


def test_the_past_is_now() -> None:
    scheduler = Scheduler()
    scheduler.run(100)
    done: list[int] = []
    scheduler.at(5, lambda: done.append(scheduler.now))
    scheduler.run(100)
    assert done == [100]


def test_a_multicast_takes_the_senders_link_once() -> None:
    scheduler, network, arrivals = switched()
    network.transmit(0, packet(0), None)
    network.transmit(0, packet(0), 1)
    scheduler.run(SECOND)
    ms = MILLISECOND // 10
    assert arrivals == [(1, 2 * ms + 10_000), (2, 2 * ms + 10_000), (1, 3 * ms + 10_000)]
    assert network.packets == 2


def test_two_senders_share_the_receivers_link() -> None:
    scheduler, network, arrivals = switched()
    network.transmit(0, packet(0), 2)
    network.transmit(0, packet(1), 2)
    scheduler.run(SECOND)
    assert [at for _, at in arrivals] == [210 * MICROSECOND, 310 * MICROSECOND]


def test_a_slow_link_drops_what_its_queue_cannot_hold() -> None:
    scheduler, network, arrivals = switched()
    network.limit_host(1, 1_000_000)
    for number in range(400):
        network.transmit(number * 100 * MICROSECOND, packet(0), None)
    scheduler.run(10 * SECOND)
    got = [sum(1 for host, _ in arrivals if host == which) for which in (1, 2)]
    assert got[1] == 400
    assert 200 < got[0] < 230, "256 KiB of queue, and a hundredth of the bandwidth"
    assert network.lost == 400 - got[0]


def test_what_is_queued_goes_at_the_new_speed() -> None:
    scheduler, network, arrivals = switched()
    network.limit_host(1, 100_000)
    for _ in range(10):
        network.transmit(0, packet(0), 1)
    scheduler.run(MILLISECOND * 2)
    network.limit_host(1, 100_000_000)
    network.transmit(scheduler.now, packet(0), 1)
    scheduler.run(SECOND)
    assert arrivals[0][1] < 5 * MILLISECOND


def test_a_shared_segment_carries_one_packet_at_a_time() -> None:
    scheduler = Scheduler()
    network = SharedSegment(scheduler, Random(1), 3, Conditions(), latency=0)
    arrivals = watch(network, scheduler)
    network.transmit(0, packet(0), None)
    network.transmit(0, packet(1), None)
    scheduler.run(SECOND)
    one = MILLISECOND + FRAME_GAP * 800  # ns a byte at 10 Mbit/s
    assert arrivals == [(1, one), (2, one), (0, 2 * one), (2, 2 * one)]
    with pytest.raises(ValueError, match="no link for each host"):
        network.limit_host(0, 1)


def test_cuts_go_one_way() -> None:
    scheduler, network, arrivals = switched()
    network.cut([(0, 1)])
    network.transmit(0, packet(0), None)
    network.transmit(0, packet(1), 0)
    scheduler.run(SECOND)
    assert sorted(host for host, _ in arrivals) == [0, 2]
    network.mend([(0, 1)])
    network.transmit(scheduler.now, packet(0), 1)
    scheduler.run(2 * SECOND)
    assert arrivals[-1][0] == 1


def test_loss_duplication_and_jitter_happen_as_often_as_they_should() -> None:
    scheduler, network, arrivals = switched(loss=0.2, duplication=0.1, jitter=MILLISECOND)
    for number in range(2000):
        network.transmit(number * MILLISECOND, packet(0, 100), 1)
    scheduler.run(10 * SECOND)
    assert abs(network.lost / 2000 - 0.2) < 0.03
    assert abs(len(arrivals) / (2000 - network.lost) - 1.1) < 0.03


def test_jitter_reorders() -> None:
    scheduler, network, _ = switched(jitter=5 * MILLISECOND)
    order: list[int] = []
    network.attach(1, lambda packet: order.append(len(packet.data)))
    for number in range(50):
        network.transmit(number * 100 * MICROSECOND, packet(0, number), 1)
    scheduler.run(SECOND)
    assert sorted(order) == list(range(50)) != order


def test_one_host_can_be_disturbed_alone() -> None:
    scheduler, network, arrivals = switched()
    network.disturb_host(1, delay=5 * MILLISECOND)
    network.transmit(0, packet(0), None)
    scheduler.run(SECOND)
    assert [host for host, _ in arrivals] == [2, 1]
    network.disturb_host(1, loss=1.0)
    network.transmit(scheduler.now, packet(0), 1)
    scheduler.run(2 * SECOND)
    assert len(arrivals) == 2


LINE = Topology(
    4,
    (
        Edge(0, 1, 1 * MILLISECOND, 10_000_000),
        Edge(1, 2, 2 * MILLISECOND, 10_000_000),
        Edge(1, 3, 3 * MILLISECOND, 10_000_000),
        Edge(0, 3, 9 * MILLISECOND, 10_000_000),
    ),
)


def test_routes_are_the_shortest() -> None:
    assert shortest_paths(neighbours_of(LINE), 0) == [None, 0, 1, 1]


def test_a_multicast_crosses_each_link_of_its_tree_once() -> None:
    scheduler = Scheduler()
    network = RoutedNetwork(scheduler, Random(1), Conditions(), LINE, [0, 2, 3])
    arrivals = watch(network, scheduler)
    network.transmit(0, packet(0), None)
    scheduler.run(SECOND)
    ms = MILLISECOND
    assert arrivals == [(1, 5 * ms), (2, 6 * ms)], "1 ms of transmission on each of two links"


def test_what_is_far_away_does_not_delay_what_is_near() -> None:
    scheduler = Scheduler()
    network = RoutedNetwork(scheduler, Random(1), Conditions(), LINE, [0, 1, 2])
    arrivals = watch(network, scheduler)
    network.transmit(0, packet(0), 2)
    network.transmit(0, packet(1), 2)
    scheduler.run(SECOND)
    assert [at for _, at in arrivals] == [3 * MILLISECOND, 5 * MILLISECOND]


def line(places: list[int], **settings: float) -> tuple[Scheduler, RoutedNetwork, Arrivals]:
    scheduler = Scheduler()
    queue = settings.pop("queue_packets", None)
    conditions = Conditions(**settings)  # type: ignore[arg-type]
    packets = None if queue is None else int(queue)
    network = RoutedNetwork(scheduler, Random(1), conditions, LINE, places, queue_packets=packets)
    return scheduler, network, watch(network, scheduler)


def test_links_count_what_they_carry() -> None:
    scheduler, network, _ = line([0, 2, 3])
    for _ in range(3):
        network.transmit(0, packet(0), None)
    network.transmit(0, packet(1), 2)
    scheduler.run(SECOND)
    used = {ends: link.packets for ends, link in network.links.items() if link.packets}
    assert used == {(0, 1): 3, (1, 2): 3, (1, 3): 4, (2, 1): 1}
    first = network.links[0, 1]
    assert (first.bytes, first.queued, first.lost, first.dropped) == (3 * 1250, 2, 0, 0)


def test_what_is_lost_on_a_link_is_lost_for_all_behind_it() -> None:
    scheduler, network, arrivals = line([0, 2, 2, 3], link_loss=0.2)
    for number in range(2000):
        network.transmit(number * 2 * MILLISECOND, packet(0), None)
    scheduler.run(10 * SECOND)
    got = [[at for host, at in arrivals if host == which] for which in (1, 2, 3)]
    assert got[0] == got[1], "both are behind the same links"
    assert abs(len(got[2]) / 2000 - 0.8 * 0.8) < 0.04
    root, left = network.links[0, 1], network.links[1, 2]
    assert root.packets == 2000
    assert abs(root.lost / 2000 - 0.2) < 0.03
    assert left.packets == 2000 - root.lost
    assert network.lost == 3 * root.lost + 2 * left.lost + network.links[1, 3].lost


def test_a_queue_of_so_many_packets_drops_the_next() -> None:
    scheduler, network, arrivals = line([0, 1], queue_packets=3)
    for _ in range(6):
        network.transmit(0, packet(0), 1)
    scheduler.run(MILLISECOND)
    network.transmit(scheduler.now, packet(0), 1)  # the first has left, and another is under way
    scheduler.run(SECOND)
    link = network.links[0, 1]
    assert (link.packets, link.dropped, link.queued, network.lost) == (5, 2, 4, 2)
    assert [at for _, at in arrivals] == [number * MILLISECOND for number in (2, 3, 4, 5, 6)]


def test_a_wire_that_is_down_cuts_off_who_is_behind_it() -> None:
    scheduler, network, arrivals = line([0, 2, 3])
    network.disturb_link(1, 2, 1.0)
    network.transmit(0, packet(0), None)
    network.transmit(0, packet(1), 0)
    scheduler.run(SECOND)
    assert [host for host, _ in arrivals] == [2]
    network.disturb_link(1, 2, 0.0)
    network.transmit(scheduler.now, packet(1), None)
    scheduler.run(2 * SECOND)
    assert sorted(host for host, _ in arrivals) == [0, 2, 2]
    with pytest.raises(ValueError, match="no wire 0-1"):
        switched()[1].disturb_link(0, 1, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_every_host_is_reached_once_over_the_shortest_way(seed: int) -> None:
    """Several hosts at one node, nodes without any, sites with one wire and nodes with many."""
    rng = Random(seed)
    topology = tiered(rng, 3, 4, 10)
    places = [rng.randrange(topology.nodes) for _ in range(20)]
    scheduler = Scheduler()
    network = RoutedNetwork(scheduler, rng, Conditions(), topology, places)
    arrivals = watch(network, scheduler)
    for source in range(20):
        del arrivals[:]
        began = scheduler.now
        network.transmit(began, packet(source), None)
        scheduler.run(began + SECOND)
        together = {host: at - began for host, at in arrivals}
        assert len(arrivals) == 19 == len(together)
        for dest, took in together.items():
            del arrivals[:]
            began = scheduler.now
            network.transmit(began, packet(source), dest)
            scheduler.run(began + SECOND)
            assert [(host, at - began) for host, at in arrivals] == [(dest, took)]


def test_a_thousand_sites_need_few_trees() -> None:
    scheduler, rng = Scheduler(), Random(2)
    network = RoutedNetwork(scheduler, rng, Conditions(), tiered(rng, 3, 9, 1000), range(12, 1012))
    arrivals = watch(network, scheduler)
    for source in range(1, 1000):
        network.transmit(source * MILLISECOND, packet(source), rng.randrange(source))
    network.transmit(0, packet(0), None)
    scheduler.run(10 * SECOND)
    assert len(arrivals) == 2 * 999
    assert len(network._parents) <= 9


def test_topologies_must_be_connected() -> None:
    with pytest.raises(ValueError, match="not connected"):
        Topology(3, (Edge(0, 1, 1, 1),)).check()
    with pytest.raises(ValueError, match="nodes go from 0 to 1"):
        Topology(2, (Edge(0, 5, 1, 1),)).check()
    with pytest.raises(ValueError, match="sit at nodes"):
        RoutedNetwork(Scheduler(), Random(1), Conditions(), LINE, [7])
    tiered(Random(3), 3, 4, 10).check()


def test_links_are_read_by_name() -> None:
    table = ["topology,src,dst,km,latency_ms", "A,0,1,1,2.5", "B,9,8,1,1"]
    assert read_links(table, "A").edges == (Edge(0, 1, 2_500_000, 100_000_000),)
    with pytest.raises(ValueError, match="no topology named 'C'"):
        read_links(table, "C")


@pytest.mark.parametrize("seed", range(5))
def test_thirty_nodes_in_three_tiers(seed: int) -> None:
    topology, places = thirty(seed, members=20)
    topology.check()
    assert topology == thirty(seed).topology != thirty(seed + 1).topology
    assert {edge.bandwidth for edge in topology.edges} == {100_000_000}
    degrees = [len(each) for each in neighbours_of(topology)]
    assert (len(degrees), degrees[12:]) == (30, [1] * 18)
    assert places == (*range(12, 30), 12, 13)


@pytest.mark.parametrize(("name", "nodes"), [("Digex", 31), ("Geant2009", 34), ("Arpanet19728", 29)])
def test_real_networks_carry_packets_from_anywhere_to_anywhere(name: str, nodes: int) -> None:
    links = (data_folder() or Path()) / "topologies" / "links.csv"
    if not links.exists():
        pytest.skip(f"no {links}: set SEMCAST_TRACES to the folder with topologies/links.csv")
    topology, places = surveyed(links, name, seed=1)
    assert topology.nodes == nodes
    assert len(set(places)) == 18
    scheduler = Scheduler()
    network = RoutedNetwork(scheduler, Random(1), Conditions(), topology, places)
    arrivals = watch(network, scheduler)
    for source in range(18):
        network.transmit(source * SECOND, packet(source), None)
    scheduler.run(20 * SECOND)
    assert len(arrivals) == 18 * 17


def test_a_network_that_is_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    with pytest.raises(TopologyError, match=r"topology Digex in .*links.csv: .*No such file"):
        surveyed(path, "Digex", 1)
    path.write_text("topology,src,dst,latency_ms\nA,0,1,2.5\n")
    with pytest.raises(TopologyError, match="no topology named 'Digex'"):
        surveyed(path, "Digex", 1)
    assert surveyed(path, "A", 1, members=3).topology.nodes == 2
    path.write_text("topology,src,dst\nA,0,1\n")
    with pytest.raises(TopologyError, match="latency_ms"):
        surveyed(path, "A", 1)
