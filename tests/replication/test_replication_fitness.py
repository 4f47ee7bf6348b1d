"""A server whose clock or whose versions do not fit those of the others makes no actions, and says why."""

import pytest
from tests.replication.test_replication_strangers import done, machine, server

from semcast.core.ids import MILLISECOND
from semcast.lab import Lab
from semcast.replication.fitness import unfit
from semcast.replication.ids import ConfId, Server
from semcast.replication.knowledge import Prim
from semcast.replication.messages import State

NOW = 1_800_000_000_000
OLD, NEW = ("SQLite 3.40.1",), ("SQLite 3.45.0",)


def states(*told: tuple[int, tuple[str, ...]]) -> dict[Server, State]:
    found = {}
    for name, (wall, versions) in zip("abcd", told, strict=False):
        conf, who = ConfId(1, None), Server(name, 1)  # type: ignore[arg-type]
        found[who] = State(conf, who, 0, b"", 0, (), 0, Prim(), None, None, (), (), (), 1, wall, versions)
    return found


def judged(*told: tuple[int, tuple[str, ...]], allow_mixed: bool = False) -> str:
    """Who does not fit."""
    found = states(*told)
    return "".join(each.name for each in found if unfit(each, found, allow_mixed=allow_mixed))


@pytest.mark.parametrize(
    ("walls", "who"),
    [
        ((NOW, NOW + 9_000, NOW - 9_000), ""),
        ((NOW, NOW + 3_600_000, NOW + 5), "b"),
        ((NOW, NOW - 11_000, NOW + 5), "b"),
        ((NOW + 3_600_000, NOW), "a"),
        ((NOW, 0, 0), ""),
        ((0, NOW + 3_600_000, NOW, NOW), "b"),
    ],
)
def test_clocks(walls: tuple[int, ...], who: str) -> None:
    assert judged(*((wall, ()) for wall in walls)) == who


@pytest.mark.parametrize(
    ("versions", "who"),
    [
        ((OLD, OLD, OLD), ""),
        ((OLD, NEW, OLD), "b"),
        ((NEW, OLD, NEW), "b"),
        ((OLD, NEW), "b"),
        ((OLD, ()), ""),
    ],
)
def test_versions(versions: tuple[tuple[str, ...], ...], who: str) -> None:
    assert judged(*((NOW, each) for each in versions)) == who
    assert judged(*((NOW, each) for each in versions), allow_mixed=True) == ""


def test_who_does_not_fit_makes_no_actions_and_does_those_of_others() -> None:
    lab = Lab(latency=MILLISECOND)
    seats = {name: server(lab, name, "abc") for name in "abc"}
    for name, seat in seats.items():
        machine(seat).vitals.wall = lambda name=name: NOW + 60_000 * (name == "b")  # type: ignore[misc]
    lab.start()
    lab.run(1000 * MILLISECOND)
    for name, seat in seats.items():
        seat.multicast(name.encode(), safe=True)
    lab.run(500 * MILLISECOND)
    assert [sorted(done(seat)) for seat in seats.values()] == [[b"a", b"c"]] * 3
    assert machine(seats["b"]).machine.trouble.startswith("the clock of this server is 60 s ahead")
    held = seats["b"].stack.held_back()
    assert held is not None
    assert held.by == seats["b"].member
