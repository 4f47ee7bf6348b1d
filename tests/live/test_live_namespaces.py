"""Hosts of their own on a network that is cut, lossy or slow; every run recorded and judged."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.live.lab.hosts import Lan
from tests.live.lab.supervisor import Cluster, delivered, judge, multicast

from semcast.history import History
from semcast.net.keyfile import new_key, save_keyring
from semcast.wire.keyring import Cipher, Keyring

Scenario = Callable[[Cluster, Lan], Awaitable[History]]


def play(folder: Path, names: str, scenario: Scenario, **settings: object) -> History:
    """A host for each name; the members have a key, and know of nothing else."""
    key = new_key(Cipher.AES_256_GCM)
    save_keyring(folder / "keys.toml", Keyring([key], key.id), replace=False)

    async def run(lan: Lan) -> History:
        async with (
            asyncio.timeout(60),
            Cluster(folder, key_file=str(folder / "keys.toml"), **settings) as cluster,
        ):
            await asyncio.gather(*(cluster.start(name, prefix=lan.at(name)) for name in names))
            return await scenario(cluster, lan)

    with Lan(names) as lan:
        return asyncio.run(run(lan))


def test_a_key_and_nothing_else_is_enough_to_find_each_other(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        for name in "abc":
            stats = await cluster[name].ask("stats")
            assert stats["address"][0] == lan.address(name)
            await cluster[name].ask("send", count=300, size=1000)
        await cluster["a"].ask("send", count=3, size=300_000)
        return await cluster.finish()

    history = play(tmp_path, "abc", scenario)
    assert {delivered(history, name) for name in "abc"} == {multicast(history)} == {906}


@pytest.mark.parametrize("fanout", ["unicast", "multicast"])
def test_partition_and_merge_under_traffic(tmp_path: Path, fanout: str) -> None:
    """In halves, then into singletons, then other halves; each side goes on, and in the end all are one."""

    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        await cluster.traffic(rate=500, items=4)
        await cluster.settle()
        for sides in (["ab", "cd"], ["a", "b", "c", "d"], ["ad", "bc"]):
            lan.partition(*sides)
            await asyncio.gather(*(cluster.together(*side) for side in sides))
            await asyncio.gather(*(cluster.flowing(*side) for side in sides))
        lan.heal()
        await cluster.settle()
        return await cluster.finish()

    play(tmp_path, "abcd", scenario, fanout=fanout)


def test_a_merge_that_another_cut_interrupts(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        await cluster.traffic(rate=500)
        lan.partition("ab", "c")
        await asyncio.gather(cluster.together("a", "b"), cluster.together("c"))
        for sides in (["a", "bc"], ["ac", "b"]) * 2:
            lan.heal()
            lan.partition(*sides)
        await asyncio.gather(cluster.together("a", "c"), cluster.together("b"))
        lan.heal()
        await cluster.settle()
        return await cluster.finish()

    play(tmp_path, "abc", scenario)


def test_one_who_speaks_and_hears_nobody(tmp_path: Path) -> None:
    """It notices, and is let in again when it hears; whatever views come of that keep the promises."""

    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        await cluster.traffic(rate=300)
        await cluster.settle()
        lan.cut([("b", "a"), ("c", "a")])
        await cluster["a"].until_view("a")
        lan.heal()
        await cluster.settle()
        return await cluster.finish()

    play(tmp_path, "abc", scenario)


def test_a_link_that_works_one_way_only(tmp_path: Path) -> None:
    """What one member cannot say to another a third can repeat: everything arrives, and no view changes."""

    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        await cluster.traffic(rate=300)
        await cluster.settle()
        ring = cluster["a"].view()
        views = [len(cluster[name].said("view")) for name in "abc"]
        lan.cut([(ring[(ring.index("a") + 1) % 3], "a")])  # the token does not go that way
        await cluster.exchange_marks(seconds=3.0)
        assert views == [len(cluster[name].said("view")) for name in "abc"]
        lan.heal()
        return await cluster.finish()

    play(tmp_path, "abc", scenario)


@pytest.mark.parametrize("fanout", ["unicast", "multicast"])
def test_loss_and_duplicates(tmp_path: Path, fanout: str) -> None:
    """Every tenth frame is lost and every tenth comes twice: everything arrives, once."""

    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        lan.disturb(loss=10, duplicates=10)
        await asyncio.gather(*(cluster[name].ask("send", count=300, size=500) for name in "abc"))
        await cluster["b"].ask("send", count=1, size=100_000)
        await cluster.settle()
        retransmitted, replayed = 0, 0
        for name in "abc":
            stats = await cluster[name].ask("stats")
            assert stats["corrupt"] == 0
            retransmitted += stats["retransmitted"]
            replayed += stats["malformed"].get("replayed", 0)
        assert retransmitted > 0
        assert replayed > 0
        lan.heal()
        await cluster.settle()
        return await cluster.finish()

    play(tmp_path, "abc", scenario, token_loss="1s", fanout=fanout)  # noqa: S106


@pytest.mark.parametrize("fanout", ["unicast", "multicast"])
@pytest.mark.parametrize("mtu", [1280, 600])
def test_a_network_that_carries_less_than_ours_and_does_not_say_so(
    tmp_path: Path, mtu: int, fanout: str
) -> None:
    """Larger datagrams than it carries go in pieces; nothing has to be sent again."""

    async def scenario(cluster: Cluster, lan: Lan) -> History:
        lan.narrow(mtu)
        await cluster.together()
        for name in "abc":
            await cluster[name].ask("send", count=300, size=1000)
        await cluster["a"].ask("send", count=2, size=100_000)
        return await cluster.finish()

    history = play(tmp_path, "abc", scenario, fanout=fanout)
    assert {delivered(history, name) for name in "abc"} == {multicast(history)} == {905}


def test_a_way_that_becomes_narrow_and_wide_again(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        await cluster.traffic(rate=300, size=1000)
        await cluster.flowing()
        views = [len(cluster[name].said("view")) for name in "abc"]
        for mtu in (1280, 1500):
            lan.narrow(mtu)
            await cluster.flowing()
        assert views == [len(cluster[name].said("view")) for name in "abc"]
        return await cluster.finish()

    play(tmp_path, "abc", scenario)


@pytest.mark.parametrize("mtu", [1500, 1280])
def test_ipv6_and_nothing_else(tmp_path: Path, mtu: int) -> None:
    """Members bound to IPv6 meet at an IPv6 multicast address."""
    key = new_key(Cipher.AES_256_GCM)
    save_keyring(tmp_path / "keys.toml", Keyring([key], key.id), replace=False)

    async def run(lan: Lan) -> None:
        async with asyncio.timeout(60), Cluster(tmp_path, key_file=str(tmp_path / "keys.toml")) as cluster:
            lan.narrow(mtu)
            for name in "abc":
                await cluster.start(name, prefix=lan.at(name), bind=f"[{lan.address6(name)}]:0")
            await cluster.together()
            for name in "abc":
                await cluster[name].ask("send", count=100, size=1000)
                assert (await cluster[name].ask("stats"))["address"][0] == lan.address6(name)
            where = ["--key-file", str(tmp_path / "keys.toml"), "--bind", f"[{lan.address6('a')}]:0"]
            command = [sys.executable, "-m", "semcast", "members", *where, "--json", cluster.group]
            shown = await asyncio.create_subprocess_exec(
                *lan.at("a"), *command, stdout=asyncio.subprocess.PIPE
            )
            output, _ = await shown.communicate()
            seen = [member["address"] for member in json.loads(output)["members"]]
            assert sorted(each.rpartition(":")[0] for each in seen) == [f"[{lan.address6(n)}]" for n in "abc"]
            await cluster.finish()

    with Lan("abc") as lan:
        asyncio.run(run(lan))


def test_a_slow_link(tmp_path: Path) -> None:
    """Two megabits to one of three: flow control follows the link, and nobody is taken for dead."""

    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        lan.slow_down("c", "2mbit")
        await cluster["a"].ask("send", count=400, size=1000)
        await cluster.settle()
        return await cluster.finish()

    history = play(tmp_path, "abc", scenario, token_loss="1s")  # noqa: S106
    assert delivered(history, "a") == multicast(history)


def test_a_host_that_loses_its_link_or_its_address_and_gets_it_back(tmp_path: Path) -> None:
    """Sending fails at once with one error or another: a partition like any other, not the end."""

    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        await cluster.traffic(rate=300)
        await cluster.settle()
        for lose in (lan.unplug, lan.take_address):
            lose("b")
            await asyncio.gather(cluster.together("a", "c"), cluster.together("b"))
            await cluster.flowing("b")
            assert (await cluster["b"].ask("stats"))["send_errors"] > 0
            lan.plug("b")
            await cluster.settle()
        return await cluster.finish()

    play(tmp_path, "abc", scenario)


def test_sigkill_of_a_host_while_the_network_is_cut(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        await cluster.traffic(rate=500)
        lan.partition("ab", "c")
        await asyncio.gather(cluster.together("a", "b"), cluster.together("c"))
        await cluster.kill("a")
        lan.heal()
        await cluster.start("a", prefix=lan.at("a"))
        await cluster.settle()
        await cluster.quiet()
        await cluster.settle()
        await cluster.leave()
        return judge(cluster.folder)

    play(tmp_path, "abc", scenario)
