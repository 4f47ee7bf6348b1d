"""A program's link to a daemon that behaves as the test wants."""

import asyncio
import socket
from pathlib import Path

import pytest

import semcast
from semcast.core import MemberId
from semcast.daemon.asking import ask
from semcast.protocols.clients.codec import Stream, decode_request, encode, framed
from semcast.protocols.clients.frames import Bye, Error, Hello, Left, Reply, Welcome

D = MemberId("d", 1)


class FakeDaemon:
    """Says welcome, and puts its first client out; that connection stays open for a while."""

    def __init__(self) -> None:
        self.sessions = 0
        self.ended: list[int] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream, number = Stream(1 << 20), 0

        def say(frame: Reply) -> None:
            writer.write(framed(encode(frame)))

        while data := await reader.read(1 << 16):
            for body in stream.feed(data):
                request = decode_request(body)
                if isinstance(request, Hello):
                    self.sessions += 1
                    number = self.sessions
                    say(Welcome(1, MemberId("c@d", number), D, "fake", (D,), 100, 1 << 20, 1 << 20, ""))
                    if number == 1:
                        say(Left("because"))
                        await asyncio.sleep(0.3)
                        writer.close()
                elif isinstance(request, Bye):
                    self.ended.append(number)
        writer.close()


def test_an_old_connection_that_ends_late_disturbs_nobody(tmp_path: Path) -> None:
    """It was taken for the new one: that was left open, and a third session began."""

    async def talk() -> FakeDaemon:
        fake, path = FakeDaemon(), str(tmp_path / "fake.sock")
        server = await asyncio.start_unix_server(fake.serve, path)
        async with server, asyncio.timeout(20):
            async with semcast.connect(path) as host:
                while host.member.incarnation == 1:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.5)  # the first connection has ended meanwhile
                assert host.member == MemberId("c@d", 2)
            await asyncio.sleep(0.05)
        return fake

    fake = asyncio.run(talk())
    assert (fake.sessions, fake.ended) == (2, [2])


def test_who_finds_no_daemon_is_told_how_to_start_one(tmp_path: Path) -> None:
    path = tmp_path / "none.sock"

    async def talk() -> None:
        async with semcast.connect(str(path)):
            raise AssertionError

    with pytest.raises(semcast.GroupError, match=r"none\.sock: No such file .*semcast daemon"):
        asyncio.run(talk())
    with pytest.raises(semcast.GroupError, match=r"none\.sock: No such file .*semcast daemon"):
        ask(str(path), "status")
    with socket.socket(socket.AF_UNIX) as left_behind:  # of a daemon that was killed
        left_behind.bind(str(path))
        with pytest.raises(semcast.GroupError, match=r"none\.sock: Connection refused.*semcast daemon"):
            asyncio.run(talk())


def test_a_daemon_that_refuses_is_not_said_to_be_absent(tmp_path: Path) -> None:
    """The second of two programs of one name read that no daemon answers."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(framed(encode(Error(None, "name", "the name 'a' is taken"))))
        writer.close()

    async def talk() -> None:
        path = str(tmp_path / "d.sock")
        server = await asyncio.start_unix_server(refuse, path)
        async with server, asyncio.timeout(20), semcast.connect(path, name="a"):
            raise AssertionError

    with pytest.raises(semcast.GroupError, match=r"^the daemon at .*d\.sock refuses: the name 'a' is taken$"):
        asyncio.run(talk())
