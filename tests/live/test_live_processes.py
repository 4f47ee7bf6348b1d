"""Several real processes on loopback: what other systems learned to test, recorded and judged."""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.live.lab.supervisor import Cluster, delivered, judge, multicast

from semcast.history import History, Kind
from semcast.net.keyfile import new_key, save_keyring
from semcast.wire.keyring import Cipher, Keyring

Scenario = Callable[[Cluster], Awaitable[History]]


def play(folder: Path, scenario: Scenario, **settings: object) -> History:
    """Run a scenario in a group of its own."""

    async def run() -> History:
        async with asyncio.timeout(60), Cluster(folder, **settings) as cluster:
            return await scenario(cluster)

    return asyncio.run(run())


def incarnations(history: History, name: str) -> int:
    return sum(process.name == name for process in history.processes)


def test_five_that_start_at_the_same_moment_end_in_one_view(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abcde")
        await cluster.together()
        await asyncio.gather(*(member.ask("send", count=200) for member in cluster.members.values()))
        return await cluster.finish()

    history = play(tmp_path, scenario)
    last = [
        [event for event in history.of(process) if event.kind is Kind.VIEW and len(event.members or ()) == 5]
        for process in history.processes
    ]
    assert len({(views[-1].view, views[-1].sender) for views in last}) == 1
    assert {delivered(history, name) for name in "abcde"} == {multicast(history)}


@pytest.mark.parametrize("victim", ["a", "b"], ids=["the representative", "another"])
def test_sigkill_under_traffic(tmp_path: Path, victim: str) -> None:
    """The member with the lowest name speaks for the ring, and holds its token when it is idle."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc")
        await cluster.together()
        await cluster.traffic(items=5)
        await cluster.flowing()
        await cluster.kill(victim)
        await cluster.together()
        await cluster.flowing()
        return await cluster.finish()

    history = play(tmp_path, scenario)
    assert [process.name for process in history.processes] == ["a", "b", "c"]


def test_a_crash_and_an_immediate_restart_under_the_same_name(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc")
        await cluster.together()
        await cluster.traffic()
        await cluster.flowing()
        dead = await cluster.kill("b")
        await cluster.start("b")  # before anybody can have noticed
        await cluster["b"].until(lambda: bool(cluster["b"].said("joined")), "joined")
        before, after = (each.said("joined")[0]["member"][1] for each in (dead, cluster["b"]))
        assert before < after
        for name in "abc":
            member = cluster[name]
            await member.until(lambda m=member: incarnations_seen(m.said("view")) == {after}, "saw the new b")  # type: ignore[misc]
        await cluster.together()
        await cluster.traffic("b")
        await cluster.flowing()
        return await cluster.finish()

    assert incarnations(play(tmp_path, scenario), "b") == 2


def incarnations_seen(views: list[dict[str, list[object]]]) -> set[object]:
    """Of b, in the last view."""
    if not views:
        return set()
    last = views[-1]
    return {number for name, number in zip(last["members"], last["incarnations"], strict=True) if name == "b"}


def test_one_that_was_frozen_for_longer_than_the_timeout(tmp_path: Path) -> None:
    """It wakes with a token, a full socket and messages of a view that is no more: none of it leaks."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc")
        await cluster.together()
        await cluster.traffic(rate=3000, items=5)
        await cluster.flowing()
        for frozen in "ba":
            cluster[frozen].signal(signal.SIGSTOP)
            others = [name for name in "abc" if name != frozen]
            await cluster.together(*others)
            await cluster.flowing(*others)
            cluster[frozen].signal(signal.SIGCONT)
            await cluster.together()
            await cluster.flowing()
        return await cluster.finish()

    play(tmp_path, scenario)


def test_a_freeze_shorter_than_the_timeout_changes_no_view(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc")
        await cluster.together()
        await cluster.flowing()
        views = {name: len(cluster[name].said("view")) for name in "abc"}
        cluster["b"].signal(signal.SIGSTOP)
        number = await cluster["a"].tell("send", count=100)
        await cluster["a"].answer(number)
        cluster["b"].signal(signal.SIGCONT)
        await cluster.flowing()
        assert views == {name: len(cluster[name].said("view")) for name in "abc"}
        return await cluster.finish()

    play(tmp_path, scenario, token_loss="5s")  # noqa: S106


def test_a_restart_storm(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abcd")
        await cluster.together()
        await cluster.traffic(items=3)
        await cluster.flowing()
        for name in "abc":
            await cluster.kill(name)
            await cluster.start(name)  # the next dies while this one is being let in, or before
            await cluster[name].until(lambda n=name: bool(cluster[n].said("joined")), "joined")  # type: ignore[misc]
            await cluster.traffic(name)
        await cluster.together()
        await cluster.flowing()
        return await cluster.finish()

    history = play(tmp_path, scenario)
    assert [incarnations(history, name) for name in "abcd"] == [2, 2, 2, 1]


def test_voluntary_leaves_under_traffic(tmp_path: Path) -> None:
    """The leaver's last messages reach everybody; the representative goes, too."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abcd")
        await cluster.together()
        await cluster.traffic()
        await cluster.flowing()
        for leaver in "ca":
            last = f"last words of {leaver}"
            sent = (await cluster[leaver].ask("quiet"))["sent"]
            assert sent > 0
            await cluster[leaver].ask("mark", text=last)
            await cluster.leave(leaver)
            await asyncio.gather(*(member.until_marks([last]) for member in cluster.members.values()))
            await cluster.together()
        await cluster.flowing()
        return await cluster.finish()

    play(tmp_path, scenario)


def test_everybody_leaves_at_once_in_the_middle_of_it(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abcd")
        await cluster.together()
        await cluster.traffic(rate=5000)
        await cluster.flowing()
        await asyncio.gather(*(member.leave() for member in cluster.members.values()))
        return judge(cluster.folder)

    play(tmp_path, scenario)


@pytest.mark.parametrize("policy", ["purge", "block"])
def test_a_slow_member_holds_nobody_back_or_everybody(tmp_path: Path, policy: str) -> None:
    """With obsolescence the others go on at their speed; without, everybody waits, and nothing is lost."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"ab", policy=policy)
        [slow] = await cluster.start("c", policy=policy, options={"nap": 0.005})
        await cluster.together()
        await cluster["a"].ask("send", count=600, items=5)
        await cluster.exchange_marks("a")
        stats = await slow.ask("stats")
        assert stats["buffered"] < 1000
        if policy == "purge":
            assert stats["delivered"] < 300  # nobody waited for it
        await slow.ask("nap", seconds=0)
        await cluster.exchange_marks()
        stats = await slow.ask("stats")
        assert stats["purged"] > 200 if policy == "purge" else stats["purged"] == 0
        assert stats["delivered"] + stats["purged"] == 600 + 4
        return await cluster.finish()

    play(tmp_path, scenario, queue_messages=64, send_messages=64, window=8)


def test_a_member_that_stops_reading_and_would_rather_leave(tmp_path: Path) -> None:
    """Messages without items fill its queue, and it takes none: after a second it goes, and says why."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"ab")
        [slow] = await cluster.start("c", policy="leave", options={"nap": 3.0})
        await cluster.together()
        await cluster.traffic(safe=0)  # the slow one has messages of its own that nobody takes
        await slow.ended_well()
        errors = [line["text"] for line in slow.said("error")]
        assert errors
        assert all("has not kept up" in text for text in errors)
        del cluster.members["c"]
        await cluster.together("a", "b")
        await cluster.flowing()
        return await cluster.finish()

    # The program naps over each message of the list that it has taken: a list is no longer than the queue.
    play(tmp_path, scenario, queue_messages=4, send_messages=64, window=8)


def keyring_at(path: Path) -> str:
    key = new_key(Cipher.AES_256_GCM)
    save_keyring(path, Keyring([key], key.id), replace=False)
    return str(path)


@pytest.mark.parametrize("keys", [False, True], ids=["names", "keys"])
def test_two_groups_do_not_disturb_each_other(tmp_path: Path, keys: bool) -> None:
    """Of different names, or of one name at one meeting point and with different keys."""

    async def run() -> None:
        one = Cluster(tmp_path / "one", **({"key_file": keyring_at(tmp_path / "1.toml")} if keys else {}))
        two = Cluster(tmp_path / "two", **({"key_file": keyring_at(tmp_path / "2.toml")} if keys else {}))
        if keys:
            two.group = one.group
        async with asyncio.timeout(60), one, two:
            await asyncio.gather(one.start(*"ab"), two.start(*"ab"))
            await asyncio.gather(one.together(), two.together())
            await asyncio.gather(one.traffic(), two.traffic())
            await asyncio.gather(one.flowing(), two.flowing())
            views = [len(member.said("view")) for each in (one, two) for member in each.members.values()]
            await two.kill("a")
            await two.together("b")
            await two.start("a")
            await two.together()
            await one.flowing()
            assert views[:2] == [len(one[name].said("view")) for name in "ab"]
            stats = await one["a"].ask("stats")
            foreign = {"sealed with an unknown key"} if keys else set()
            assert set(stats["malformed"]) == foreign
            await asyncio.gather(one.finish(), two.finish())

    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    asyncio.run(run())


def test_large_messages_among_small_ones(tmp_path: Path) -> None:
    """Every size around the edges of a packet, and up to a megabyte; the representative dies half-way."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc")
        await cluster.together()
        for size in (0, 1, 1199, 1200, 1201, 2399, 2400, 2401, 65_536, 1 << 20):
            await cluster["b"].ask("send", count=2, size=size, items=size % 2)
        await cluster.exchange_marks()
        numbers = [(name, await cluster[name].tell("send", count=4, size=1 << 20)) for name in "bc"]
        await cluster.kill("a")
        for name, number in numbers:
            assert "error" not in await cluster[name].answer(number)
        await cluster.together()
        await cluster.exchange_marks()
        for name in "bc":
            assert (await cluster[name].ask("stats"))["corrupt"] == 0
        return await cluster.finish()

    history = play(tmp_path, scenario, datagram=1400)
    assert delivered(history, "b") == delivered(history, "c") == 20 + 8 + 3 + 2 + 2


def test_answers_sent_from_a_handler(tmp_path: Path) -> None:
    """More of them than may wait to be sent: the handlers wait inside `send`, and the group goes on."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"abc")
        await cluster.together()
        for name in "bc":
            await cluster[name].ask("echo", to="a")
        await cluster["a"].ask("send", count=1000)
        await cluster.exchange_marks()
        return await cluster.finish()

    history = play(tmp_path, scenario, queue_messages=64, send_messages=8)
    assert multicast(history) == 3000 + 6
    assert {delivered(history, name) for name in "abc"} == {3006}


def test_a_clock_that_is_wrong_and_goes_back(tmp_path: Path) -> None:
    """A host an hour ahead, and one that restarts with its clock an hour behind what it was."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start("a")
        await cluster.start("b", options={"clock_offset": 3600})
        await cluster.together()
        await cluster.traffic()
        await cluster.flowing()
        await cluster.kill("b")
        await cluster.start("b")
        await cluster.together()
        await cluster.flowing()
        return await cluster.finish()

    assert incarnations(play(tmp_path, scenario), "b") == 2


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def test_a_fixed_group_of_three(tmp_path: Path) -> None:
    """s-rm: FIFO to all, one of them slow; what it skips is obsolete, and all end with the same state."""

    async def scenario(cluster: Cluster) -> History:
        await cluster.start(*"ab")
        [slow] = await cluster.start("c", options={"nap": 0.002})
        await asyncio.gather(
            *(
                member.until(lambda m=member: bool(m.said("joined")), "joined")  # type: ignore[misc]
                for member in cluster.members.values()
            )
        )
        await asyncio.gather(*(cluster[name].ask("send", count=300, items=4) for name in "ab"))
        await cluster["c"].ask("send", count=100)
        await slow.ask("nap", seconds=0)
        await cluster.exchange_marks()
        await asyncio.gather(*(member.leave() for member in cluster.members.values()))
        return judge(cluster.folder, quiesced=True)

    members = [f"{name}=127.0.0.1:{port}" for name, port in zip("abc", free_ports(3), strict=True)]
    history = play(tmp_path, scenario, stack="s-rm", members=members, queue_messages=64)
    assert multicast(history) == 300 + 300 + 100 + 3
