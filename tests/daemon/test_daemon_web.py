"""Browsers: pages, WebSockets, and who may use them."""

import asyncio
import base64
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.daemon.browser import Browser
from tests.daemon.processes import PATIENCE, DaemonProcess
from tests.daemon.test_client_codec import masked

import semcast
from semcast.domains import DomainMessage
from semcast.wire import websocket

PAGES = Path(__file__).parents[2] / "examples" / "browser_chat"
ACCESS = """
[tokens]
anonymous = ""
[[allow]]
who = "token:anonymous"
groups = ["chat"]
may = ["join", "send"]
[[allow]]
who = "local"
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("web")
    access = folder / "access.toml"
    access.write_text(ACCESS)
    access.chmod(0o600)
    more = ("--ws", "127.0.0.1:0", "--pages", str(PAGES), "--access", str(access))
    daemon = DaemonProcess(folder / "w.sock", f"web-{uuid.uuid4().hex}", "w", *more)
    yield daemon.ready()
    daemon.kill()


class Page:
    """A WebSocket of a program that speaks JSON."""

    def __init__(
        self, place: str, *headers: str, protocol: str = "semcast-client.json.1", path: str = "/v1"
    ) -> None:
        host, _, port = place.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {place}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Protocol: {protocol}",
            *headers,
        ]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self.status = self.file.readline().split()[1].decode()
        while self.file.readline() not in (b"\r\n", b""):
            pass

    def say(self, *frame: object) -> None:
        self.socket.sendall(masked(websocket.TEXT, msgspec.json.encode(frame)))

    def hear(self, kind: int) -> list[object]:
        """The next frame of a kind."""
        while True:
            head = self.file.read(2)
            size = head[1] if head[1] < 126 else int.from_bytes(self.file.read(2), "big")
            body = self.file.read(size)
            if head[0] == 0x81 and (found := msgspec.json.decode(body))[0] == kind:
                assert isinstance(found, list)
                return found

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def test_a_program_speaks_json(daemon: DaemonProcess) -> None:
    page = Page(daemon.doors[1])
    assert page.status == "101"
    page.say(1, 1, "json")
    assert page.hear(2)[2][0] == "json@w"  # type: ignore[index]
    page.say(3, 1, "chat")
    page.say(7, 2, ["chat"], "agreed", [base64.b64encode(b"hi").decode()])
    assert page.hear(8)[5] == [base64.b64encode(b"hi").decode()]
    page.say(3, 3, "orders")
    assert page.hear(6)[1:3] == [3, "denied"]
    page.close()


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ("Origin: https://evil.example", "/v1", "403"),
        ("Origin: http://{place}", "/v1", "101"),
        ("X: y", "/v2", "404"),
    ],
)
def test_whose_pages_may_connect(daemon: DaemonProcess, headers: str, path: str, status: str) -> None:
    page = Page(daemon.doors[1], headers.format(place=daemon.doors[1]), path=path)
    assert page.status == status
    page.close()


def test_only_the_files_of_the_folder_are_served(daemon: DaemonProcess) -> None:
    host, _, port = daemon.doors[1].rpartition(":")
    for path, status in (("/", b"200"), ("/chat.js", b"200"), ("/../README.md", b"404"), ("/x", b"404")):
        with socket.create_connection((host, int(port)), PATIENCE) as sock:
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            data = b""
            while more := sock.recv(1 << 16):
                data += more
        assert data.split()[1] == status


def test_the_chat_page_in_a_browser(daemon: DaemonProcess, tmp_path: Path) -> None:
    """It hears a program, and a program hears it."""
    browser = Browser(f"http://{daemon.doors[1]}/#name=web", tmp_path)

    async def talk() -> None:
        async with semcast.connect(daemon.socket, name="py") as host, asyncio.timeout(PATIENCE):
            group = await host.join("chat")
            members = "document.getElementById('members').innerText"
            await asyncio.to_thread(browser.wait_for, members, "py")
            await group.send(b"hello page")
            lines = "document.getElementById('lines').innerText"
            await asyncio.to_thread(browser.wait_for, lines, "py: hello page")
            await asyncio.to_thread(
                browser.value,
                "document.getElementById('text').value = 'h\\u00e9llo'; document.forms[0].requestSubmit()",
            )
            async for event in group:
                if isinstance(event, DomainMessage) and event.id.sender.name == "web@w":
                    assert event.payload.decode() == "h\u00e9llo"
                    break
            await asyncio.to_thread(browser.wait_for, lines, "web: h\u00e9llo")

    try:
        asyncio.run(talk())
    finally:
        browser.close()
