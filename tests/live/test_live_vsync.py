"""Agreed views among real processes: killed, frozen, started again; every run recorded and judged."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.live.lab.supervisor import Cluster, Process, judge

from semcast.history import History

Scenario = Callable[[Cluster], Awaitable[History]]

ORDERS: dict[str, dict[str, Any]] = {
    "fifo": {},
    "causal": {"order": "causal"},
    "token": {"order": "total"},
    "consensus": {"order": "total", "engine": "consensus"},
    "uniform": {"order": "total", "uniform": True},
}


def play(folder: Path, scenario: Scenario, **settings: object) -> History:
    """Run a scenario in a group of its own."""

    async def run() -> History:
        async with (
            asyncio.timeout(90),
            Cluster(folder, stack="vsync", **{"token_loss": "1s", **settings}) as cluster,
        ):
            return await scenario(cluster)

    return asyncio.run(run())


async def settle(cluster: Cluster) -> None:
    """Wait until all are together for long enough to get a mark of each; one that was put out missed some."""
    while True:
        await cluster.together()
        try:
            await cluster.exchange_marks(seconds=6.0)
        except AssertionError as error:
            assert all(process.running for process in cluster.members.values()), "somebody has died"
            print("not settled:", error)
        else:
            return


async def finish(cluster: Cluster) -> History:
    """Let everybody get everything, leave, and judge."""
    await cluster.quiet()
    await settle(cluster)
    await cluster.leave()
    return judge(cluster.folder)


def same_states(*members: Process) -> int:
    """In how many views several members had a state at the beginning; it was the same."""
    states: dict[int, set[tuple[int, ...]]] = {}
    seen: dict[int, int] = {}
    for member in members:
        for view in member.said("view"):
            states.setdefault(view["number"], set()).add(tuple(view["state"]))
            seen[view["number"]] = seen.get(view["number"], 0) + 1
    assert all(len(found) == 1 for found in states.values()), states
    return sum(count > 1 for count in seen.values())


@pytest.mark.parametrize("order", ORDERS)
def test_five_that_start_at_the_same_moment_end_in_one_view(tmp_path: Path, order: str) -> None:
    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abcde")
        await cluster.together()
        await asyncio.gather(*(member.ask("send", count=200) for member in cluster.members.values()))
        return await finish(cluster)

    history = play(tmp_path, scenario, minimum=3, **ORDERS[order])
    assert history.info.only.stack == "vsync"
    assert history.info.only.order == ORDERS[order].get("order", "fifo")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("place", [0, 1], ids=["rank 0", "another"])
def test_sigkill_under_traffic(tmp_path: Path, order: str, place: int) -> None:
    """The first of the view coordinates its changes, and holds the token at first."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc")
        await cluster.together()
        await cluster.traffic(rate=500, items=5)
        await settle(cluster)
        await cluster.kill(cluster["a"].view()[place])
        await cluster.together()
        await settle(cluster)
        return await finish(cluster)

    play(tmp_path, scenario, minimum=2, **ORDERS[order])


@pytest.mark.parametrize("order", ORDERS)
def test_one_that_was_frozen_is_put_out_and_comes_back(tmp_path: Path, order: str) -> None:
    """The others go on without it; when it wakes it is told so, and goes on as another incarnation."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc")
        await cluster.together()
        await cluster.traffic(rate=500)
        await settle(cluster)
        for frozen in "ba":
            cluster[frozen].signal(signal.SIGSTOP)
            others = [name for name in "abc" if name != frozen]
            await cluster.together(*others)
            await cluster.flowing(*others)
            cluster[frozen].signal(signal.SIGCONT)
            member = cluster[frozen]
            await member.until(lambda m=member: bool(m.said("rejoining")), "was put out")  # type: ignore[misc]
            await cluster.together()
            await settle(cluster)
            former, now = member.said("rejoining")[-1]["incarnations"]
            assert former < now
        return await finish(cluster)

    history = play(tmp_path, scenario, minimum=2, **ORDERS[order])
    assert sum(process.name == "b" for process in history.processes) == 2


@pytest.mark.parametrize("order", ["fifo", "token"])
def test_a_restart_storm(tmp_path: Path, order: str) -> None:
    """As long as a majority of each view lives, the group does."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abcd", options={"state": True})
        await cluster.together()
        await cluster.traffic(rate=300)
        await settle(cluster)
        dead = []
        for name in "abc":
            dead.append(await cluster.kill(name))
            await cluster.start(name, options={"state": True})
            await cluster[name].until(lambda n=name: bool(cluster[n].view()), "was let in")  # type: ignore[misc]
            await cluster.traffic(name, rate=300)
        await cluster.together()
        await settle(cluster)
        everybody = [*dead, *cluster.members.values()]
        history = await finish(cluster)
        assert same_states(*everybody) > 3
        return history

    play(tmp_path, scenario, minimum=3, **ORDERS[order])


@pytest.mark.parametrize("order", ORDERS)
def test_a_joiner_gets_the_state_though_the_provider_dies(tmp_path: Path, order: str) -> None:
    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc", options={"state": True})
        await cluster.together()
        await cluster.traffic(rate=300)
        await settle(cluster)
        [joiner] = await cluster.start("d", options={"state": True})
        await joiner.until(lambda: bool(joiner.said("restored")), "got the state")
        await settle(cluster)
        dead = await cluster.kill(cluster["d"].view()[0])
        await cluster.start("e", options={"state": True})
        await cluster.together()
        await settle(cluster)
        everybody = [dead, *cluster.members.values()]
        history = await finish(cluster)
        assert same_states(*everybody) > 2
        return history

    play(tmp_path, scenario, minimum=2, **ORDERS[order])


@pytest.mark.parametrize("order", ["fifo", "token", "uniform"])
def test_who_was_frozen_gets_the_state_of_the_others(tmp_path: Path, order: str) -> None:
    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc", options={"state": True})
        await cluster.together()
        await cluster.traffic(rate=300)
        await settle(cluster)
        member = cluster["c"]
        member.signal(signal.SIGSTOP)
        await cluster.together("a", "b")
        await cluster.flowing("a", "b")
        member.signal(signal.SIGCONT)
        await member.until(lambda: bool(member.said("restored")), "got the state")
        await cluster.together()
        await settle(cluster)
        everybody = list(cluster.members.values())
        history = await finish(cluster)
        assert same_states(*everybody) > 2
        return history

    play(tmp_path, scenario, minimum=2, **ORDERS[order])


def test_voluntary_leaves_under_traffic(tmp_path: Path) -> None:
    """The leaver's last messages reach everybody; the first of the view goes, too."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abcd")
        await cluster.together()
        await cluster.traffic(rate=300)
        await settle(cluster)
        for leaver in "ca":
            last = f"last words of {leaver}"
            await cluster[leaver].ask("quiet")
            await cluster[leaver].ask("mark", text=last)
            await cluster.leave(leaver)
            await asyncio.gather(*(member.until_marks([last]) for member in cluster.members.values()))
            await cluster.together()
        await settle(cluster)
        return await finish(cluster)

    play(tmp_path, scenario, minimum=3)


def test_everybody_leaves_at_once_in_the_middle_of_it(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abcd")
        await cluster.together()
        await cluster.traffic(rate=3000)
        await settle(cluster)
        await asyncio.gather(*(member.leave() for member in cluster.members.values()))
        return judge(cluster.folder)

    play(tmp_path, scenario, minimum=3)


def test_a_majority_that_dies_blocks_the_rest_which_says_so(tmp_path: Path) -> None:
    """Nobody can tell a majority that died from one that is merely out of reach."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc")
        await cluster.together()
        await cluster.traffic(rate=300)
        await settle(cluster)
        await cluster.kill("a")
        await cluster.kill("b")
        alone = cluster["c"]
        await alone.until(lambda: bool(alone.said("minority")), "was told")
        assert alone.said("minority")[0]["needed"] == 2
        stats = await alone.ask("stats")
        assert stats["phase"] == "minority"
        assert len(alone.view()) == 3
        await cluster.leave("c")
        return judge(cluster.folder)

    play(tmp_path, scenario, minimum=2)


def test_large_messages_among_small_ones(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc")
        await cluster.together()
        for size in (0, 1, 959, 960, 961, 5000, 65_536, 1 << 20):
            await cluster["b"].ask("send", count=2, size=size, items=size % 2)
        await settle(cluster)
        numbers = [(name, await cluster[name].tell("send", count=4, size=1 << 19)) for name in "bc"]
        await cluster.kill("a")
        for name, number in numbers:
            assert "error" not in await cluster[name].answer(number)
        await cluster.together()
        await settle(cluster)
        for name in "bc":
            assert (await cluster[name].ask("stats"))["corrupt"] == 0
        return await finish(cluster)

    play(tmp_path, scenario, minimum=2, datagram=1400)
