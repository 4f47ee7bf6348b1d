"""The client: what it asks once is done once, whichever server answers."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from tests.server.conftest import Running, Serve
from tests.server.test_server_access import certificate

import semcast
import semcast.blocking
from semcast.engine import ActionError, RequestError
from semcast.engine.results import SqlResult
from semcast.server.addresses import KnownServer
from semcast.server.calling import Caller
from semcast.server.client import Client, Promise, ServedResult
from semcast.server.errors import AccessError, PendingError, UnreachableError
from semcast.server.serving import ServerAddress
from semcast.sql.errors import StatementError

T = TypeVar("T")


def within(running: Running, work: Callable[[Client], Coroutine[Any, Any, T]], **settings: Any) -> T:
    async def run() -> T:
        async with semcast.database("standin", servers=[running.address], **settings) as db:
            return await work(db)

    return asyncio.run(run())


def test_the_calls_of_a_database(serve: Serve, tmp_path: Path) -> None:
    async def work(db: Client) -> None:
        await db.execute("create table t(a integer primary key, b, at)")
        done = await db.execute("insert into t(b) values (?) returning b", (b"\x00",))
        assert done == ServedResult(2, 1, 1, ("b",), ((b"\x00",),))
        done = await db.transaction(
            [("update t set b = ?", (2.5,)), "insert into t(b) values (3)"],
            expect=[("select count(*) from t", (), [(1,)])],
        )
        assert isinstance(done, SqlResult)
        assert done.changes == 2
        found = await db.query("select b from t order by a")
        assert (found.position, found.columns, found.rows) == (3, ("b",), [(2.5,), (3,)])
        put = await db.put("t", {"a": 9}, {"b": "x"}, at=5)
        assert (await put.ordered()).changes == 1
        await db.add("t", {"a": 9}, "at", 2)
        assert (await db.query("select at from t where a = ?", (9,))).rows == [(7,)]
        with pytest.raises(ActionError, match="UNIQUE"):
            await db.execute("insert into t(a) values (9)")
        with pytest.raises(ActionError, match="expectation failed"):
            await db.transaction(["delete from t"], expect=[("select 1", (), [(2,)])])
        with pytest.raises(StatementError, match="ORDER BY"):
            await db.execute("delete from t limit 1")
        with pytest.raises(RequestError, match=r"level .strong.: reads are"):
            await db.query("select 1", level="strong")
        assert (await db.status())["primary"] is True
        await db.add_server("b", weight=3)
        assert (await db.members())["servers"] == {"a": 1, "b": 3}
        await db.weigh_server("b", 0)
        await db.remove_server("b")
        assert await db.backup(tmp_path / "copy") == 7
        with pytest.raises(RequestError, match="there is a file already"):
            await db.backup(tmp_path / "copy")

    within(serve(), work)


def test_the_floor_rises_over_what_the_client_has(serve: Serve) -> None:
    running = serve()

    async def work(db: Client) -> None:
        await db.execute("create table t(a)")
        promise = await db.execute("insert into t values (1)", level="queued")
        assert isinstance(promise, Promise)
        await db.execute("insert into t values (2)")
        await promise.ordered()
        await promise.ordered()
        await db.execute("insert into t values (3)")
        assert (await db.query("select count(*) from t")).rows == [(3,)]

    within(running, work)
    asked = [(each["number"], each["floor"]) for each in running.database.asked]
    assert asked == [(1, 1), (2, 2), (3, 2), (2, 2), (4, 4)]
    assert len({each["client"] for each in running.database.asked}) == 1


@contextlib.contextmanager
def swallowing(address: str) -> Iterator[str]:
    """A server between: it passes requests on, and loses the answers to updates."""
    host, _, port = address.rpartition(":")
    listening = socket.create_server(("127.0.0.1", 0))

    def relay() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                with client, socket.create_connection((host, int(port))) as server:
                    asked = client.recv(1 << 16)
                    while b"\r\n\r\n" not in asked or (b"POST" in asked and not asked.endswith(b"}")):
                        asked += client.recv(1 << 16)
                    server.sendall(asked.replace(b"keep-alive", b"close"))
                    answer = b"".join(iter(lambda: server.recv(1 << 16), b""))
                    if b"/v1/execute" not in asked:
                        client.sendall(answer)

    thread = threading.Thread(target=relay)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def test_an_update_whose_answer_is_lost_is_done_once(serve: Serve) -> None:
    running = serve()

    async def work() -> None:
        with swallowing(running.address) as between:
            async with semcast.database("standin", servers=[between, running.address]) as db:
                await db.execute("create table t(a)")
                assert running.address in db.server
            async with semcast.database("standin", servers=[between, running.address]) as db:
                done = await db.execute("insert into t values (1) returning a")
                assert isinstance(done, SqlResult)
                assert done.rows == ((1,),)
                assert (await db.query("select count(*) from t")).rows == [(1,)]

    asyncio.run(work())
    assert [each["number"] for each in running.database.asked] == [1, 1, 1, 1]


def test_when_no_answer_comes_the_program_may_ask_again(serve: Serve) -> None:
    running = serve()

    async def work(db: Client) -> None:
        await db.execute("create table t(a)")
        running.call(running.database.primary.clear)
        with pytest.raises(PendingError, match="may be done yet") as raised:
            await db.execute("insert into t values (1)", timeout=0.2)
        with pytest.raises(TimeoutError):
            await db.query("select 1", level="linear", timeout=0.2)
        running.call(running.database.primary.set)
        await db.execute("insert into t values (1)", number=raised.value.number)
        await db.execute("insert into t values (1)", number=raised.value.number)
        assert (await db.query("select count(*) from t")).rows == [(1,)]
        with pytest.raises(RequestError, match="number 9"):
            await db.execute("insert into t values (1)", number=9)

    within(running, work)


def test_the_next_server_is_taken_when_one_is_gone(serve: Serve) -> None:
    first, second = serve(), serve()

    async def work() -> None:
        async with semcast.database("standin", servers=[first.address, second.address]) as db:
            assert first.address in db.server
            await asyncio.to_thread(first.stop)
            await db.execute("create table t(a)")
            assert second.address in db.server
            await asyncio.to_thread(second.stop)
            with pytest.raises(UnreachableError, match=r"no server answered within 0\.5 s: .*; http"):
                await db.query("select 1", timeout=0.5)

    asyncio.run(work())


def test_a_server_of_another_database(serve: Serve) -> None:
    running = serve()

    async def work() -> None:
        with pytest.raises(semcast.GroupError, match="serves the database 'standin', not 'bank'"):
            await semcast.database("bank", servers=[running.address])

    asyncio.run(work())


@pytest.mark.parametrize(
    ("servers", "settings", "words"),
    [
        ([], {}, "name at least one"),
        ("a:1", {}, "a list of host:port"),
        (["a"], {}, "not an address and a port"),
        (["ftp://a:1"], {}, "write host:port, or https"),
        (["http://a:1/x"], {}, "write host:port, or https"),
        ([1], {}, "write host:port"),
        (["10.0.0.1:7"], {"token": "t"}, "travel in the open"),
        (["a:1"], {"timeout": 0}, "more than 0"),
        (["https://a:1"], {"ca": "/nowhere"}, "No such file"),
    ],
)
def test_settings_that_make_no_sense(servers: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        semcast.database("standin", servers=servers, **settings)


def test_something_else_than_a_server(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"

        async def work() -> None:
            with pytest.raises(TimeoutError, match="connection was lost"):
                await semcast.database("standin", servers=[address], timeout=0.2)

        asyncio.run(work())


def test_a_last_try_for_which_no_time_was_left_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[httpx.HTTPError] = [httpx.ConnectError("no route")]

    async def failing(*_arguments: Any, **_settings: Any) -> httpx.Response:
        raise errors.pop() if errors else httpx.ConnectTimeout("")

    monkeypatch.setattr(httpx.AsyncClient, "request", failing)
    caller = Caller([KnownServer("http://nowhere", False)], "", "")
    with pytest.raises(UnreachableError, match=r"no server answered within 0\.3 s: http://nowhere: no route"):
        asyncio.run(caller.get("/v1/status", 0.3))
    assert not errors


def test_tokens_and_tls(serve: Serve, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    tokens = tmp_path / "tokens"
    tokens.write_text("read " + "t" * 20)
    tokens.chmod(0o600)
    running = serve(place=ServerAddress("127.0.0.1:0", cert, key), tokens=tokens)

    async def work(db: Client) -> None:
        await db.query("select 1")
        with pytest.raises(AccessError, match="the role write"):
            await db.execute("create table t(a)")

    within(running, work, ca=os.fspath(cert), token="t" * 20)
    with pytest.raises(AccessError, match="a token that it knows"):
        within(running, work, ca=os.fspath(cert), token="x" * 20)
    with pytest.raises(UnreachableError, match=r"no server is trusted: .*CERTIFICATE_VERIFY_FAILED"):
        within(running, work, tls=True, token="t" * 20)


def test_a_closed_client_says_so(serve: Serve) -> None:
    running = serve()

    async def work() -> None:
        db = await semcast.database("standin", servers=[running.address])
        await db.close()
        for call in (db.query("select 1"), db.execute("select 1"), db.status()):
            with pytest.raises(semcast.GroupClosedError):
                await call

    asyncio.run(work())


def test_without_asyncio(serve: Serve) -> None:
    running = serve()
    with semcast.blocking.database("standin", servers=[running.address]) as db:
        db.execute("create table t(a integer primary key, n)")
        promise = db.add("t", {"a": 1}, "n", 2)
        assert promise.ordered().changes == 1
        assert db.query("select n from t").rows == [(2,)]
        with pytest.raises(ActionError):
            db.execute("insert into t values (1, 1)")
    with pytest.raises(semcast.GroupClosedError):
        db.query("select 1")
    with pytest.raises(semcast.GroupError):
        semcast.blocking.database("bank", servers=[running.address])


def test_a_client_has_no_folder() -> None:
    with pytest.raises(semcast.ConfigurationError, match="servers= is for clients"):
        semcast.database("bank", servers=["127.0.0.1:7420"], data="folder")
