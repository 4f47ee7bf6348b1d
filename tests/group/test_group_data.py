"""`data=`: a folder for what must outlive a crash."""

import asyncio
import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import semcast
from semcast.core.ids import Nanos
from semcast.core.stack import Stack
from semcast.storage.segments import HEADER_BYTES


def test_members_that_restart_are_later_incarnations_of_one_name(tmp_path: Path) -> None:
    async def once() -> int:
        group = semcast.join("data", stack="vsync", bootstrap=True, name="a", data=str(tmp_path))
        async with group:
            return group.member.incarnation

    async def both() -> list[int]:
        return [await once(), await once()]

    first, second = asyncio.run(both())
    assert second > first
    assert (tmp_path / "data" / "a").is_dir()


def test_two_members_cannot_share_a_folder(tmp_path: Path) -> None:
    async def twice() -> None:
        async with semcast.join("data", stack="vsync", bootstrap=True, name="a", data=str(tmp_path)):
            with pytest.raises(
                semcast.ConfigurationError, match=rf"data/a is in use by process {os.getpid()}"
            ):
                semcast.join("data", stack="vsync", name="a", data=str(tmp_path))
            with pytest.raises(semcast.ConfigurationError, match="cannot record in"):
                semcast.join("data", stack="vsync", name="b", data=str(tmp_path), record="/dev/null/x")
        other = semcast.join("data", stack="vsync", bootstrap=True, name="b", data=str(tmp_path))
        async with other:
            pass

    asyncio.run(twice())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"stack": "ring", "name": "a"},
            "data is for stack gossip or .*: ring keeps nothing on disk",
        ),
        ({"stack": "vsync"}, "data needs a name"),
    ],
)
def test_who_cannot_have_a_folder_is_told(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    async def join() -> None:
        semcast.join("data", data=str(tmp_path), **given)

    with pytest.raises(semcast.ConfigurationError, match=words):
        asyncio.run(join())


def test_a_full_disk_ends_the_member_and_its_program_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_given: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def keep(stack: Stack, _now: Nanos) -> None:
        stack.out.append(b"record")

    async def run() -> None:
        async with semcast.join("data", stack="vsync", bootstrap=True, name="a", data=str(tmp_path)) as group:
            monkeypatch.setattr(os, "write", full)
            group._seat.call(keep)
            async for _ in group:
                pass

    with pytest.raises(semcast.GroupError, match="No space left on device: nothing can be kept"):
        asyncio.run(asyncio.wait_for(run(), 20))


def test_a_log_that_lost_what_was_synced_is_named_and_left_alone(tmp_path: Path) -> None:
    def join() -> semcast.Group:
        return semcast.join("data", stack="vsync", bootstrap=True, name="a", data=str(tmp_path))

    async def once() -> None:
        async with join():
            pass

    async def refused() -> None:
        with pytest.raises(
            semcast.ConfigurationError, match=r"data: .*data/a/\d+.log is damaged at byte \d+: "
        ):
            join()

    asyncio.run(once())
    [log] = (tmp_path / "data" / "a").glob("*.log")
    damaged = bytearray(log.read_bytes())
    damaged[HEADER_BYTES + 5] ^= 1
    log.write_bytes(damaged)
    asyncio.run(refused())
    assert log.read_bytes() == damaged
    shutil.rmtree(tmp_path / "data")
    asyncio.run(once())


def test_groups_of_one_process_share_a_folder(tmp_path: Path) -> None:
    async def both() -> None:
        given: dict[str, Any] = {"stack": "vsync", "bootstrap": True, "name": "a", "data": str(tmp_path)}
        async with semcast.join("one", **given) as one, semcast.join("two", **given) as two:
            await one.send(b"x", confirm="delivered")
            await two.send(b"y", confirm="delivered")

    asyncio.run(both())
    asyncio.run(both())
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two"}
