"""Calls through a daemon between programs of three kinds: the library, plain Python, and Node."""

import asyncio
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.daemon.hosting import WEB, Hosted
from tests.daemon.processes import CLIENTS, PATIENCE, DaemonProcess, finished, program
from tests.lacking import lacking

import semcast
from semcast.core.ids import MemberId
from semcast.core.views import View
from semcast.patterns.calls import Ask, CallLimits, Calls, Say, encode, read
from semcast.protocols.clients.frames import Cast, Error, Join
from semcast.protocols.clients.permissions import CALLS, Rule

PYTHON = """
import sys, semcast_client, semcast_calls
client = semcast_client.Client(sys.argv[1], "plain")
def shout(group, caller, payload):
    if payload == b"fail":
        raise ValueError("no")
    return b"PLAIN " + payload
calls = semcast_calls.Calls(client, shout)
client.join(sys.argv[2])
print("ready", flush=True)
for event in client.events():
    if event[0] == semcast_client.DELIVER and event[5] == [b"go"]:
        for how in ({}, {"replies": "first"}, {"replies": "majority"}, {"to": semcast_calls.ONE}):
            answer = calls.call(sys.argv[2], b"?", **how)
            print(answer.outcome, sorted(each.decode() for each in answer.replies.values()), flush=True)
    elif event[0] == semcast_client.DELIVER and event[5] == [b"end"]:
        client.close()
        break
"""
NODE = """
import { Client, KIND } from "%(clients)s/node/semcast_client.mjs";
import { Calls, ONE } from "%(clients)s/node/semcast_calls.mjs";
const [, path, group] = process.argv;
const client = await Client.connect(path, "node");
const calls = new Calls(client, (_group, _caller, payload) => {
  if (payload.toString() === "fail") throw new Error("no");
  return Buffer.concat([Buffer.from("NODE "), payload]);
});
await client.join(group);
console.log("ready");
for await (const [kind, , , , , payloads] of client.events()) {
  const text = kind === KIND.deliver ? payloads[0].toString() : "";
  if (text === "go") {
    for (const how of [{}, { replies: "first" }, { replies: "majority" }, { to: ONE }]) {
      const answer = await calls.call(group, Buffer.from("?"), how);
      console.log(answer.outcome, [...answer.replies.values()].map(String).sort().join());
    }
  }
  if (text === "end") { client.close(); break; }
}
process.exit(0);
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    found = DaemonProcess(tmp_path / "d.sock", f"calls-{uuid.uuid4().hex}", "d").ready()
    yield found
    found.kill()


def node(where: str, group: str) -> "subprocess.Popen[str]":
    found = shutil.which("node") or lacking("Node is not there")
    command = [found, "--input-type=module", "-e", NODE % {"clients": CLIENTS}, where, group]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def _ask(where: str, others: "list[subprocess.Popen[str]]") -> None:
    """The library answers, too, and asks everybody; then each of the others does."""
    async with asyncio.timeout(PATIENCE), semcast.connect(where, name="library") as host:
        group = await host.join("g")

        @group.on_call
        def answer(request: semcast.CallRequest) -> bytes:
            return b"LIBRARY " + request.payload

        await group.wait_for(1 + len(others))
        found = await group.call(b"?")
        assert found.outcome == "complete"
        assert sorted(found.replies.values()) == [b"LIBRARY ?", b"NODE ?", b"PLAIN ?"][-1 - len(others) :]
        assert set((await group.call(b"fail")).errors.values()) == {"no"}
        chosen = {(await group.call(b"?", to="one")).result for _ in range(12)}
        assert len(chosen) > 1, "the same at all, and another the next time"
        await group.send(b"go")
        for other in others:
            assert other.stdout is not None
            lines = [await asyncio.to_thread(other.stdout.readline) for _ in range(4)]
            assert all(line.startswith("complete") for line in lines), lines
            assert all(word in lines[0] for word in ("PLAIN", "LIBRARY", "NODE")[: 1 + len(others)])
        await group.send(b"end", confirm="safe")


def test_programs_of_three_kinds_call_each_other(daemon: DaemonProcess) -> None:
    others = [node(daemon.socket, "g"), program(PYTHON, daemon.socket, "g")]
    try:
        for each in others:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        asyncio.run(_ask(daemon.socket, others))
        for each in others:
            finished(each)
    finally:
        for each in others:
            each.kill()
            each.communicate()


WITHOUT = """
import sys, semcast_client, semcast_calls
client = semcast_client.Client(sys.argv[1])
calls = semcast_calls.Calls(client)
client.join("g")
client.settle()
answer = calls.call("g", b"?", timeout=20)
print(answer.outcome, len(answer.abstained), len(answer.replies))
answer = calls.call("g", b"?", to=["nobody@d", 1], timeout=0.2)
print(answer.outcome, len(answer.missing))
"""


def test_who_answers_no_calls_says_so(daemon: DaemonProcess) -> None:
    said = finished(program(WITHOUT, daemon.socket))
    assert said.splitlines() == ["too few 1 0", "timeout 1"]


def test_who_may_send_to_a_group_may_call_it_and_nobody_reads_the_calls_of_others() -> None:
    hosted = Hosted(rules=(Rule("token:web", ("chat",), ("join", "send")),))
    wire = hosted.connect("a", identity=WEB)
    wire.hear()
    wire.say(Cast(1, ("chat", CALLS), "agreed", [encode(Ask(1, 0, 0, b"?"))]))
    wire.say(Cast(2, ("orders", CALLS), "agreed", [b"?"]), Cast(3, (CALLS, "chat"), "agreed", [b"?"]))
    wire.say(Cast(4, ("chat", CALLS, "orders"), "agreed", [b"?"]), Join(5, CALLS))
    assert [(each.seq, each.code) for each in wire.hear_of(Error)] == [
        (2, "denied"),
        (3, "denied"),
        (4, "denied"),
        (5, "denied"),
    ]
    everything = Hosted().connect("b")
    everything.say(Join(1, CALLS))
    assert [each.code for each in everything.hear_of(Error)] == ["denied"]


def test_hostile_envelopes_harm_nobody() -> None:
    """What is in a call comes from other programs, of any language: torn, changed, or made up."""
    rng, me, other = Random(7), MemberId("me"), MemberId("other")
    machine = Calls(me, CallLimits(requests=8, request_bytes=1 << 12, unsent=64, early=32))
    machine.serves = True
    machine.on_view(0, View(1, (me, other)))
    sound = [
        encode(Ask(3, 0, 5, b"x")),
        encode(Ask(1 << 62, 1, 0, b"")),
        encode(Ask(9, other, 0, b"y" * 100)),
        encode(Say(me, 1, 0, b"r")),
        encode(Say(other, 3, 2, b"")),
    ]
    for number in range(3000):
        data = bytearray(rng.choice(sound))
        for _ in range(rng.randrange(4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        payload = bytes(data[: rng.randrange(len(data) + 1)]) if rng.random() < 0.3 else bytes(data)
        machine.on_envelope(number, rng.choice((me, other)), read(payload), rng.choice((None, number)))
        if number % 100 == 0:
            machine.call(number, b"?", "all", 0, 10)
        machine.expire(number)
        machine.take_effects()
    asked, answering = machine.under_way()
    assert asked <= 1
    assert answering <= 2 * 8
    assert len(machine.outgoing) <= 64 + 30
    assert machine.counts.malformed > 100
