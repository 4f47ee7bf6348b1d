"""Sealed groups on real sockets: they work, and nobody without the key disturbs them."""

import asyncio
import os
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from secrets import token_hex

import pytest

import semcast
from semcast.net.addresses import meeting_point
from semcast.net.keyfile import SealingStatistics, load_keyring, new_key, save_keyring
from semcast.wire import Malformed
from semcast.wire.keyring import Cipher, Keyring

PATIENCE = 20.0


def keyring_at(path: Path, cipher: Cipher = Cipher.AES_256_GCM) -> Path:
    key = new_key(cipher)
    save_keyring(path, Keyring([key], key.id), replace=False)
    return path


class Listener:
    """A member and everything that it was told."""

    def __init__(self, group: semcast.Group) -> None:
        self.group = group
        self.payloads: list[bytes] = []
        self.names: list[str] = []
        self.all_names = set[str]()
        self._changed = asyncio.Condition()
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for event in self.group:
            async with self._changed:
                if isinstance(event, semcast.Message):
                    self.payloads.append(event.payload)
                elif isinstance(event, semcast.ViewChange):
                    self.names = sorted(member.name for member in event.view.members)
                    self.all_names.update(self.names)
                self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(condition), PATIENCE)

    async def until_in_view(self, names: str) -> None:
        await self.until(lambda: self.names == sorted(names))

    async def until_told(self, count: int) -> None:
        await self.until(lambda: len(self.payloads) >= count)

    async def until_refused(self, why: Malformed, count: int = 1) -> None:
        await eventually(lambda: self.group.stats().malformed.get(why.value, 0) >= count)

    async def until_reloaded(self, count: int) -> None:
        await eventually(lambda: self.sealing().reloads == count)

    def sealing(self) -> SealingStatistics:
        found = self.group.stats().sealing
        assert found is not None
        return found


async def eventually(condition: Callable[[], bool]) -> None:
    """For what no event tells of: counters."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        await asyncio.sleep(0.02)


async def members(
    stack: AsyncExitStack, group: str, names: str, keys: dict[str, Path] | Path | None
) -> list[Listener]:
    """Join with several names; all of them see the same view in the end."""
    made = [
        semcast.join(
            group,
            name=name,
            bind="127.0.0.1:0",
            token_loss="3s",  # noqa: S106 (a busy machine is no reason to change the view)
            key_file=str(keys[name] if isinstance(keys, dict) else keys or ""),
        )
        for name in names
    ]
    joined = await asyncio.gather(*(stack.enter_async_context(each) for each in made))
    listeners = [Listener(each) for each in joined]
    for each in listeners:
        stack.callback(each.task.cancel)
    await asyncio.gather(*(each.until_in_view(names) for each in listeners))
    return listeners


@pytest.mark.parametrize("cipher", list(Cipher), ids=lambda cipher: cipher.value)
def test_a_sealed_group_of_three(tmp_path: Path, cipher: Cipher) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            path = keyring_at(tmp_path / "keys.toml", cipher)
            listeners = await members(stack, f"test-{token_hex(6)}", "abc", path)
            payloads = [b"%d" % n for n in range(3000)]
            await listeners[0].group.send_many(payloads[:2000])
            for payload in payloads[2000:]:
                await listeners[1].group.send(payload)
            for each in listeners:
                await each.until_told(len(payloads))
                assert each.payloads == listeners[0].payloads
                assert each.group.stats().malformed == {}
                assert (each.sealing().cipher, each.sealing().problem) == (cipher.value, "")

    asyncio.run(scenario())


def test_who_has_no_key_or_another_is_counted_and_never_heard(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            group = f"test-{token_hex(6)}"
            ours = await members(stack, group, "abc", keyring_at(tmp_path / "ours.toml"))
            [unsealed] = await members(stack, group, "u", None)
            [foreign] = await members(stack, group, "f", keyring_at(tmp_path / "theirs.toml"))
            await unsealed.group.send(b"unsealed")
            await foreign.group.send(b"foreign")
            for each in ours:
                await each.until_refused(Malformed.UNSEALED)
                await each.until_refused(Malformed.KEY)
            await unsealed.until_refused(Malformed.SEALED)
            await foreign.until_refused(Malformed.UNSEALED)
            await ours[0].group.send(b"ours")
            for each in ours:
                await each.until_told(1)
                assert each.payloads == [b"ours"]
                assert each.names == ["a", "b", "c"]
                assert each.all_names <= {"a", "b", "c"}
            for each, payload in ((unsealed, b"unsealed"), (foreign, b"foreign")):
                await each.until_told(1)
                assert each.payloads == [payload]
                assert len(each.all_names) == 1

    asyncio.run(scenario())


def test_what_was_recorded_on_the_network_is_refused_when_it_comes_again(tmp_path: Path) -> None:
    """Somebody at the meeting point repeats all that is said there, and makes up more."""

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            group = f"test-{token_hex(6)}"
            meeting = meeting_point(group)
            spy = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            spy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            spy.bind(meeting)
            request = socket.inet_aton(meeting[0]) + socket.inet_aton("127.0.0.1")
            spy.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
            spy.settimeout(PATIENCE)
            speaker = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            speaker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            listeners = await members(stack, group, "ab", keyring_at(tmp_path / "keys.toml"))
            recorded = [await asyncio.to_thread(spy.recv, 65_535) for _ in range(4)]
            for data in recorded * 5:
                speaker.sendto(data, meeting)
                speaker.sendto(data[:-1], meeting)
                speaker.sendto(data[:20], meeting)
                speaker.sendto(data[:29] + os.urandom(60), meeting)
            for each in listeners:
                await each.until_refused(Malformed.REPLAYED, 20)
                await each.until_refused(Malformed.TRUNCATED, 20)
                await each.until_refused(Malformed.FORGED, 20)
            await listeners[0].group.send(b"still here")
            await listeners[1].until(lambda: listeners[1].payloads == [b"still here"])
            assert listeners[1].names == ["a", "b"]

    asyncio.run(scenario())


def test_keys_turn_over_under_traffic(tmp_path: Path) -> None:
    """Each member has a file of its own, as on three hosts; nothing is lost and no view changes."""

    async def scenario() -> None:
        first = keyring_at(tmp_path / "a.toml")
        files = {name: tmp_path / f"{name}.toml" for name in "abc"}
        for name in "bc":
            shutil.copy(first, files[name])
        old = load_keyring(first).sealing
        new = new_key(Cipher.CHACHA20_POLY1305)
        async with AsyncExitStack() as stack:
            listeners = await members(stack, f"test-{token_hex(6)}", "abc", files)
            stop, sent = asyncio.Event(), 0

            async def traffic() -> None:
                nonlocal sent
                while not stop.is_set():
                    await listeners[sent % 3].group.send(b"%d" % sent)
                    sent += 1
                    await asyncio.sleep(0.001)

            sending = asyncio.create_task(traffic())
            views = [each.group.view for each in listeners]
            steps = [
                Keyring([old, new], old.id),
                Keyring([old, new], new.id),
                Keyring([new], new.id),
            ]
            for reloads, ring in enumerate(steps, 1):
                for each in listeners:
                    save_keyring(files[each.group.member.name], ring, replace=True)
                for each in listeners:
                    await each.until_reloaded(reloads)
            stop.set()
            await sending
            for each in listeners:
                await each.until_told(sent)
                assert each.payloads == listeners[0].payloads
                assert each.group.stats().malformed == {}
                sealing = each.sealing()
                assert (sealing.key, sealing.cipher, sealing.keys) == (new.id, new.cipher.value, 1)
            assert [each.group.view for each in listeners] == views

    asyncio.run(scenario())


def test_a_broken_key_file_leaves_the_old_keys_in_force_and_is_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = keyring_at(tmp_path / "keys.toml")
        good = path.read_text(encoding="utf8")
        async with AsyncExitStack() as stack:
            a, b = await members(stack, f"test-{token_hex(6)}", "ab", path)
            path.write_text(good.replace("secret = ", "secret : "), encoding="utf8")
            await eventually(lambda: "not a keyring, line" in a.sealing().problem)
            assert good.split('"')[-2] not in a.sealing().problem
            path.write_text(good, encoding="utf8")
            await eventually(lambda: a.sealing().problem == "")
            path.chmod(0o644)
            await eventually(lambda: "chmod 600" in a.sealing().problem)
            path.unlink()
            await eventually(lambda: "No such file" in a.sealing().problem)
            await a.group.send(b"still sealed")
            await b.until(lambda: b.payloads == [b"still sealed"])
            assert (a.sealing().reloads, a.group.stats().malformed) == (0, {})

    asyncio.run(scenario())


def test_a_key_file_that_cannot_be_used_is_refused_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        missing = str(tmp_path / "missing.toml")
        with pytest.raises(semcast.ConfigurationError, match="semcast keygen"):
            semcast.join("test", key_file=missing)
        path = keyring_at(tmp_path / "keys.toml")
        path.chmod(0o640)
        with pytest.raises(semcast.ConfigurationError, match="chmod 600"):
            semcast.join("test", key_file=str(path))
        os.mkfifo(tmp_path / "pipe", 0o600)
        with pytest.raises(semcast.ConfigurationError, match="not a file"):
            semcast.join("test", key_file=str(tmp_path / "pipe"))

    asyncio.run(scenario())


def test_without_a_key_nobody_listens_beyond_loopback() -> None:
    async def scenario() -> None:
        with pytest.raises(semcast.ConfigurationError, match="beyond loopback a group needs a key"):
            semcast.join("test", bind="0.0.0.0:0")
        with pytest.raises(semcast.ConfigurationError, match="beyond loopback a group needs a key"):
            semcast.join("test", stack="s-rm", name="a", members=("a=192.0.2.1:5000",))

    asyncio.run(scenario())
