"""Metrics: what Prometheus is told, and how little else the server does."""

import asyncio
import re
import threading
from contextlib import suppress
from secrets import token_hex
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import semcast
from semcast.core.events import Blocked, Unblocked
from semcast.core.ids import SECOND
from semcast.core.statistics import Statistics
from semcast.group.metrics import Meter, MetricsSnapshot, exposition
from semcast.net.sockets import SocketStatistics

Address = tuple[str, int]


def joined(name: str | None = None) -> semcast.Group:
    return semcast.join(f"test-{token_hex(6)}", metrics="127.0.0.1:0", name=name)


def address_of(group: semcast.Group) -> Address:
    assert group.metrics_address is not None
    return group.metrics_address


def fetch(address: Address, path: str = "/metrics", method: str = "GET") -> tuple[int, str]:
    request = Request(f"http://{address[0]}:{address[1]}{path}", method=method)
    try:
        with urlopen(request, timeout=5) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def talk(address: Address, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    answer = b""
    with suppress(ConnectionResetError):  # it does not listen to the end
        answer = await asyncio.wait_for(reader.read(), 8)
    writer.close()
    with suppress(ConnectionResetError, BrokenPipeError):
        await writer.wait_closed()
    return answer


def value(text: str, name: str, **labels: str) -> float:
    for found, written, number in re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
        if found == name and all(f'{label}="{wanted}"' in written for label, wanted in labels.items()):
            return float(number)
    pytest.fail(f"{name} {labels} is not in {text}")


async def delivered(group: semcast.Group, count: int) -> None:
    async with asyncio.timeout(5):
        async for event in group:
            count -= isinstance(event, semcast.Message)
            if count == 0:
                return


def test_a_member_s_counters_are_served() -> None:
    async def scenario() -> tuple[int, str]:
        async with joined(name="m") as group:
            for number in range(3):
                await group.send(b"%d" % number)
            await delivered(group, 3)
            return await asyncio.to_thread(fetch, address_of(group))

    status, text = asyncio.run(scenario())
    assert status == 200
    assert value(text, "semcast_sent_total") == 3
    assert value(text, "semcast_delivered_total") == 3
    assert value(text, "semcast_view_changes_total") == 1
    assert value(text, "semcast_view_members") == 1
    assert value(text, "semcast_purged_total", reason="delivery") == 0
    assert value(text, "semcast_kernel_drops_total") == 0
    assert value(text, "semcast_flow_control_seconds_total") == 0


def test_every_family_is_described_once_and_every_line_parses() -> None:
    reading = MetricsSnapshot(
        group='a"b\\c\nd',
        member="m#1",
        stack=Statistics(),
        network=SocketStatistics(),
        malformed={"forged or damaged": 2, "another group": 1},
        view=1,
        members=1,
        waiting_to_send=0,
        buffered=5,
        view_changes=1,
        blocked=SECOND // 2,
    )
    text = exposition(reading)
    families: list[str] = re.findall(r"^# TYPE (semcast_\w+) (?:counter|gauge)$", text, re.MULTILINE)
    assert len(families) == len(set(families))
    sample = re.compile(r'(\w+)\{(\w+="(?:[^"\\\n]|\\["\\n])*",?)+\} [0-9.]+')
    for line in text.splitlines():
        if not line.startswith("#"):
            match = sample.fullmatch(line)
            assert match is not None, line
            assert match[1] in families
    assert value(text, "semcast_malformed_total", reason="forged or damaged") == 2
    assert value(text, "semcast_flow_control_seconds_total") == 0.5
    assert value(text, "semcast_buffered_messages") == 5


def test_time_in_which_flow_control_refuses_is_added_up() -> None:
    meter = Meter()
    meter.on_events(10, [Blocked()])
    assert meter.blocked(15) == 5
    meter.on_events(20, [Unblocked()])
    meter.on_events(50, [Unblocked()])
    meter.on_events(60, [Blocked(), Blocked()])
    meter.on_events(61, [Unblocked()])
    assert meter.blocked(1000) == 11


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/", "GET", 404), ("/metrics/x", "GET", 404), ("/metrics", "POST", 405), ("/metrics?x=1", "GET", 200)],
)
def test_there_is_nothing_else_to_get(path: str, method: str, status: int) -> None:
    async def scenario() -> int:
        async with joined() as group:
            code, _ = await asyncio.to_thread(fetch, address_of(group), path, method)
            return code

    assert asyncio.run(scenario()) == status


@pytest.mark.parametrize(
    "request_",
    [
        b"\r\n\r\n",
        b"GET /metrics\r\n\r\n",
        b"GET /metrics SMTP\r\n\r\n",
        b"\xff" * 100 + b"\r\n\r\n",
        b"x" * 100_000,
        b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 50_000 + b"\r\n",
    ],
    ids=["empty", "no version", "another protocol", "noise", "endless line", "endless head"],
)
def test_what_is_no_request_is_refused_and_harms_nobody(request_: bytes) -> None:
    async def scenario() -> tuple[bytes, int]:
        async with joined() as group:
            answer = await talk(address_of(group), request_)
            status, _ = await asyncio.to_thread(fetch, address_of(group))
            return answer, status

    answer, status = asyncio.run(scenario())
    assert answer.startswith(b"HTTP/1.1 400 ") or not answer, "closed before it had read all"
    assert status == 200


def test_few_connections_at_a_time() -> None:
    async def scenario() -> tuple[bytes, int]:
        async with joined() as group:
            idle = [await asyncio.open_connection(*address_of(group)) for _ in range(16)]
            refused = await talk(address_of(group), b"GET /metrics HTTP/1.1\r\n\r\n")
            for _, writer in idle:
                writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            for reader, writer in idle:
                assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
                writer.close()
                await writer.wait_closed()
            status, _ = await asyncio.to_thread(fetch, address_of(group))
            return refused, status

    refused, status = asyncio.run(scenario())
    assert refused.startswith(b"HTTP/1.1 503 ") or not refused, "closed before it had read anything"
    assert status == 200


def test_closing_ends_connections_and_leaves_nothing() -> None:
    async def scenario() -> tuple[bytes, int]:
        async with joined() as group:
            address = address_of(group)
            hanging = asyncio.create_task(talk(address, b"GET /met"))
            await asyncio.to_thread(fetch, address)  # by now the other is connected, too
        rest = await hanging
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        return rest, len(asyncio.all_tasks())

    assert asyncio.run(scenario()) == (b"", 1)


def test_a_port_that_is_taken_is_a_wrong_setting() -> None:
    async def scenario() -> None:
        async with joined() as group:
            host, port = address_of(group)
            with pytest.raises(semcast.ConfigurationError, match="metrics"):
                async with semcast.join(f"test-{token_hex(6)}", metrics=f"{host}:{port}"):
                    pytest.fail("it joined")
            drivers = [thread.name for thread in threading.enumerate() if thread.name.startswith("semcast ")]
            assert drivers == ["semcast driver"]

    asyncio.run(scenario())


def test_without_the_setting_nothing_listens() -> None:
    async def scenario() -> Address | None:
        async with semcast.join(f"test-{token_hex(6)}") as group:
            return group.metrics_address

    assert asyncio.run(scenario()) is None
