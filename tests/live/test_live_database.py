"""A database of real processes: clients lose their servers, servers come, go and are killed."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from secrets import token_hex

import pytest
from tests.live.lab.databases import Server, Servers

import semcast
from semcast.cli.main import main
from semcast.engine.results import SqlResult
from semcast.server.client import Client
from semcast.sql.errors import DatabaseError


def test_every_update_is_done_once_though_its_server_is_killed(tmp_path: Path) -> None:
    """Kill -9 of the server that a client talks to, again and again, while it counts."""

    async def work(servers: Servers) -> None:
        async with semcast.database(servers.database, servers=servers.addresses()) as db:
            await db.execute("create table t(n integer primary key)")
            last = 0
            for round_, victim in enumerate("abc"):
                writing = asyncio.create_task(_write(db, round_ * 40, 40))
                await asyncio.sleep(0.1)
                if servers[victim].address in db.server:
                    await asyncio.to_thread(servers[victim].kill)
                    last = max(last, await writing)
                    again = servers.start(victim)
                    await asyncio.to_thread(again.until, event="state", primary=True, view=["a", "b", "c"])
                    break
                last = max(last, await writing)
            found = await db.query("select count(*), min(n), max(n) from t", level="linear")
            count, first, high = found.rows[0]
            assert isinstance(high, int)
            assert (count, first) == (high + 1, 0)
            assert found.position >= last

    with Servers(tmp_path) as servers:
        asyncio.run(work(servers))


async def _write(db: Client, begin: int, count: int) -> int:
    """Rows with these numbers, one by one; a row that is inserted twice would fail."""
    last = 0
    for number in range(begin, begin + count):
        done = await db.execute("insert into t values (?)", (number,))
        assert isinstance(done, SqlResult)
        assert done.position > last
        last = done.position
    return last


def test_a_server_stops_in_good_order_and_needs_only_its_folder(tmp_path: Path) -> None:
    async def write(servers: Servers, names: str, sql: str) -> None:
        async with semcast.database(servers.database, servers=servers.addresses(names)) as db:
            await db.execute(sql)

    with Servers(tmp_path) as servers:
        asyncio.run(write(servers, "c", "create table t(a)"))
        assert servers["c"].end(signal.SIGTERM) == (0, "")
        asyncio.run(write(servers, "ab", "insert into t values (1)"))
        again = Server([servers.database, "--data", str(tmp_path / "c"), "--listen", "127.0.0.1:0"])
        try:
            again.until(event="state", primary=True, view=["a", "b", "c"])

            async def read() -> None:
                async with semcast.database(servers.database, servers=[again.address]) as db:
                    assert (await db.query("select count(*) from t")).rows == [(1,)]

            asyncio.run(read())
        finally:
            assert again.end(signal.SIGTERM) == (0, "")


def test_a_stop_does_not_wait_for_those_who_wait_for_a_primary(tmp_path: Path) -> None:
    async def work(servers: Servers) -> None:
        async with semcast.database(servers.database, servers=servers.addresses("c")) as db:
            await db.execute("create table t(a)")
            for name in "ab":
                servers[name].kill()
            servers["c"].until(event="state", primary=False, view=["c"])
            waiting = asyncio.create_task(db.execute("insert into t values (1)", timeout=60))
            kept = await db.execute("insert into t values (2)", level="queued")
            assert not isinstance(kept, SqlResult)
            shown = (await db.query("select * from t order by a", level="dirty")).rows
            assert (2,) in shown
            assert (await db.query("select * from t", level="weak")).rows == []
            code = await asyncio.to_thread(servers["c"].end, signal.SIGTERM)
            assert code == (0, "")
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    with Servers(tmp_path) as servers:
        asyncio.run(work(servers))


def test_a_server_that_waits_for_the_others_can_be_stopped(tmp_path: Path) -> None:
    alone = Server([f"db-{os.getpid()}", "--data", str(tmp_path), "--name", "a", "--with", "a,b"])
    while not (tmp_path / f"db-{os.getpid()}").exists():
        assert alone.process.poll() is None
        time.sleep(0.05)
    assert alone.end(signal.SIGTERM) == (0, "")


def test_a_port_that_is_taken_is_told_before_it_waits_for_the_others(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        words = [f"db-{os.getpid()}", "--data", str(tmp_path / "n"), "--name", "n", "--join", "here"]
        alone = Server([*words, "--listen", place])
        try:
            alone.process.wait(30)
        finally:
            alone.process.kill()
            code, errors = alone.end()
    assert code == 2
    assert "Address already in use" in errors
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "in use by process"),
        (("--name", "b"), "belongs to the server 'a', not to 'b'"),
        (("--with", "a,z"), "was founded with a, not with a, z"),
    ],
)
def test_a_second_server_on_one_folder_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    with Servers(tmp_path, "a") as servers:
        second = Server([servers.database, "--data", str(tmp_path / "a"), "--listen", "127.0.0.1:0", *words])
        second.process.wait(30)
        code, errors = second.end()
        assert code == 2
        assert said in errors
        assert len(errors.splitlines()) == 1


def test_a_full_disk_ends_a_server_with_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    """The disk is full for this process: no file may be larger than that."""
    name, words = f"db-{token_hex(4)}", ["--data", str(tmp_path / "a"), "--listen", "127.0.0.1:0"]
    full = Server([name, *words, "--name", "a", "--with", "a"], most_bytes=3_000_000)

    async def fill(address: str) -> int:
        async with semcast.database(name, servers=[address]) as db:
            await db.execute("create table t(n integer primary key, b)")
            for number in range(1, 50):
                try:
                    await db.execute("insert into t(b) values (?)", (bytes(200_000),), timeout=3)
                except (semcast.GroupError, TimeoutError):
                    return number - 1
        raise AssertionError("there was room for everything")

    async def count(address: str) -> int:
        async with semcast.database(name, servers=[address]) as db:
            return int(str((await db.query("select count(*) from t", level="linear")).rows[0][0]))

    answered = asyncio.run(fill(full.address))
    assert full.process.wait(30) == 3
    (sentence,) = full.end()[1].splitlines()
    assert "cannot go on" in sentence or "nothing can be kept any more" in sentence
    assert answered > 0
    again = Server([name, *words])
    try:
        again.until(event="state", primary=True)
        assert answered <= asyncio.run(count(again.address)) <= answered + 1
    finally:
        assert again.end(signal.SIGTERM) == (0, "")


def test_a_damaged_database_file_is_told_and_made_anew_from_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"db-{token_hex(4)}"

    async def work(*statements: str) -> int:
        async with semcast.database(name, name="a", founders=["a"], data=str(tmp_path), servers=None) as db:
            for sql in statements:
                await db.execute(sql)
            return len(db.weak("select * from t"))

    assert asyncio.run(work("create table t(a)", "insert into t values (1)")) == 1
    (path,) = tmp_path.glob("*/a/database.sqlite")
    path.write_bytes(b"something else" * 100)
    with pytest.raises(DatabaseError, match="no SQLite database"):
        asyncio.run(work())
    words = ["serve", name, "--data", str(tmp_path), "--name", "a", "--with", "a", "--listen", "127.0.0.1:0"]
    assert main(words) == 3
    assert "the file is no SQLite database. Move database.sqlite away" in capsys.readouterr().err
    path.unlink()
    assert asyncio.run(work()) == 1


def test_servers_join_and_leave(tmp_path: Path) -> None:
    async def work(servers: Servers) -> None:
        async with semcast.database(servers.database, servers=servers.addresses("ab")) as db:
            await db.execute("create table t(a)")
            await db.execute("insert into t values (1)")
            newcomer = servers.start("d", "--join", "here")
            for _ in range(300):
                if "d" in (await db.members())["strangers"]:
                    break
                await asyncio.sleep(0.1)
            await db.add_server("d")
            await asyncio.to_thread(newcomer.until, event="state", primary=True, view=["a", "b", "d"])
            async with semcast.database(servers.database, servers=[newcomer.address]) as there:
                assert (await there.query("select * from t")).rows == [(1,)]
            await db.weigh_server("a", 2)
            await db.remove_server("d")
            assert (await db.members())["servers"] == {"a": 2, "b": 1}
            assert await asyncio.to_thread(newcomer.process.wait, 30) == 3
            assert "d cannot go on" in newcomer.end()[1]

    with Servers(tmp_path, "ab") as servers:
        asyncio.run(work(servers))


def test_three_servers_with_nothing_configured(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "semcast"]
    with subprocess.Popen(
        [*command, "serve", "demo"], stdout=subprocess.PIPE, text=True, env=environment
    ) as demo:
        assert demo.stdout is not None
        said = ""
        while "Ctrl-C" not in said:
            line = demo.stdout.readline()
            assert line, said
            said += line
        try:
            for sql in ("create table t(a)", "insert into t values (1)"):
                subprocess.run([*command, "sql", "demo", sql], check=True, env=environment, timeout=60)
            asked = [*command, "sql", "demo", "select a from t", "--level", "linear", "--json"]
            found = subprocess.run(asked, check=True, env=environment, timeout=60, capture_output=True)
            assert json.loads(found.stdout)["rows"] == [[1]]
            asked = [*command, "sql", "demo", "--verify", "--json"]
            found = subprocess.run(asked, check=True, env=environment, timeout=60, capture_output=True)
            assert json.loads(found.stdout)["servers"] == ["a", "b", "c"]
            twice = subprocess.run(
                [*command, "serve", "demo"], check=False, env=environment, timeout=60, capture_output=True
            )
            assert (twice.returncode, b"runs on this host already: a (" in twice.stderr) == (3, True)
        finally:
            demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 0


def test_servers_of_a_demo_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    words = ["serve", f"orphan {os.getpid()}", "--data", str(tmp_path / "a"), "--name", "a", "--with", "a"]
    with subprocess.Popen(
        [sys.executable, "-m", "semcast", *words, "--listen", "127.0.0.1:0", "--json", "--until-closed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        while "serving" not in server.stdout.readline():
            assert server.poll() is None
        server.stdin.close()
        assert server.wait(30) == 0


def test_what_was_cut_off_the_log_and_damage_are_said(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "semcast", "serve", f"torn {os.getpid()}", "--data", str(tmp_path / "a")]
    words += ["--name", "a", "--with", "a", "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}

    def start(code: int = 0) -> str:
        """What it says until it serves, or ends; then it is stopped."""
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as server:
            assert server.stderr is not None
            said = ""
            while "serves at" not in said and (line := server.stderr.readline()):
                said += line
            if not code:
                server.terminate()
            assert server.wait(30) == code
            return said

    start()
    log = next((tmp_path / "a").glob("**/*.log"))
    data = log.read_bytes()
    log.write_bytes(data + b"torn")
    assert "warning: " in (said := start())
    assert "cut off 4 bytes that a crash interrupted" in said
    log.write_bytes(data[:60] + bytes([data[60] ^ 4]) + data[61:])
    assert "is damaged at byte" in (said := start(3))
    assert "or remove a at another server (semcast sql" in said


@pytest.mark.parametrize("namespaces", [True, False])
def test_the_demo_of_a_partition(namespaces: bool) -> None:
    hide = "" if namespaces else "os.geteuid = lambda: 1; "
    program = f"import os, sys; {hide}from semcast.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "demo", "replication", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["tables"] == [[[125]], [["Low St"]], [[5]]]
    levels = [(step["side"], step["level"]) for step in result["steps"]]
    assert len(levels) == len(set(levels)) == 14
    unknown = {name for name, status in result["verdicts"].items() if status == "unknown"}
    assert unknown == {"repl_state", "repl_queued", "repl_liveness"}, "the run was not over"
    assert {status for name, status in result["verdicts"].items() if name not in unknown} == {"holds"}
