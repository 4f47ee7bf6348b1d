"""A folder that is put back from an old copy: the others find it out, and its server stops."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from tests.engine.test_engine import NAMES, play

import semcast

GROUP = f"copies {os.getpid()}"


def server(folder: Path, name: str) -> semcast.Database:
    return semcast.database(GROUP, servers=None, name=name, founders=NAMES, data=str(folder))


async def work(folder: Path, name: str) -> None:
    """Until that is not possible any more."""
    async with server(folder, name) as db:
        while True:
            await db.execute("insert into t values (9)", timeout=5)


def test_a_server_on_an_old_copy_of_its_folder_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        a, b, c = await asyncio.gather(*(server(tmp_path, name) for name in NAMES))
        await a.execute("create table t (v)")
        await b.execute("insert into t values (1)")
        await b.close()
        [folder] = list(tmp_path.glob("*/b"))
        shutil.copytree(folder, tmp_path / "copy")
        b = await server(tmp_path, "b")
        for value in range(3):
            await b.execute("insert into t values (?)", (value,))
        await b.close()
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "copy", folder)
        with pytest.raises(semcast.GroupError, match="a copy of it was put back"):
            await work(tmp_path, "b")
        await a.execute("insert into t values (5)", timeout=20)
        assert (await c.query("select count(*) from t", level="linear")).rows == [(5,)]
        await asyncio.gather(a.close(), c.close())

    play(scenario)
