"""Agreed views on a network that is cut: the majority goes on, the rest waits, says so, and comes back."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.live.lab.hosts import Lan
from tests.live.lab.supervisor import Cluster
from tests.live.test_live_vsync import ORDERS, finish, same_states, settle

from semcast.history import History
from semcast.net.keyfile import new_key, save_keyring
from semcast.wire.keyring import Cipher, Keyring

Scenario = Callable[[Cluster, Lan], Awaitable[History]]


def play(folder: Path, names: str, scenario: Scenario, **settings: Any) -> History:
    """A host for each name; the members have a key, the state of the others, and know of nothing else."""
    key = new_key(Cipher.AES_256_GCM)
    save_keyring(folder / "keys.toml", Keyring([key], key.id), replace=False)
    given = {"stack": "vsync", "minimum": len(names) // 2 + 1, "token_loss": "1s", **settings}

    async def run(lan: Lan) -> History:
        async with (
            asyncio.timeout(90),
            Cluster(folder, key_file=str(folder / "keys.toml"), **given) as cluster,
        ):
            await asyncio.gather(
                *(cluster.start(name, prefix=lan.at(name), options={"state": True}) for name in names)
            )
            return await scenario(cluster, lan)

    with Lan(names) as lan:
        return asyncio.run(run(lan))


@pytest.mark.parametrize("order", ORDERS)
def test_a_minority_is_blocked_and_comes_back(tmp_path: Path, order: str) -> None:
    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        await cluster.traffic(rate=200)
        await settle(cluster)
        lan.partition("abc", "de")
        await asyncio.gather(
            cluster.together("a", "b", "c"),
            *(
                cluster[name].until(lambda n=name: bool(cluster[n].said("minority")), "was told")  # type: ignore[misc]
                for name in "de"
            ),
        )
        await cluster.flowing("a", "b", "c")
        for name in "de":
            assert (await cluster[name].ask("stats"))["phase"] == "minority"
            assert len(cluster[name].view()) == 5
        lan.heal()
        await asyncio.gather(
            *(
                cluster[name].until(lambda n=name: bool(cluster[n].said("rejoining")), "came back")  # type: ignore[misc]
                for name in "de"
            )
        )
        await settle(cluster)
        everybody = list(cluster.members.values())
        history = await finish(cluster)
        assert same_states(*everybody) > 2
        return history

    history = play(tmp_path, "abcde", scenario, **ORDERS[order])
    assert sum(process.name == "d" for process in history.processes) >= 2


def test_no_side_has_a_majority_and_nobody_goes_on_until_it_heals(tmp_path: Path) -> None:
    """Nothing was decided meanwhile, so all go on from the view they were in, and nobody is put out."""

    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        await cluster.traffic(rate=200)
        await settle(cluster)
        lan.partition("ab", "cd", "e")
        await asyncio.gather(
            *(
                cluster[name].until(lambda n=name: bool(cluster[n].said("minority")), "was told")  # type: ignore[misc]
                for name in "abcde"
            )
        )
        lan.heal()
        await settle(cluster)
        return await finish(cluster)

    play(tmp_path, "abcde", scenario)


def test_sigkill_while_the_network_is_cut_and_lossy(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, lan: Lan) -> History:
        await cluster.together()
        await cluster.traffic(rate=200)
        lan.disturb(loss=5, duplicates=0)  # a copy made before the cut would cross it
        await settle(cluster)
        lan.partition("abcd", "e")
        await cluster.together(*"abcd")
        dead = await cluster.kill(cluster["a"].view()[0])
        lan.heal()
        await cluster.start(dead.name, prefix=lan.at(dead.name), options={"state": True})
        await settle(cluster)
        everybody = [dead, *cluster.members.values()]
        history = await finish(cluster)
        assert same_states(*everybody) > 2
        return history

    play(tmp_path, "abcde", scenario)
