"""Daemons and programs as processes: lazy ones, stopped ones, killed ones, hostile ones."""

import asyncio
import functools
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, ParamSpec

import pytest
from tests.daemon.processes import CLIENTS, PATIENCE, SENDS, STAYS, DaemonProcess, finished, program
from tests.lacking import lacking

import semcast
from semcast import blocking
from semcast.cli.main import main
from semcast.domains import DomainMessage, DomainView
from semcast.domains.remote import RemoteLink

ACCESS = """
[tokens]
web = "a secret of some length"
[[allow]]
who = "token:web"
groups = ["chat"]
may = ["join", "send"]
[[allow]]
who = "local"
"""
LIMITS = ("--leave-after", "1", "--queue-messages", "500", "--queue-bytes", "1MiB")
P = ParamSpec("P")
TOKEN = "a secret of some length"  # noqa: S105


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[DaemonProcess]]:
    """Two of one domain, with TCP at the second, and patience of a second."""
    folder, domain = tmp_path_factory.mktemp("daemons"), f"daemons-{uuid.uuid4().hex}"
    access = folder / "access.toml"
    access.write_text(ACCESS)
    access.chmod(0o600)
    both = [
        DaemonProcess(folder / "a.sock", domain, "a", *LIMITS),
        DaemonProcess(folder / "b.sock", domain, "b", "--listen", "127.0.0.1:0", "--access", str(access)),
    ]
    for each in both:
        each.ready()
    yield both
    for each in both:
        each.kill()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[list[DaemonProcess]]:
    """Daemons that a test starts itself."""
    started: list[DaemonProcess] = []
    yield started
    for each in started:
        each.kill()


def alive(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a test in an event loop."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def break_connection(link: RemoteLink) -> None:
    """As a network does."""
    connection = link._connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


def node_program() -> str:
    """Node, where it is."""
    return shutil.which("node") or lacking("Node is not there")


def name_of_group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


async def read(group: Any, count: int) -> list[bytes]:
    """So many messages."""
    found: list[bytes] = []
    async with asyncio.timeout(PATIENCE):
        async for event in group:
            if isinstance(event, DomainMessage):
                found.append(event.payload)
                if len(found) == count:
                    break
    return found


@alive
async def test_programs_at_two_daemons_share_groups(daemons: list[DaemonProcess]) -> None:
    name = name_of_group()
    one, other = (semcast.connect(each.socket) for each in daemons)
    async with one, other:
        a, b = await one.join(name), await other.join(name)
        await a.wait_for(2, PATIENCE)
        await asyncio.gather(a.send_many([b"a%d" % n for n in range(500)]), b.send(b"b", confirm="safe"))
        assert await read(a, 501) == await read(b, 501)
        await one.send_to(other.member, b"psst")


@pytest.mark.parametrize("language", ["python", "node"])
def test_both_reference_clients_replay_the_transcript(daemons: list[DaemonProcess], language: str) -> None:
    command = [sys.executable, str(CLIENTS / "python" / "replay.py")]
    if language == "node":
        command = [node_program(), str(CLIENTS / "node" / "replay.mjs")]
    done = subprocess.run(
        [*command, daemons[0].socket, str(CLIENTS / "transcript.jsonl")],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all as recorded" in done.stdout


def test_node_and_python_hear_the_same(daemons: list[DaemonProcess]) -> None:
    command = [node_program(), str(CLIENTS / "node" / "semcast_client.mjs")]
    name = name_of_group()
    node = subprocess.Popen([*command, daemons[1].socket, name, "hi"], stdout=subprocess.PIPE, text=True)
    try:
        assert node.stdout is not None
        assert '"join"' in node.stdout.readline()
        finished(program(SENDS, daemons[0].socket, name))
        told = node.stdout.readline() + node.stdout.readline()
        assert "[104,105]" in told  # hi
        assert "[121,111]" in told  # yo
    finally:
        node.kill()
        node.communicate()


@alive
async def test_a_stopped_program_misses_only_what_is_obsolete(daemons: list[DaemonProcess]) -> None:
    name = name_of_group()
    text = """
import sys, semcast_client as s
client = s.Client(sys.argv[1], "stopped")
client.join(sys.argv[2])
print("in", flush=True)
missed = last = 0
for frame in client.events():
    if frame[0] == s.PURGED:
        missed += frame[5]
    if frame[0] == s.DELIVER:
        last = int(frame[5][-1])
        if last == 19999:
            break
print(missed, last, flush=True)
"""
    slow = program(text, daemons[0].socket, name)
    assert slow.stdout is not None
    slow.stdout.readline()
    try:
        slow.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(_publish, daemons[1].socket, name, 20_000)
        [client] = [each for each in daemons[0].asked("clients") if each["client"].startswith("stopped")]
        assert client["purged"] > 5000
        assert client["queued"] <= 600
        slow.send_signal(signal.SIGCONT)
        missed, last = map(int, (await asyncio.to_thread(slow.stdout.readline)).split())
        assert (missed > 5000, last) == (True, 19_999)
    finally:
        slow.kill()
        slow.communicate()


def _publish(path: str, name: str, count: int) -> None:
    """One item again and again, by a client that gives back credit."""
    text = """
import sys, semcast_client as s
client = s.Client(sys.argv[1])
for n in range(0, int(sys.argv[3]), 10):
    client.cast([sys.argv[2]], [b"%d" % m for m in range(n, n + 10)], ["price"] * 10)
client.settle()
"""
    finished(program(text, path, name, str(count)))


@alive
async def test_a_stopped_program_is_put_out_and_nobody_waits(daemons: list[DaemonProcess]) -> None:
    name = name_of_group()
    stuck = program(STAYS, daemons[0].socket, name)
    try:
        async with semcast.connect(daemons[0].socket) as here:
            group = await here.join(name)
            await group.wait_for(2, PATIENCE)
            stuck.send_signal(signal.SIGSTOP)
            payloads = [bytes(200)] * 20_000  # nothing of it is obsolete
            _, found = await asyncio.gather(group.send_many(payloads), read(group, 20_000))
            assert found == payloads
            async with asyncio.timeout(PATIENCE):
                async for event in group:
                    if isinstance(event, DomainView) and len(event.view.members) == 1:
                        break
    finally:
        stuck.kill()
        stuck.communicate()


@alive
async def test_who_was_put_out_comes_back_once(daemons: list[DaemonProcess]) -> None:
    """With one session, and no connection that nobody uses."""
    before = len(daemons[0].asked("clients"))
    async with semcast.connect(daemons[0].socket) as here:
        group = await here.join(name_of_group())
        for _ in range(3):
            former = here.member
            await asyncio.to_thread(daemons[0].asked, "drop", str(former))
            async with asyncio.timeout(PATIENCE):
                async for event in group:
                    if isinstance(event, semcast.Rejoining):
                        assert event.former == former
                    elif isinstance(event, DomainView) and here.member not in (former, None):
                        break
        await group.send(b"here", confirm="safe")
        assert len(await asyncio.to_thread(daemons[0].asked, "clients")) == before + 1


@alive
async def test_a_killed_program_is_gone_for_all(daemons: list[DaemonProcess]) -> None:
    name = name_of_group()
    doomed = program(STAYS, daemons[0].socket, name)
    async with semcast.connect(daemons[1].socket) as there:
        group = await there.join(name)
        await group.wait_for(2, PATIENCE)
        doomed.kill()
        doomed.communicate()
        async with asyncio.timeout(PATIENCE):
            async for event in group:
                if isinstance(event, DomainView) and event.cause == "gone":
                    assert len(event.view.members) == 1
                    break


@alive
async def test_who_never_reads_harms_nobody(daemons: list[DaemonProcess]) -> None:
    """It sends to its own group as fast as it can, takes no notice of credit, and asks for answers."""
    text = """
import sys, semcast_client as s
client = s.Client(sys.argv[1], "greedy")
client.join(sys.argv[2])
client.say(s.TAKEN, 0)
for n in range(2, 1 << 40, 10):
    client.say(s.CAST, n, [sys.argv[2]], "agreed", [bytes(1000)] * 10)
    client.say(19, 1)
"""
    greedy = program(text, daemons[0].socket, name_of_group())
    try:
        async with semcast.connect(daemons[0].socket) as here:
            group = await here.join(name_of_group())
            for n in range(200):
                await group.send(b"%d" % n)
                assert await read(group, 1) == [b"%d" % n]
                await asyncio.sleep(0.01)
        memory = Path(f"/proc/{daemons[0].process.pid}/status").read_text()
        [resident] = [int(line.split()[1]) for line in memory.splitlines() if line.startswith("VmRSS")]
        assert resident < 200_000  # kilobytes
    finally:
        greedy.kill()
        greedy.communicate()


@pytest.mark.parametrize("data", [b"\xff" * 100, b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x01\xc1", b"\x00"])
def test_garbage_ends_a_connection_and_nothing_else(daemons: list[DaemonProcess], data: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(daemons[0].socket)
        sock.sendall(data)
        if len(data) > 1:
            while sock.recv(4096):
                pass
    assert daemons[0].asked("status")["phase"] == "operational"


@alive
async def test_permissions_hold_over_tcp(daemons: list[DaemonProcess]) -> None:
    where = f"tcp://{daemons[1].doors[1]}"
    with pytest.raises(semcast.GroupError, match="no such token"):
        await semcast.connect(where, token=TOKEN * 2)
    async with semcast.connect(where, token=TOKEN) as web, semcast.connect(daemons[0].socket) as local:
        with pytest.raises(semcast.GroupError, match="may not join 'orders'"):
            await web.join("orders")
        chat = await web.join("chat")
        await local.send("chat", b"hello")
        assert await read(chat, 1) == [b"hello"]
        with pytest.raises(semcast.GroupError, match="may not send 'orders'"):
            await web.send("orders", b"x", confirm="safe")
        await chat.send(b"back", confirm="safe")


@alive
async def test_a_broken_connection_goes_on_where_it_was(daemons: list[DaemonProcess]) -> None:
    """The program hears nothing of it, and every message once."""
    name = "chat"
    where = f"tcp://{daemons[1].doors[1]}"
    async with semcast.connect(where, token=TOKEN) as web, semcast.connect(daemons[0].socket) as local:
        chat = await web.join(name)
        member = web.member
        link = web.link
        assert isinstance(link, RemoteLink)

        async def cut() -> None:
            for _ in range(5):
                await asyncio.sleep(0.05)
                break_connection(link)

        async def publish() -> None:
            for n in range(1000):
                await chat.send(b"w%d" % n)
                await local.send(name, b"l%d" % n)
                if n % 10 == 0:
                    await asyncio.sleep(0.003)

        _, _, found = await asyncio.gather(cut(), publish(), read(chat, 2000))
        assert [each for each in found if each[:1] == b"w"] == [b"w%d" % n for n in range(1000)]
        assert [each for each in found if each[:1] == b"l"] == [b"l%d" % n for n in range(1000)]
        assert web.member == member


@alive
async def test_a_program_comes_back_after_its_daemon_was_killed(
    tmp_path: Path, alone: list[DaemonProcess]
) -> None:
    domain = f"daemons-{uuid.uuid4().hex}"
    alone.append(DaemonProcess(tmp_path / "a.sock", domain, "a").ready())
    async with semcast.connect(alone[0].socket, name="alice") as host:
        group = await host.join("g")
        await group.send(b"before", confirm="safe")
        assert await read(group, 1) == [b"before"]
        former = host.member
        alone[0].signal(signal.SIGSTOP)
        await group.send(b"nobody knows")
        await asyncio.sleep(0.05)
        alone.pop().kill()
        alone.append(DaemonProcess(tmp_path / "a.sock", domain, "a").ready())
        async with asyncio.timeout(PATIENCE):
            async for event in group:
                if isinstance(event, semcast.Rejoining):
                    assert event.former == former
                    assert [each.seq for each in event.unsettled] == [3]
                if isinstance(event, DomainView):
                    assert event.view.members == (host.member,)
                    break
        await group.send(b"after", confirm="safe")
        assert await read(group, 1) == [b"after"]
        assert host.member.name == "alice@a"


@alive
async def test_a_daemon_that_ends_says_so(
    tmp_path: Path, alone: list[DaemonProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves: the programs of others hear that at once, systemd too, and no socket is left behind."""
    domain = f"daemons-{uuid.uuid4().hex}"
    systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    systemd.bind(str(tmp_path / "notify"))
    systemd.setblocking(False)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    alone += [DaemonProcess(tmp_path / f"{name}.sock", domain, name) for name in "ab"]
    for each in alone:
        each.ready()
    async with semcast.connect(alone[1].socket) as there:
        group = await there.join("g")
        one = program(
            "import sys, semcast_client as s\nc = s.Client(sys.argv[1]); c.join('g')\n"
            "try:\n  [print(f[0], flush=True) for f in c.events()]\nexcept s.SemcastError as e: print(e)",
            alone[0].socket,
        )
        await group.wait_for(2, PATIENCE)
        began = time.monotonic()
        code, told = await asyncio.to_thread(alone[0].end)
        assert (code, told) == (0, "")
        async with asyncio.timeout(PATIENCE):
            async for event in group:
                if isinstance(event, DomainView) and len(event.view.members) == 1 and event.failed:
                    break
        assert time.monotonic() - began < 5
        assert not Path(alone[0].socket).exists()
        with systemd:
            assert [systemd.recv(100) for _ in range(3)] == [b"READY=1", b"READY=1", b"STOPPING=1"]
        out, _ = one.communicate(timeout=PATIENCE)
        assert out.splitlines()[-1] == "the daemon left: asked to"


def test_programs_without_asyncio(daemons: list[DaemonProcess]) -> None:
    name = name_of_group()
    with blocking.connect(daemons[0].socket) as one, blocking.connect(daemons[1].socket) as other:
        a, b = one.join(name, timeout=PATIENCE), other.join(name, timeout=PATIENCE)
        a.send(b"hi", item="x", confirm="safe")
        found = next(event for event in b.events(PATIENCE) if isinstance(event, DomainMessage))
        assert (found.payload, found.id.sender) == (b"hi", one.member)


def test_a_second_daemon_at_the_same_socket_says_so(daemons: list[DaemonProcess]) -> None:
    other = DaemonProcess(Path(daemons[0].socket), "other", "x")
    _, told = other.process.communicate(timeout=PATIENCE)
    assert other.process.returncode == 2
    assert "another daemon listens there" in told


def test_send_tail_and_members_through_a_daemon(
    daemons: list[DaemonProcess], capsys: pytest.CaptureFixture[str]
) -> None:
    name, here, there = name_of_group(), daemons[0].socket, daemons[1].socket
    command = [sys.executable, "-m", "semcast", "tail", name, "--daemon", "--socket", there, "--count", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
        while main(["members", name, "--daemon", "--socket", here]):
            time.sleep(0.02)
        assert "@b#" in capsys.readouterr().out
        assert main(["send", name, "hi", "there", "--daemon", "--socket", here, "--item", "x"]) == 0
        said, _ = tail.communicate(timeout=PATIENCE)
    assert [line.rpartition(" ")[2] for line in said.splitlines()] == ["hi", "there"]
    assert tail.returncode == 0
    assert main(["send", name, "x", "--daemon", "--socket", "/nowhere"]) == 1


def test_looking_at_a_daemon(daemons: list[DaemonProcess], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["daemon", "status", "--socket", daemons[0].socket]) == 0
    assert "phase=operational" in capsys.readouterr().out
    assert main(["daemon", "drop", "nobody", "--socket", daemons[0].socket]) == 3
    assert "no client 'nobody'" in capsys.readouterr().err
    daemons[1].signal(signal.SIGHUP)
    assert daemons[1].asked("status")["access_problem"] == ""
