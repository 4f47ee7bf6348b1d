"""What a daemon says of itself: metrics for Prometheus, and a table of its clients."""

import asyncio
import json
import re
import socket
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.daemon.hosting import Hosted
from tests.daemon.processes import PATIENCE, DaemonProcess

import semcast
from semcast.cli.daemon import sentence
from semcast.cli.main import main
from semcast.daemon.metrics import MetricsLayer
from semcast.protocols.clients.frames import Cast, Join
from semcast.protocols.clients.guests import Link


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DaemonProcess, str]]:
    folder = tmp_path_factory.mktemp("metrics")
    process = DaemonProcess(
        folder / "d.sock", f"metrics-{uuid.uuid4().hex}", "d", "--metrics", "127.0.0.1:0"
    ).ready()
    said = process.says()
    assert said["event"] == "metrics"
    assert sentence(said) == f"{said['daemon']}: metrics at http://{said['address']}/metrics"
    yield process, said["address"]
    process.kill()


def fetch(address: str, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=PATIENCE) as answer:
        found: bytes = answer.read()
        return found.decode()


def values(text: str) -> dict[str, float]:
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line[0] != "#"
    }


def test_metrics_of_the_member_and_of_the_clients(
    daemon: tuple[DaemonProcess, str], capsys: pytest.CaptureFixture[str]
) -> None:
    process, address = daemon

    async def use() -> tuple[str, dict[str, Any]]:
        async with asyncio.timeout(PATIENCE), semcast.connect(process.socket, name="alice") as host:
            group = await host.join("prices")
            await host.join("orders")
            await group.send(b"1", confirm="safe")
            code = await asyncio.to_thread(
                main, ["top", "prices", "--daemon", "--socket", process.socket, "--json"]
            )
            assert code == 0
            return await asyncio.to_thread(fetch, address), json.loads(capsys.readouterr().out)

    text, top = asyncio.run(use())
    found = values(text)
    assert found['semcast_daemon_clients{daemon="d"}'] == 1
    assert found['semcast_daemon_groups{daemon="d"}'] == 2
    assert found['semcast_daemon_client_queued{daemon="d",client="alice@d"}'] == 0
    assert any(re.match(r'semcast_delivered_total\{group="metrics-.*",member="d"\}', each) for each in found)
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP")]
    assert len(names) == len(set(names)), "each metric once"
    [client] = top["clients"]
    assert client["client"].startswith("alice@d")
    assert client["groups"] == 2
    assert set(client["per_second"]) == {"requests", "purged"}
    status = process.asked("status")
    assert status["metrics"] == address
    assert address not in status["doors"]


def test_a_table_for_people(daemon: tuple[DaemonProcess, str], capsys: pytest.CaptureFixture[str]) -> None:
    process, _ = daemon
    assert main(["top", "--daemon", "--socket", process.socket, "--once"]) == 0
    assert "0 clients here" in " ".join(capsys.readouterr().out.split())
    assert main(["top", "--daemon", "--socket", "/nowhere", "--once"]) == 1
    assert "no daemon answers" in capsys.readouterr().err


def test_nothing_else_is_served_there(daemon: tuple[DaemonProcess, str]) -> None:
    process, address = daemon
    with pytest.raises(urllib.error.HTTPError, match="404"):
        fetch(address, "/v1")
    host, port = address.rsplit(":", 1)
    for data in (b"\0" * 10_000, b"GET /metrics\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n"):
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as wire:
            wire.sendall(data)
            assert wire.recv(100).startswith(b"HTTP/1.1 40")
    assert fetch(address)
    assert process.process.poll() is None


def test_a_request_may_come_in_pieces() -> None:
    link = Link(0)
    layer = MetricsLayer(link, lambda: "x 1\n")
    assert layer.receive(b"GET /met") == []
    assert link.over == ""
    layer.receive(b"rics HTTP/1.1\r\n\r\nmore")
    assert link.over
    assert layer.written([]).endswith(b"\r\n\r\nx 1\n")
    assert layer.written([]) == b""


def test_who_is_put_out_is_counted_by_reason_and_what_was_purged_stays_counted() -> None:
    hosted = Hosted(queue_messages=4, leave_after=1)
    slow, other = hosted.connect("slow", window=1), hosted.connect("other")
    slow.say(Join(1, "e"))
    hosted.run()
    for number in range(1, 40):
        other.say(Cast(number, ("e",), "agreed", [b"x"], ["item" if number < 20 else f"{number}"]))
        if number in (10, 20):
            hosted.run()
    hosted.run()
    hosted.now += 10
    hosted.run()
    requests = hosted.machine.requests
    assert requests.put_out_for == {"it does not take what it is told": 1}
    assert requests.purged_before > 0
