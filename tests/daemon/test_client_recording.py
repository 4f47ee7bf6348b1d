"""A live daemon and its programs record, and `semcast check` compares what was told with what was heard."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import pytest
from tests.daemon.processes import PATIENCE, DaemonProcess

import semcast
from semcast.cli.main import main
from semcast.history import History, read_histories
from semcast.specs import CALLS, LIGHTWEIGHT, Status, check
from semcast.specs.lightweight.kinds import HEARD


def recorded(folder: Path) -> dict[str, History]:
    found = [alone for history in read_histories(folder) for alone in history.by_group()]
    return {history.info.only.name: history for history in found}


async def _echo(request: semcast.CallRequest) -> bytes:
    await asyncio.sleep(0)
    return request.payload


async def _use(where: str, folder: Path) -> None:
    """Two programs join, leave, come back, send and call, some of it slowly."""
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        hosts = [
            await stack.enter_async_context(semcast.connect(where, name=name, record=str(folder), window=8))
            for name in ("alice", "bob")
        ]
        groups = [await host.join("prices") for host in hosts]
        for group in groups:
            group.on_call(_echo)
        await groups[0].wait_for(2)
        rng = Random(1)
        for number in range(200):
            await hosts[0].send("prices", b"%d" % number, item=rng.choice("xy"))
        await hosts[0].send_to(hosts[1].member, b"psst")
        for _ in range(3):
            assert (await groups[0].call(b"?")).complete
            assert (await groups[1].call(b"?", to="one")).complete
            await groups[1].leave()  # and back, as the same member: its calls go on counting
            groups[1] = await hosts[1].join("prices")
            groups[1].on_call(_echo)
        await hosts[0].flush()


def test_what_programs_heard_and_called_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "journals"
    daemon = DaemonProcess(tmp_path / "d.sock", f"d{tmp_path.name}", "d", "--record", str(folder)).ready()
    try:
        asyncio.run(_use(daemon.socket, folder))
        assert daemon.end()[0] == 0
    finally:
        daemon.kill()
    assert main(["check", str(folder)]) == 0, capsys.readouterr().out
    found = recorded(folder)
    [domain, calls] = [found[name] for name in sorted(found)]
    assert calls.info.only.name == f"{domain.info.only.name}/prices (calls)"
    assert {each.status for each in check(domain, LIGHTWEIGHT)} == {Status.HOLDS}
    assert {each.status for each in check(calls, CALLS)} == {Status.HOLDS}
    levels = {event.level for event in domain.events if event.kind is HEARD}
    assert levels >= {"opened", "view", "deliver", "private", "left"}
    assert len({event.seq for event in calls.events if event.kind.value == "call-made"}) == 3


def test_what_was_heard_cannot_be_judged_without_the_daemon(tmp_path: Path) -> None:
    folder = tmp_path / "journals"
    daemon = DaemonProcess(tmp_path / "d.sock", f"d{tmp_path.name}", "d").ready()
    try:
        asyncio.run(_use(daemon.socket, folder))
    finally:
        daemon.kill()
    [domain, _] = [history for _, history in sorted(recorded(folder).items())]
    assert {each.status for each in check(domain, ["lw_heard"])} == {Status.UNKNOWN}


def test_a_program_that_is_its_own_daemon_records_its_calls(tmp_path: Path) -> None:
    async def alone() -> None:
        name = f"own {tmp_path.name}"
        async with asyncio.timeout(PATIENCE), semcast.domain(name, name="p", record=str(tmp_path)) as floor:
            group = await floor.join("g")
            group.on_call(_echo)
            assert (await group.call(b"?")).result == b"?"

    asyncio.run(alone())
    for history in recorded(tmp_path).values():
        assert {each.status for each in check(history)} == {Status.HOLDS}
    assert len(recorded(tmp_path)) == 2
