"""A service that is slower than the order of all: its server holds its own clients back, or goes outside."""

from tests.replication.world import World, founded

from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.core.outbox import Outbox
from semcast.history import History
from semcast.protocols.ring import RingSettings, SlowPolicy
from semcast.replication.actions import Run, plain
from semcast.replication.backlog import Backlog
from semcast.replication.colours import Colours
from semcast.replication.ids import Creator, Server
from semcast.replication.outside import Outside
from semcast.replication.parcels import Parcels
from semcast.replication.settings import ReplicationSettings
from semcast.sim.faults import AnyFault, DiskStall
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.swarm import examine
from semcast.specs.replication.kinds import PHASE

A = Creator(Server("a", 1), 1)


def colours_with(*sizes: int) -> Colours:
    colours = Colours()
    for first, size in enumerate(sizes, 1):
        colours.mark_green(Run(A, first, first, [plain(bytes(size - 1))]))
    return colours


def test_what_waits_for_the_service_is_counted_in_bytes_also_behind_what_is_forgotten() -> None:
    colours = colours_with(10, 20, 30, 40)
    assert [colours.bytes_behind(given) for given in range(5)] == [100, 90, 70, 40, 0]
    colours.trim(2)
    assert [colours.bytes_behind(given) for given in (2, 3, 4)] == [70, 40, 0]


def test_a_server_is_slow_at_a_quarter_and_full_at_the_bound_for_a_while() -> None:
    backlog, colours = Backlog(100), colours_with(*[20] * 6)
    found = []
    for at, given in enumerate((6, 5, 4, 1, 0, 0, 1)):
        backlog.look(at * 200 * MILLISECOND, colours, given)
        found.append((backlog.slow, backlog.full))
    assert found == [(False, False)] * 2 + [(True, False)] * 3 + [(True, True), (True, False)]


def run(
    sender: int,
    delays: dict[int, Nanos],
    backlog: int = 1 << 20,
    faults: tuple[AnyFault, ...] = (),
) -> History:
    settings = ReplicationSettings(
        names=("p0", "p1", "p2"),
        backlog=backlog,
        run_bytes=100,
        pull_every=20 * MILLISECOND,
        patience=100 * MILLISECOND,
        notes=True,
    )
    found = examine(
        Scenario(
            seed=1,
            stack="replication",
            size=3,
            ring=RingSettings(policy=SlowPolicy.BLOCK, token_loss=60 * MILLISECOND, hold=5 * MILLISECOND),
            settings=settings,
            traffic=(Traffic(sender, "plain", "constant", 200.0, 120, size=100, safe_every=1),),
            app_delays=delays,
            disks=True,
            faults=faults,
            duration=SECOND,
        )
    )
    assert found.broken == []
    return found.outcome.history


def phases(history: History, name: str) -> list[str]:
    return [
        event.level or "" for event in history.events if event.kind is PHASE and event.process.name == name
    ]


def test_who_is_slower_than_the_others_goes_outside_and_comes_back_when_it_keeps_up() -> None:
    history = run(0, {2: 20 * MILLISECOND}, backlog=2000)
    found = phases(history, "p2")
    assert "out" in found
    assert found[-1] == "reg-prim", "it comes back"
    assert "out" not in phases(history, "p0"), "nobody else has to go"


def test_with_room_it_stays() -> None:
    assert "out" not in phases(run(0, {2: 20 * MILLISECOND}), "p2")


def test_who_is_slow_lets_its_own_clients_wait_and_stays() -> None:
    history = run(2, {2: 20 * MILLISECOND}, backlog=2000)
    assert "out" not in phases(history, "p2")


def test_the_disks_of_all_take_too_long_and_all_meet_inside_again() -> None:
    stalls = tuple(DiskStall(400 * MILLISECOND, 300 * MILLISECOND, member) for member in range(3))
    history = run(0, {}, faults=stalls)
    for name in ("p0", "p1", "p2"):
        found = phases(history, name)
        assert "out" in found
        assert found[-1] == "reg-prim"


def test_who_hears_nobody_inside_goes_back_by_itself_unless_it_was_never_inside() -> None:
    """All may have gone outside at once; then all waited for ever (swarm seeds 10, 19, 24)."""
    world = founded(3)
    for node, goes in ((world.nodes["a1"], True), (World(1).nodes["a1"], False)):
        back: list[bool] = []
        outside = Outside(
            node.machine,
            Outbox(),
            Parcels(1000, SECOND),
            lambda back=back: back.append(True),  # type: ignore[misc]
            lambda _: None,
            lambda: True,
        )
        for _ in range(20):
            outside.ask()
        node.drain()
        assert back == [], "what it has must be on its disk first"
        node.sync_all()
        assert bool(back) is goes
