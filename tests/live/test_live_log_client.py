"""`semcast.log`: positions of a log that another process has, which is killed and started again."""

import asyncio
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.live.test_live_logger import PATIENCE, Process

import semcast
from semcast import blocking
from semcast.cli.main import main


@pytest.fixture
def group() -> str:
    return f"log client {uuid.uuid4().hex}"


@pytest.fixture
def started(group: str) -> Iterator[list[Process]]:
    processes: list[Process] = []
    yield processes
    for each in processes:
        each.kill()


def start(started: list[Process], folder: Path, group: str, *more: str) -> Process:
    process = Process(folder, group, *more)
    started.append(process)
    process.says()
    return process


def test_positions_survive_a_restart_of_the_logger(
    tmp_path: Path, group: str, started: list[Process]
) -> None:
    async def test() -> None:
        logger = start(started, tmp_path / "log", group, "--name", "log1")
        async with asyncio.timeout(PATIENCE), semcast.log(group) as log:
            assert log.identity.logger == "log1"
            batch = [b"%05d" % number for number in range(3000)]
            receipt = await log.publish(b"batch 1", batch)
            assert (receipt.position, receipt.known) == (0, False)
            before = await log.ends()
            assert (before.first, before.next) == (0, 3000)
            logger.kill()
            asking = asyncio.ensure_future(log.publish(b"batch 2", [b"a", b"b"], ["x", "x"]))
            await asyncio.sleep(0)
            start(started, tmp_path / "log", group)
            assert (await asking).position == 3000
            assert await log.publish(b"batch 1", batch) == semcast.LogReceipt(0, known=True)
            found = [entry async for page in log.scan(0, 10_000) for entry in page.entries]
            assert [entry.message.payload for entry in found[:-1]] == batch, "a was replaced by b"
            assert (found[-1].position, found[-1].message.payload) == (3001, b"b")
            assert await log.at_time(found[-1].at) in (3000, 3001)
            with pytest.raises(semcast.LogOffsetError, match="beyond the end of the log, which is 3002"):
                await log.read(9000, 9001)
            large = [b"%08d" % number for number in range(30_000)]
            assert (await log.publish(b"batch 3", large)).position == 3002, "in pieces"
            assert (await log.publish(b"batch 3", large)).known
            assert (await log.ends()).next == 33_002
            with pytest.raises(semcast.LogStageError, match="2 of 2 pieces of stage nothing"):
                await log.publish_staged(b"batch 4", [("nothing", 2)])
            started[-1].kill()
            shutil.rmtree(tmp_path / "log")
            start(started, tmp_path / "log", group, "--name", "log1")
            with pytest.raises(semcast.OtherLogError, match="this is log"):
                await log.ends()

    asyncio.run(test())


def test_a_question_that_makes_no_sense_is_refused_at_once(
    tmp_path: Path, group: str, started: list[Process]
) -> None:
    """A logger drops what it cannot read: the program would wait for an answer for ever."""

    async def test() -> None:
        start(started, tmp_path, group)
        async with asyncio.timeout(PATIENCE), semcast.log(group) as log:
            for words in ("text", [b"x", "text"], [None]):
                with pytest.raises(TypeError, match="must be bytes"):
                    await log.publish(b"k", words)  # type: ignore[arg-type]
                with pytest.raises(TypeError, match="must be bytes"):
                    await log.stage("s", words)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="key of type str"):
                await log.publish("k", [b"x"])  # type: ignore[arg-type]
            for pieces in (-1, 1 << 70):
                with pytest.raises(semcast.LogError, match="release: "):
                    await log.publish_staged(b"k", [("s", pieces)])
            with pytest.raises(semcast.LogError, match="read: "):
                await log.read(0, 1, prefix="x" * 65)
            with pytest.raises(semcast.LogError, match="read: "):
                await log.read(1 << 70, 1 << 71)
            with pytest.raises(semcast.LogError, match="ask: "):
                await log.at_time(1e60)
            with pytest.raises(semcast.LogError, match="ask: "):
                await log.forget("x" * 65)
            assert (await log.read(0, sys.maxsize)).next == 0

    asyncio.run(test())


def test_members_are_given_what_is_published_and_programs_read_what_members_send(
    tmp_path: Path, group: str, started: list[Process]
) -> None:
    start(started, tmp_path, group)
    with (
        blocking.subscribe(group, start="all") as subscription,
        blocking.log(group) as log,
    ):
        subscription.group.send(b"of a member", logged=True, timeout=PATIENCE)
        log.publish(b"k", [b"of no member"])
        given: list[bytes] = []
        for batch in subscription.batches(timeout=PATIENCE):
            given += [message.payload for message in batch]
            if len(given) == 2:
                break
        read = [entry.message.payload for page in log.scan(0, log.ends().next) for entry in page.entries]
        assert sorted(given) == sorted(read) == [b"of a member", b"of no member"]


def test_an_operator_has_the_loggers_go_on_without_one(
    tmp_path: Path, group: str, started: list[Process], capsys: pytest.CaptureFixture[str]
) -> None:
    both = ("--with", "log1,log2")
    started += [Process(tmp_path / number, group, "--name", f"log{number}", *both) for number in "12"]
    for each in started:  # they wait for each other
        each.says()
    gone = started[1]
    with blocking.log(group, logger="log1") as log:
        with pytest.raises(semcast.LogError, match="log2 is there: stop it first"):
            log.forget("log2")
        gone.kill()
        forgotten = False
        while not forgotten:  # log1 has heard it a moment ago
            with suppress(semcast.LogError):
                log.forget("log2")
                forgotten = True
            time.sleep(0.1)
    assert main(["log", "forget", group, "log2", "--ask", "log1"]) == 0
    assert capsys.readouterr().out == f"{group}: log2 is forgotten\n"
    back = Process(tmp_path / "2", group, "--name", "log2", *both)
    started.append(back)
    code, told = back.over()
    assert code == 2
    assert "log1 goes on without log2: it was forgotten (semcast log forget)" in told


def test_a_program_says_how_long_it_waits(tmp_path: Path, group: str, started: list[Process]) -> None:
    with pytest.raises(semcast.LogAwayError, match=r"answered for 0\.2 s: does `semcast logger` run\?"):
        blocking.log(group, timeout=0.2).__enter__()
    logger = start(started, tmp_path, group)
    with blocking.log(group, timeout=1.0) as log:
        log.publish(b"k", [b"%d" % number for number in range(3000)])
        runs = [run for page in log.scan_runs(0, 1 << 40) for run in page.runs]
        assert [each for run in runs for each in run.payloads] == [b"%d" % number for number in range(3000)]
        logger.kill()
        for _ in range(70):  # more than may be under way at a time
            log._seat.log._timeout = 0.001
            with pytest.raises(semcast.LogAwayError):
                log.ends()
        log._seat.log._timeout = PATIENCE
        start(started, tmp_path, group)
        assert log.ends().next == 3000
