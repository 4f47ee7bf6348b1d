"""A subscriber behind a router that translates addresses, which nobody reaches but by answering it."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex

import pytest
from tests.lacking import lacking

import semcast

LAN, HIDDEN = "10.9.0.1", "192.168.77.2"
RULES = """
table ip nat {
 chain leaving {
  type nat hook postrouting priority 100
  oifname "wan" masquerade
 }
}
table ip filter {
 chain passing {
  type filter hook forward priority 0; policy drop;
  iifname "hidden" accept
  ct state established,related accept
 }
}
"""
PATIENCE = 60.0
PROGRAM = (sys.executable, "-m", "tests.live.test_live_nat")


def run(*words: str, text: str | None = None) -> None:
    subprocess.run(words, check=True, capture_output=True, input=text, text=True)


@pytest.fixture
def spaces() -> Iterator[tuple[str, str]]:
    """Two namespaces: one with a logger's and a publisher's host, one behind the router."""
    missing = [tool for tool in ("ip", "nft") if shutil.which(tool) is None]
    if missing:
        lacking(f"no {', '.join(missing)} here (iproute2, nftables)")
    if os.geteuid():
        pytest.skip("network namespaces need root here")
    token = f"scnat{token_hex(3)}"
    lan, router, phone = (f"{token}-{part}" for part in ("lan", "router", "phone"))
    with ExitStack() as stack:
        for space in (lan, router, phone):
            run("ip", "netns", "add", space)
            stack.callback(run, "ip", "netns", "del", space)
        for space, address, inner, outer in (
            (lan, LAN, "10.9.0.254", "wan"),
            (phone, HIDDEN, "192.168.77.1", "hidden"),
        ):
            peer = ("peer", "name", outer, "netns", router)
            run("ip", "-n", space, "link", "add", "eth", "type", "veth", *peer)
            for where, device, own in ((space, "eth", address), (router, outer, inner)):
                run("ip", "-n", where, "addr", "add", f"{own}/24", "dev", device)
                run("ip", "-n", where, "link", "set", device, "up")
                run("ip", "-n", where, "link", "set", "lo", "up")
        run("ip", "-n", phone, "route", "add", "default", "via", "192.168.77.1")
        inside = ("ip", "netns", "exec", router)
        run(*inside, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        run(*inside, "nft", "-f", "-", text=RULES)
        yield lan, phone


def test_it_is_given_everything_and_what_it_sends_is_logged(tmp_path: Path, spaces: tuple[str, str]) -> None:
    lan, phone = spaces
    keys, semcast_ = tmp_path / "keys.toml", (sys.executable, "-m", "semcast")
    run(*semcast_, "keygen", str(keys))
    with ExitStack() as stack:

        def start(space: str, *words: str) -> subprocess.Popen[str]:
            command = ["ip", "netns", "exec", space, *words]
            started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(started.communicate)
            stack.callback(started.kill)
            return started

        at = ("--group", "nat", "--json", "--bind", f"{LAN}:7001", "--key-file", str(keys))
        logger = start(lan, *semcast_, "logger", str(tmp_path / "log"), *at)
        assert logger.stdout is not None
        assert logger.stdout.readline()
        feed = start(lan, *PROGRAM, "feed", str(keys))
        read = start(phone, *PROGRAM, "read", str(keys))
        told = read.communicate(timeout=PATIENCE)[0]
        assert json.loads(told) == {"messages": 101, "lost": 0}
        feed.communicate(timeout=PATIENCE)
    logged = subprocess.run(
        [*semcast_, "log", "replay", str(tmp_path / "log"), "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "from behind the router" in logged.stdout


async def feed(key_file: str) -> None:
    at, peers = f"{LAN}:7002", [f"{LAN}:7001"]
    async with semcast.join(
        "nat",
        stack="gossip",
        name="feed",
        receive=False,
        durable=True,
        bind=at,
        peers=peers,
        key_file=key_file,
    ) as group:
        for number in range(100):
            await group.send(b"%d" % number)
            await asyncio.sleep(0.02)
        await group.send(b"end", logged=True, timeout=PATIENCE)


async def read(key_file: str) -> None:
    count = lost = 0
    at, peers = f"{HIDDEN}:0", [f"{LAN}:7001"]
    async with semcast.subscribe(
        "nat", durable="phone", start="all", ack="explicit", bind=at, peers=peers, key_file=key_file
    ) as phone:
        async for batch in phone:
            count += len(batch)
            lost += len(batch.lost)
            await batch.ack()
            if batch.messages[-1].payload == b"end":
                break
        await phone.group.send(b"from behind the router", logged=True, timeout=PATIENCE)
    print(json.dumps({"messages": count, "lost": lost}))


if __name__ == "__main__":
    asyncio.run({"feed": feed, "read": read}[sys.argv[1]](sys.argv[2]))
