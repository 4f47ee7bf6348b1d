"""A live group of three on loopback, recorded: what comes back is a history that keeps every promise."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from semcast.cli.main import main
from semcast.core import Batch, Item, KEnumeration, MemberId, MessageId, Purged, Sent, View, ViewChange
from semcast.core.events import Confirmed
from semcast.core.messages import batch_of
from semcast.core.outgoing import Outgoing
from semcast.group.errors import ConfigurationError
from semcast.group.group import Group
from semcast.group.joining import join
from semcast.group.recording import Recording
from semcast.history import History, Kind, RunInfo, read_history, record_crash
from semcast.history.journal import JournalWriter
from semcast.history.replay import read_journal
from semcast.specs import Status, check

A, B = MemberId("a"), MemberId("b")
PATIENCE = 30.0


def violations(history: History) -> list[str]:
    return [str(verdict) for verdict in check(history) if verdict.status is Status.VIOLATED]


@asynccontextmanager
async def three(folder: Path) -> AsyncIterator[list[Group]]:
    name = f"recorded {os.getpid()} {folder.name}"
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(join(name, name=each, record=str(folder), record_run="three"))
            for each in "abc"
        ]


class Reader:
    """Takes what a member gets."""

    def __init__(self, group: Group) -> None:
        self.got = 0
        self.together = asyncio.Event()
        self.done = asyncio.Event()
        self.ended = asyncio.Event()
        self._expected: int | None = None
        self._group = group
        self.task = asyncio.create_task(self._read())

    def expect(self, messages: int) -> None:
        self._expected = messages
        self._look()

    async def _read(self) -> None:
        async for deliveries in self._group.batches():
            for each in deliveries:
                if isinstance(each, Batch):
                    self.got += len(each.payloads)
                    if b"the end" in each.payloads:
                        self.ended.set()
                elif isinstance(each, ViewChange) and len(each.view.members) == 3:
                    self.together.set()
            self._look()

    def _look(self) -> None:
        if self._expected is not None and self.got >= self._expected:
            self.done.set()


async def converse(folder: Path) -> None:
    async with three(folder) as groups:
        readers = [Reader(group) for group in groups]
        for reader in readers:
            await reader.together.wait()
        for group in groups:
            await group.send_many([b"plain"] * 500)
            await group.send_many([b"safe"] * 20, order="safe")
            await group.send(b"x" * 200_000)  # in fragments
        for reader in readers:
            reader.expect(3 * 521)
            await reader.done.wait()
        for number in range(200):
            await groups[0].send(b"update", item=f"item {number % 3}")
        await groups[0].send(b"the end")
        for reader in readers:
            await reader.ended.wait()
        for reader in readers:
            reader.task.cancel()
        await asyncio.gather(*(reader.task for reader in readers), return_exceptions=True)


def test_a_live_history_keeps_every_promise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(converse(tmp_path))
    history = read_history(tmp_path)
    assert (history.info.run, history.info.only.stack, history.info.cut_off) == ("three", "ring", ())
    assert [process.name for process in history.gone] == ["a", "b", "c"]  # they have left
    assert violations(history) == []
    sent = {
        process.name: [event for event in history.of(process) if event.kind is Kind.MULTICAST]
        for process in history.processes
    }
    assert {name: sum(event.count for event in events) for name, events in sent.items()} == {
        "a": 722,
        "b": 521,
        "c": 521,
    }
    assert sum(event.count for event in sent["b"] if event.level == "safe") == 20
    assert sum(event.annotation == Item("item 1") for event in sent["a"]) == 67
    assert main(["check", str(tmp_path)]) == 0
    assert "three" in capsys.readouterr().out


KILLED = textwrap.dedent("""
    import asyncio, sys
    from semcast.group.joining import join

    async def main() -> None:
        async with join(sys.argv[1], name="victim", record=sys.argv[2], record_run="killed") as group:
            async for event in group:
                if group.view is not None and len(group.view.members) == 2:
                    break
            while True:
                await group.send(b"last words", item="words")
                await group.send_many([b"more"] * 10)

    asyncio.run(main())
""")


async def outlive(folder: Path) -> None:
    """Take messages of another process, kill it, and stay until it is out of the view."""
    name = f"killed {os.getpid()} {folder.name}"
    async with (
        asyncio.timeout(PATIENCE),
        join(name, name="a", record=str(folder), record_run="killed") as group,
    ):
        command = [sys.executable, "-c", KILLED, name, str(folder)]
        victim = subprocess.Popen(command)
        try:
            got, killed, alone = 0, False, False
            async for deliveries in group.batches():
                for each in deliveries:
                    if isinstance(each, Batch):
                        got += len(each.payloads)
                    elif isinstance(each, ViewChange):
                        alone = len(each.view.members) == 1
                if got > 1000 and not killed:
                    victim.send_signal(signal.SIGKILL)
                    killed = True
                if killed and alone:
                    break
        finally:
            victim.kill()
            victim.wait()


def test_sigkill_takes_nothing_away(tmp_path: Path) -> None:
    asyncio.run(outlive(tmp_path))
    history = read_history(tmp_path)
    victim = next(process for process in history.processes if process.name == "victim")
    assert history.info.cut_off == (victim,)
    assert violations(history) == []
    record_crash(tmp_path, "victim")
    history = read_history(tmp_path)
    assert history.info.cut_off == ()
    assert history.of(victim)[-1].kind is Kind.CRASH
    # Where it was killed in the middle of a run, the contents of the rest of that run are not compared.
    named = ["integrity", "evs_1_3_sent_before_in_same_configuration"]
    assert [(v.property, v.status) for v in check(history, named)] == [(name, Status.HOLDS) for name in named]
    assert violations(history) == []


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


async def disseminate(folder: Path) -> None:
    members = [f"{each}=127.0.0.1:{port}" for each, port in zip("abc", free_ports(3), strict=True)]
    name = f"fixed {os.getpid()}"
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        groups = [
            await stack.enter_async_context(
                join(name, name=each, stack="s-rm", members=members, record=str(folder))
            )
            for each in "abc"
        ]
        readers = [Reader(group) for group in groups]
        await groups[0].send_many([b"plain"] * 300)
        await groups[1].send(b"one", item="x")
        await groups[2].send(b"two")
        for reader in readers:
            reader.expect(302)
            await reader.done.wait()
            reader.task.cancel()
        await asyncio.gather(*(reader.task for reader in readers), return_exceptions=True)


def test_a_fixed_group_is_recorded_as_well(tmp_path: Path) -> None:
    asyncio.run(disseminate(tmp_path))
    history = read_history(tmp_path)
    assert (history.info.only.stack, history.info.cut_off) == ("s-rm", ())
    assert [process.name for process in history.correct] == ["a", "b", "c"]
    assert violations(history) == []
    assert [str(verdict) for verdict in check(history, ["integrity"])] == ["integrity: holds"]


CONFIRM: tuple[Literal["delivered", "safe"], ...] = ("delivered", "safe")


async def ask(group: Group, readers: list[Reader]) -> None:
    """All kinds of calls that want to know what became of their messages, between others that do not."""
    for confirm in CONFIRM:
        await group.send_many([b"plain"] * 50)
        await group.send(b"asked", confirm=confirm)
        await group.send_many([b"many"] * 30, confirm=confirm)
        await group.send(b"update", item="x", confirm=confirm)
        await group.send(b"update", item="x", confirm=confirm)
        await group.send(b"large" * 2_000, confirm=confirm)
    await group.send(b"the end")
    for reader in readers:
        await reader.ended.wait()


async def confirm_all(folder: Path, stack: str) -> None:
    members = [f"{each}=127.0.0.1:{port}" for each, port in zip("abc", free_ports(3), strict=True)]
    name = f"confirmed {stack} {os.getpid()}"

    def member(each: str) -> Group:
        own: dict[str, Any] = {"members": members} if stack == "s-rm" else {}
        own |= {"bootstrap": each == "a"} if stack == "vsync" else {}
        return join(name, name=each, stack=stack, record=str(folder), record_run="asked", **own)

    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stacks:
        groups = [await stacks.enter_async_context(member(each)) for each in "abc"]
        readers = [Reader(group) for group in groups]
        if stack != "s-rm":
            for reader in readers:
                await reader.together.wait()
        await asyncio.gather(*(ask(group, readers) for group in groups))
        for reader in readers:
            reader.task.cancel()
        await asyncio.gather(*(reader.task for reader in readers), return_exceptions=True)


@pytest.mark.parametrize("stack", ["ring", "vsync", "s-rm"])
def test_what_was_confirmed_is_recorded_and_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stack: str
) -> None:
    asyncio.run(confirm_all(tmp_path, stack))
    history = read_history(tmp_path)
    claims = [event for event in history.events if event.kind is Kind.CONFIRMED]
    assert [event.level for event in claims].count("safe") == len(claims) - 15 == 15
    for process in history.processes:
        asked = {event.seq for event in claims if event.process == process}
        large = [e for e in history.of(process) if e.kind is Kind.MULTICAST and e.size == 10_000]
        assert len(large) == 2
        assert {event.seq for event in large} <= asked
        assert all(event.sender == process and event.members for event in claims if event.process == process)
    assert violations(history) == []
    assert {verdict.property: verdict.status for verdict in check(history)}["confirmed"] is Status.HOLDS
    assert main(["check", str(tmp_path), "--property", "confirmed"]) == 0
    assert "confirmed" in capsys.readouterr().out


def test_tickets_of_calls_become_numbers_of_messages(tmp_path: Path) -> None:
    watcher, view = recording(tmp_path, announced=True), View(2, (A, B))
    asked, plain, last = (
        Outgoing([b"x"] * 3, confirm=(7, True)),
        Outgoing([b"x"] * 2),
        Outgoing([b"x"], confirm=(9, False)),
    )
    watcher.on_multicast(0, [(asked, 2)])
    watcher.on_multicast(0, [(asked.after(2), 1), (plain, 2), (last, 1)])
    watcher.on_events(0, [sent(1, [b"x"] * 2), sent(11, [b"x"] * 2), sent(21, [b"x"] * 2)])
    watcher.on_events(0, [Confirmed(9, view, 1), Confirmed(7, view, 2)])
    watcher.close()
    assert [row for row in rows(tmp_path) if "confirmed" in row] == [
        "a[3] at 1 ns: confirmed (a,22)",
        "a[4] at 1 ns: confirmed (a,11)",
    ]


def test_a_fixed_group_records_updates_that_are_sent_together(tmp_path: Path) -> None:
    watcher = recording(tmp_path, announced=False)
    together = Outgoing([b"x", b"y", b"z"], annotations=[Item("i"), Item("j"), Item("i")])
    watcher.on_multicast(0, [(together, 2)])
    watcher.close()
    [journal] = tmp_path.glob("*.journal")
    noted = [(e.seq, e.annotation) for e in read_journal(journal).events if e.kind is Kind.MULTICAST]
    assert noted == [(1, Item("i")), (2, Item("j"))]


def recording(folder: Path, *, announced: bool) -> Recording:
    info = RunInfo.one("run", "g", "ring", None, (), None, uniform=False, quiesced=False)
    ticks = iter(range(100))
    return Recording(
        A, lambda who: JournalWriter(folder, who, info), announced=announced, clock=lambda: next(ticks)
    )


def rows(folder: Path) -> list[str]:
    return [str(event) for path in sorted(folder.glob("*.journal")) for event in read_journal(path).events]


def sent(first: int, payloads: Sequence[bytes], item: str | None = None, *, view: int = 2) -> Sent:
    return Sent(batch_of(A, first, list(payloads), Item(item) if item else None), view)


def test_rows_that_go_on_are_one_row(tmp_path: Path) -> None:
    watcher = recording(tmp_path, announced=True)
    watcher.on_deliveries(0, [ViewChange(View(2, (A, B)))])
    watcher.on_events(
        0,
        [
            sent(1, [b"x"] * 3),
            sent(4, [b"x"] * 2),
            sent(6, [b"x"], "i"),
            sent(7, [b"x"], "j"),
            sent(8, [b"x"]),
            sent(9, [b"x"], view=3),
            Purged(MessageId(B, 1), MessageId(B, 2)),
            Purged(MessageId(B, 3)),
        ],
    )
    watcher.on_multicast(0, [(Outgoing([b"x"], None, safe=False), 1)])  # the stack will say when it leaves
    watcher.on_deliveries(
        0,
        [batch_of(A, 1, [b"x"] * 3), batch_of(A, 4, [b"x"]), batch_of(B, 5, [b"x"]), batch_of(B, 7, [b"x"])],
    )
    watcher.on_events(0, [])
    watcher.close()
    assert rows(tmp_path) == [
        "a[0] at 0 ns: view 2 of a, b",
        "a[1] at 1 ns: multicast (a,1..5)",
        "a[2] at 1 ns: multicast (a,6)",
        "a[3] at 1 ns: multicast (a,7)",
        "a[4] at 1 ns: multicast (a,8)",
        "a[5] at 1 ns: multicast (a,9)",
        "a[6] at 1 ns: purge (b,1) by (b,2)",
        "a[7] at 1 ns: purge (b,3)",
        "a[8] at 2 ns: deliver (a,1..4)",
        "a[9] at 2 ns: deliver (b,5)",
        "a[10] at 2 ns: deliver (b,7)",
        "a[11] at 3 ns: left",
    ]


def test_a_stack_that_announces_nothing_sends_what_it_takes(tmp_path: Path) -> None:
    watcher = recording(tmp_path, announced=False)
    annotated = Outgoing([b"y"], KEnumeration(4, 1), safe=False)
    watcher.on_multicast(0, [(Outgoing([b"x"] * 3, None, safe=False), 3), (annotated, 1)])
    watcher.on_multicast(0, [(Outgoing([b"x"] * 9, None, safe=False), 2), (annotated, 0)])
    watcher.close()
    assert rows(tmp_path)[:-1] == [
        "a[0] at 0 ns: multicast (a,1..3)",
        "a[1] at 0 ns: multicast (a,4)",
        "a[2] at 1 ns: multicast (a,5..6)",
    ]


def test_where_nothing_can_be_recorded_nobody_joins(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def attempt() -> None:
        join("nowhere", record=str(tmp_path / "file"))

    with pytest.raises(ConfigurationError, match="cannot record in"):
        asyncio.run(attempt())
