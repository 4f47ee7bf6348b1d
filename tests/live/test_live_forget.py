"""The operator's way out: a server is gone for good, and the others cannot go on without it."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.live.lab.databases import Servers

import semcast
from semcast.cli.main import main


class Refusals:
    """What a server says that does not start."""

    def __init__(self, database: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._database, self._capsys = database, capsys

    def __call__(self, folder: Path, *words: str) -> str:
        assert main(["serve", self._database, "--data", str(folder), "--listen", "127.0.0.1:0", *words]) == 2
        said = self._capsys.readouterr().err
        assert len(said.splitlines()) == 1
        return said


async def ask(servers: Servers, name: str, *statements: str, level: str = "strict") -> None:
    async with semcast.database(servers.database, servers=servers.addresses(name)) as db:
        for sql in statements:
            await db.execute(sql, level=level)


async def rows(servers: Servers, name: str) -> list[tuple[object, ...]]:
    async with semcast.database(servers.database, servers=servers.addresses(name)) as db:
        return (await db.query("select a from t order by a", level="linear")).rows


def test_who_is_forgotten_stops_and_what_it_had_is_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Servers(tmp_path) as servers:
        asyncio.run(ask(servers, "a", "create table t(a)", "insert into t values (1)"))
        servers["c"].kill()
        servers["b"].until(event="state", primary=True, view=["a", "b"])
        servers["b"].kill()
        servers["a"].until(event="state", primary=True, view=["a"])  # half of the last primary, and the first
        asyncio.run(ask(servers, "a", "insert into t values (2)", "insert into t values (3)"))
        servers["a"].kill()
        b, c = tmp_path / "b", tmp_path / "c"
        refused = Refusals(servers.database, capsys)
        assert "there is no server 'z': the servers are a, b, c" in refused(b, "--forget", "z")
        assert "b cannot forget itself" in refused(b, "--forget", "b")
        assert "--accept-loss is for --forget" in refused(b, "--accept-loss")
        servers.start("c", "--with", "a,b,c").until(event="starting")
        servers["c"].until(event="state", primary=False)
        assert "c is alive" in refused(b, "--forget", "a,c")
        assert "is in use by process" in refused(c, "--forget", "a")
        servers.start("b", "--forget", "a").until(event="forgot", forgotten=["a"])
        servers["b"].until(event="state", primary=True, view=["b", "c"])
        asyncio.run(ask(servers, "c", "insert into t values (4)"))
        assert asyncio.run(rows(servers, "b")) == [(1,), (4,)]
        back = servers.start("a")
        assert back.process.wait(30) == 3
        said = back.end()[1]
        assert "this server was forgotten by an operator" in said
        assert "positions 3 to 4 were ordered here, and are not part of the database" in said
        assert asyncio.run(rows(servers, "c")) == [(1,), (4,)]
        servers["b"].kill()
        servers.start("b", "--forget", "a").until(event="forgot", forgotten=[], known=["a"])
        servers["b"].until(event="state", primary=True, view=["b", "c"])
        words = ["sql", servers.database, "--export-lost", str(tmp_path / "a")]
        assert main([*words, "--after", "2"]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(each["position"], each["action"]["statements"][0][0]) for each in found] == [
            (3, "insert into t values (2)"),
            (4, "insert into t values (3)"),
        ]
        assert main(words) == 0
        assert capsys.readouterr().out == ""
        assert main(["sql", servers.database, "--export-lost", str(b)]) == 2
        assert "is in use by process" in capsys.readouterr().err
        assert main(["sql", servers.database, "--export-lost", str(tmp_path)]) == 2
        assert "this is not the folder of a server" in capsys.readouterr().err
        assert main(["sql", "other", "--export-lost", str(tmp_path / "a")]) == 2


def test_what_is_queued_at_a_server_can_be_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Servers(tmp_path) as servers:
        asyncio.run(ask(servers, "a", "create table t(a)"))
        for name in "ab":
            servers[name].kill()
        servers["c"].until(event="state", primary=False, view=["c"])
        asyncio.run(ask(servers, "c", "insert into t values (5)", level="queued"))
        servers["c"].kill()
        assert main(["sql", servers.database, "--export-lost", str(tmp_path / "c")]) == 0
        (found,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert (found["position"], found["level"]) == (None, "queued")
        assert found["action"]["statements"] == [["insert into t values (5)", []]]
        assert (found["number"], len(found["client"])) == (1, 32)
