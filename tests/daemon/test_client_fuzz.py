"""Whatever clients say, in whatever order: the daemon goes on, and keeps little."""

from random import Random
from typing import Any

import pytest
from tests.daemon.hosting import LOCAL, WEB_TOKEN, D, Hosted, Wire

from semcast.core import MemberId
from semcast.protocols.clients import frames
from semcast.protocols.clients.guests import Link
from semcast.protocols.clients.host import HostSettings
from semcast.protocols.lightweight.ids import Epoch, ViewId

GROUPS = ("g", "v", "", "x" * 128, "x" * 129, "\x00\n", "é")


def anything(rng: Random, wire: Wire, seq: int) -> frames.Request:
    """A frame that decodes, and may make no sense."""
    number = rng.choice((0, 1, seq, seq, seq, seq, seq + 1, 1 << 62))
    group = rng.choice(GROUPS)
    view = ViewId(Epoch(rng.randrange(9), rng.random() < 0.5, D), rng.randrange(9))
    client = MemberId(rng.choice(("a@d", "nobody", "")), rng.randrange(5))
    payloads = [bytes(rng.choice((0, 10, 3000)))] * rng.randint(1, 3)
    items: Any = rng.choice((None, ["x"], ["x"] * len(payloads), ["x" * 300] * len(payloads)))
    told = wire.hosted.host.guests
    resume = rng.choice(list(told.values())).token if told else ""
    made: list[frames.Request] = [
        frames.Hello(rng.choice((1, 1, 1, 2)), rng.choice(("", "a", "a@b", "x" * 64))),
        frames.Hello(1, token=rng.choice((WEB_TOKEN, "")), resume=frames.Resume(resume, rng.randrange(9))),
        frames.Hello(1, policy=rng.choice(("purge", "leave", "block", "?")), window=rng.choice((1, 1 << 16))),
        frames.Join(number, group, rng.choice(("evs", "vs", "?"))),
        frames.Leave(number, group),
        frames.Cast(number, (group,), rng.choice(("agreed", "safe", "?")), payloads, items),
        frames.Cast(number, ("g", rng.choice(GROUPS)), "agreed", payloads),
        frames.Private(number, client, b"x"),
        frames.Taken(rng.choice((0, 1, 2, 1 << 62))),
        frames.Ready(group, view),
        frames.Ping(number),
        frames.Bye(),
        frames.Ask(number, rng.choice(("status", "drop", "?")), group[:200]),
    ]
    weights = (3, 1, 1, 4, 2, 6, 2, 2, 3, 2, 1, 0.3, 1)
    return rng.choices(made, weights)[0]


@pytest.mark.parametrize("seed", range(15))
def test_no_frame_makes_the_daemon_stumble(seed: int) -> None:
    rng = Random(seed)
    settings = HostSettings(allow_block=rng.random() < 0.3)
    hosted = Hosted(settings=settings, queue_messages=20, send_messages=50, clients=6)
    wires: list[Wire] = []
    for _ in range(400):
        if not wires or (len(wires) < 8 and rng.random() < 0.1):
            wires.append(hosted.connect("", rng.choice((None, *([LOCAL] * 2))), token=WEB_TOKEN))
        wire = rng.choice(wires)
        guest = wire.link.guest
        seq = 1 if guest is None else guest.session.last + 1
        wire.say(anything(rng, wire, seq))
        if rng.random() < 0.7:
            hosted.now += rng.choice((0, 10**6, 10**9))
            wire.hear()
        if wire.link.over or rng.random() < 0.02:
            wires.remove(wire)
            wire.break_()
    for wire in wires:
        wire.break_()
    hosted.now += 20 * 10**9
    for _ in range(3):
        hosted.run()
    assert not hosted.host.guests
    assert not hosted.machine.map.clients
    assert not hosted.machine.map.groups


def test_who_never_says_hello_keeps_nothing() -> None:
    hosted = Hosted()
    wires = [Wire(hosted, Link(hosted.now)) for _ in range(50)]
    hosted.now += 10 * 10**9
    hosted.run()
    assert all(wire.link.over for wire in wires)
