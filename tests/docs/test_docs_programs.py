"""Every program in the docs runs. Those that need several members, a disk or a logger run in virtual time."""

import asyncio
import contextlib
import io
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import semcast
from semcast.cli.main import main
from semcast.testing import World

ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "README.md": "tests/docs/test_docs.py, tests/group/test_readme.py",
    "docs/adding-a-stack.md": "tests/docs/test_docs.py",
    "docs/calls.md": "tests/calls/test_calls_docs.py",
    "docs/domains.md": "tests/domains/test_domain_docs.py",
    "docs/streaming.md": "tests/pipeline/test_pipeline_stream_docs.py",
    "docs/patterns.md": "tests/patterns/test_patterns_docs.py",
    "docs/testing-your-application.md": "tests/testing/test_testing_docs.py",
    "docs/tutorial.md": "tests/group/test_tutorial.py",
}
HERE = ("agreed-views", "daemon", "database", "index", "logs", "patterns", "security", "server")
Program = Callable[..., Any]


def blocks(page: str, language: str = "python") -> list[str]:
    """The programs of a page, in order."""
    text = (ROOT / "docs" / f"{page}.md").read_text("utf8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def defined(program: str, **names: Any) -> dict[str, Any]:
    """What a program defines; whoever calls this runs its `main` itself."""
    space = {"semcast": semcast, "asyncio": asyncio, **names}
    exec(compile(program.replace("asyncio.run(main())", ""), "docs", "exec"), space)  # noqa: S102
    return space


def wrapped(fragment: str, **names: Any) -> Program:
    """A part of a program as an `async def`."""
    return defined("async def part() -> None:\n" + textwrap.indent(fragment, "    "), **names)["part"]  # type: ignore[no-any-return]


def printed(run: Callable[[], object]) -> list[str]:
    found = io.StringIO()
    with contextlib.redirect_stdout(found):
        run()
    return found.getvalue().splitlines()


def test_every_page_with_programs_has_a_test() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    found = {
        str(page.relative_to(ROOT)) for page in pages if re.search("^ *```py", page.read_text("utf8"), re.M)
    }
    assert found == {*ELSEWHERE, *(f"docs/{page}.md" for page in HERE)}
    for tests in ELSEWHERE.values():
        assert all((ROOT / test).exists() for test in tests.split(", "))


def test_the_first_page() -> None:
    [program] = blocks("index")
    with World(hosts=["a"]) as world:
        [line] = printed(lambda: world.run(defined(program)["main"]))
    assert re.fullmatch(r"a-\w+ b'101.50'", line), "without a name, a member is called after its host"


def test_agreed_views() -> None:
    class Accounts:
        def export(self) -> bytes:
            return b""

        def restore(self, state: bytes) -> None:
            pass

    [fragment] = blocks("agreed-views")
    with World(hosts=2) as world:
        for host in world.hosts:
            world.start(host, wrapped(fragment, accounts=Accounts()))
        world.sleep(5)
        assert len(world.processes) == 2
        views = [each for each in world.trace() if " view " in each]
        assert len(views) >= 2


def test_a_replicated_service_and_its_sessions() -> None:
    first, second, _ = blocks("database")
    with World(hosts=1) as world:
        assert printed(lambda: world.run(defined(first)["main"])) == ["1 b'5'", "b'5'"]

    async def main() -> bytes:
        counter = defined(first)["Counter"]
        async with semcast.replicate("g", counter(), name="a", founders=["a"], data="d") as replica:
            await wrapped(second, replica=replica)()
            return (await replica.query(b"", level="weak")).result

    with World(hosts=1) as world:
        assert world.run(main) == b"5", "the same request was made twice, and done once"


def test_a_replicated_database() -> None:
    fragment = blocks("database")[2]

    async def other(name: str) -> None:
        async with semcast.database("bank", name=name, founders=["a", "b", "c"], data="bank-data"):
            await asyncio.Event().wait()

    with World(hosts=["a", "b", "c"]) as world:
        for host in ("b", "c"):
            world.start(host, other, host)
        found = printed(lambda: world.wait(world.start("a", wrapped(fragment))))
    assert found == ["2 ((1,),)", "('id', 'balance') [(1, 5)]"]


def test_a_client_of_a_database() -> None:
    """The calls of a client are those of a server in process."""
    [program] = blocks("server")
    asked = 'semcast.database("bank", servers=servers, token="...", ca="ca.pem")'
    assert asked in program
    here = program.replace(asked, 'semcast.database("bank", name="a", founders=["a"], data="d")')
    tables = (
        "create table account (id integer primary key, balance integer)",
        "insert into account values (1, 100)",
        "create table log (what text)",
        "create table taxi (id integer primary key, street text, at integer)",
        "create table stock (part text primary key, count integer)",
    )
    made = "as db:\n" + "".join(f"        await db.execute({table!r})\n" for table in tables)
    with World(hosts=1) as world:
        assert printed(lambda: world.run(defined(here.replace("as db:\n", made))["main"])) == ["6 1", "8"]


def test_logs() -> None:
    first, second = blocks("logs")
    space = defined(first)

    async def logger() -> None:
        async with semcast.join("prices", stack="gossip", name="log", logger=True, receive=False, data="d"):
            await asyncio.Event().wait()

    def run(world: World) -> None:
        world.start("log", logger)
        world.sleep(1)
        world.start("desk", space["read"])
        world.wait(world.start("feed", space["publish"]))
        world.sleep(3)
        world.wait(world.start("other", defined(second)["copy"], [b"one", b"two"]))
        world.sleep(3)

    with World(hosts=["log", "feed", "desk", "other"]) as world:
        found = printed(lambda: run(world))
    assert found[:2] == ["feed b'159.2'", "feed b'trade 17'"]
    assert [each.split()[-1] for each in found[-2:]] == ["b'one'", "b'two'"]


def test_a_domain_of_a_daemon() -> None:
    """`connect` returns a `Domain`, as `domain` does, which needs no daemon."""
    [program] = blocks("daemon")
    here = program.replace("semcast.connect(", 'semcast.domain("floor", ')
    with World(hosts=1) as world:
        world.start("a", defined(here)["main"])
        found = printed(lambda: world.sleep(3))
    assert any(line.startswith("prices ") and "101.5" in line for line in found)


def test_a_pattern_on_a_live_group() -> None:
    [fragment] = blocks("patterns", "py")
    programs = blocks("patterns")
    space: dict[str, Any] = {}
    for program in programs[:3]:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(program, "patterns.md", "exec"), space)  # noqa: S102
    names = {"PrimaryBackup": space["PrimaryBackup"], "book": space["book"]}
    with World(hosts=2) as world:
        for host in world.hosts:
            world.start(host, wrapped(fragment + "    await asyncio.sleep(2)\n", **names))
        found = printed(world.wait)
    assert len(found) == 2
    assert all("seat" in line for line in found)


def test_a_sealed_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [fragment] = blocks("security")
    monkeypatch.chdir(tmp_path)
    assert main(["keygen", "semcast-keys.toml"]) == 0
    assert "192.0.2.7" in fragment
    with World(hosts=2) as world:
        for number, host in enumerate(world.hosts, 1):
            world.start(
                host,
                wrapped(fragment.replace("192.0.2.7", f"10.0.0.{number}") + "    await asyncio.sleep(2)\n"),
            )
        world.wait()
