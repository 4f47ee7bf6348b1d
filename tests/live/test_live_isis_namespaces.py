"""A causal domain on a network that is cut: calls, messages to one member and ordered messages go on."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest
from tests.live.lab import causal, styled
from tests.live.lab.hosts import Lan

from semcast.history import read_history
from semcast.net.keyfile import new_key, save_keyring
from semcast.specs import check
from semcast.specs.verdict import Status
from semcast.wire.keyring import Cipher, Keyring


async def _answered(process: Process, times: int) -> None:
    assert process.stdout is not None
    while times:
        line = await process.stdout.readline()
        assert line, "the program has ended"
        times -= line.startswith(b"complete")


def _keys(folder: Path) -> Path:
    key, keys = new_key(Cipher.AES_256_GCM), folder / "keys.toml"
    save_keyring(keys, Keyring([key], key.id), replace=False)
    return keys


def test_who_is_cut_off_comes_back_and_the_recording_holds(tmp_path: Path) -> None:
    keys, records = _keys(tmp_path), tmp_path / "records"

    async def run(lan: Lan) -> None:
        programs = {
            name: await asyncio.create_subprocess_exec(
                *lan.at(name),
                *(sys.executable, str(causal.__file__), name, "floor", str(records), str(keys), "3"),
                stdin=PIPE,
                stdout=PIPE,
            )
            for name in "abc"
        }
        try:
            async with asyncio.timeout(90):
                await asyncio.gather(*(_answered(program, 5) for program in programs.values()))
                lan.partition("ab", "c")
                await asyncio.gather(*(_answered(programs[name], 20) for name in "ab"))
                lan.heal()
                await asyncio.gather(*(_answered(program, 5) for program in programs.values()))
                await asyncio.gather(*(program.communicate(b"") for program in programs.values()))
        finally:
            for program in programs.values():
                if program.returncode is None:
                    program.kill()
        assert [program.returncode for program in programs.values()] == [0, 0, 0]

    with Lan("abc") as lan:
        asyncio.run(run(lan))
    history = read_history(records)
    assert sum(process.name == "c" for process in history.processes) >= 2
    verdicts = {verdict.property: verdict for verdict in check(history)}
    assert not [str(verdict) for verdict in verdicts.values() if verdict.status is Status.VIOLATED]
    for name in ("domain_causal_delivery", "domain_total_order", "domain_one_fate"):
        assert verdicts[name].status is Status.HOLDS


@pytest.mark.parametrize("policy", ["conservative", "full", "blocks", "epochs"])
def test_clients_and_a_server_are_cut_off_and_come_back(tmp_path: Path, policy: str) -> None:
    """c is a server, y a client; the others go on without them, and everybody is there again afterwards."""
    keys, records = _keys(tmp_path), tmp_path / "records"

    async def run(lan: Lan) -> None:
        programs = {
            name: await asyncio.create_subprocess_exec(
                *lan.at(name),
                *(sys.executable, str(styled.__file__), name, policy, str(records), str(keys)),
                stdin=PIPE,
                stdout=PIPE,
            )
            for name in "abcxy"
        }
        try:
            async with asyncio.timeout(90):
                await asyncio.gather(*(_answered(program, 3) for program in programs.values()))
                lan.partition("abx", "cy")
                await asyncio.gather(*(_answered(programs[name], 5) for name in "abx"))
                lan.heal()
                await asyncio.gather(*(_answered(program, 3) for program in programs.values()))
                await asyncio.gather(*(program.communicate(b"") for program in programs.values()))
        finally:
            for program in programs.values():
                if program.returncode is None:
                    program.kill()
        assert [program.returncode for program in programs.values()] == [0] * 5

    with Lan("abcxy") as lan:
        asyncio.run(run(lan))
    verdicts = {verdict.property: verdict for verdict in check(read_history(records))}
    assert not [str(verdict) for verdict in verdicts.values() if verdict.status is Status.VIOLATED]
    for name in ("domain_causal_delivery", "domain_one_fate", "client_views", "client_agreement"):
        assert verdicts[name].status is Status.HOLDS
