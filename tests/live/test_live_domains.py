"""Programs in a domain, in processes of their own: killed, restarted, frozen, cut off; and judged."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.live.lab.hosts import Lan
from tests.live.lab.supervisor import Cluster, judge

from semcast.history import History
from semcast.net.keyfile import new_key, save_keyring
from semcast.wire.keyring import Cipher, Keyring


class Lodgers(Cluster):
    """Programs of one domain."""

    module = "tests.live.lab.lodger"

    async def __aenter__(self) -> "Lodgers":
        return self

    async def work(self) -> None:
        """All join, leave and send at random."""
        for seed, process in enumerate(self.members.values()):
            await process.ask("traffic", seed=seed)

    async def finish(self) -> History:
        """Stop, let everybody get everything, leave, and judge what was recorded."""
        for process in self.members.values():
            await process.ask("quiet")
            assert not process.said("error"), process.said("error")
            assert not process.said("corrupt"), process.said("corrupt")
        await self.exchange_marks()
        await self.leave()
        return judge(self.folder, quiesced=True)


def play(folder: Path, scenario: Callable[[Lodgers], Awaitable[None]], **queues: int) -> None:
    """Programs that may have so many events waiting for them; all work until the scenario begins."""

    async def run() -> None:
        async with asyncio.timeout(60), Lodgers(folder) as cluster:
            await asyncio.gather(*(cluster.start(name, queue_messages=most) for name, most in queues.items()))
            await cluster.together()
            await cluster.work()
            await asyncio.sleep(0.3)
            await scenario(cluster)
            await cluster.finish()

    asyncio.run(run())


def test_programs_are_killed_and_frozen_and_come_back(tmp_path: Path) -> None:
    """One at once, under its name; of the other the rest go on without it, and then all are one again."""

    async def scenario(cluster: Lodgers) -> None:
        await cluster.kill("c")
        await cluster.start("c")
        await cluster.together("a", "b", "c")
        await cluster["c"].ask("traffic", seed=9)
        cluster["b"].signal(signal.SIGSTOP)
        await cluster["a"].until_view("ac")
        cluster["b"].signal(signal.SIGCONT)
        await cluster.settle()

    play(tmp_path, scenario, a=1000, b=1000, c=1000)


def test_a_program_that_does_not_read_is_put_out_and_comes_back_as_one(tmp_path: Path) -> None:
    """Nobody waits for it, and it hears what it must: that it was out, and what of its own is unsettled."""

    async def scenario(cluster: Lodgers) -> None:
        await cluster.quiet()
        enough = tmp_path / "enough"
        blocked = await cluster["b"].tell("block", until=str(enough))
        await cluster["b"].until(lambda: bool(cluster["b"].said("blocks")), "blocked")
        await cluster["a"].ask("burst", count=1000)
        enough.touch()
        await cluster["b"].answer(blocked)
        await cluster["b"].until(lambda: bool(cluster["b"].said("rejoining")), "came back")
        await cluster.settle()

    play(tmp_path, scenario, a=1000, b=20)


def test_two_halves_of_a_domain_go_on_and_become_one(tmp_path: Path) -> None:
    key = new_key(Cipher.AES_256_GCM)
    save_keyring(tmp_path / "keys.toml", Keyring([key], key.id), replace=False)

    async def run(lan: Lan) -> None:
        async with asyncio.timeout(60), Lodgers(tmp_path, key_file=str(tmp_path / "keys.toml")) as cluster:
            await asyncio.gather(*(cluster.start(name, prefix=lan.at(name)) for name in "abcd"))
            await cluster.together()
            await cluster.work()
            lan.partition("ab", "cd")
            await asyncio.gather(cluster["a"].until_view("ab"), cluster["d"].until_view("cd"))
            lan.heal()
            await cluster.settle()
            await cluster.finish()

    with Lan("abcd") as lan:
        asyncio.run(run(lan))
