"""Every frame of every family, with a field or two changed to something absurd that still decodes.

A member without a key believes whatever decodes. Nobody may die of it. What strangers say, who are in no
view, must leave a group that works when they are quiet again.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Union

import msgspec
import pytest

from semcast.core import Batch, Frame, MemberId, Outbox
from semcast.core.events import Delivery, ViewChange
from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND
from semcast.core.stack import Stack
from semcast.lab import Keeper, Lab
from semcast.protocols.gossip import GOSSIP, GossipSettings, Member, Protocol
from semcast.protocols.ring import RING, Ring, RingSettings
from semcast.protocols.semantic import SEMANTIC, SemanticMulticast, Settings
from semcast.protocols.vsync import VSYNC, DetectorSettings, Engine, Order, VirtualSynchrony, VsyncSettings

MEMBERS = tuple(MemberId(name, 5) for name in "abc")
DETECTOR = DetectorSettings(
    heartbeat=20 * MILLISECOND,
    timeout_initial=200 * MILLISECOND,
    timeout_min=60 * MILLISECOND,
    timeout_max=SECOND,
    margin=40 * MILLISECOND,
)
ABSURD = (0, 1, 2, 7, 255, 1 << 16, (1 << 31) - 1, 1 << 32, (1 << 62) - 1, 1 << 62, -1)


def ring(me: MemberId, rng: Random) -> Stack:
    return Ring(me, RingSettings(max_message=1 << 16), rng, Outbox())


def s_rm(me: MemberId, rng: Random) -> Stack:
    return SemanticMulticast(me, MEMBERS, Settings(), rng, Outbox())


def vsync(**given: Any) -> Callable[[MemberId, Random], Stack]:
    def made(me: MemberId, rng: Random) -> Stack:
        chosen = VsyncSettings(minimum=2, detector=DETECTOR, hello=40 * MILLISECOND, **given)
        return VirtualSynchrony(me, chosen, rng, Outbox())

    return made


def gossip(protocol: Protocol) -> Callable[[MemberId, Random], Stack]:
    def made(me: MemberId, rng: Random) -> Stack:
        settings = GossipSettings(protocol=protocol, gossip_period=20 * MILLISECOND)
        return Member(me, MEMBERS, settings, rng, Outbox())

    return made


FAMILIES = {
    "ring": (ring, RING),
    "s-rm": (s_rm, SEMANTIC),
    "rpbcast": (gossip(Protocol.RPBCAST), GOSSIP),
    "pbcast": (gossip(Protocol.PBCAST), GOSSIP),
    "fifo": (vsync(), VSYNC),
    "causal": (vsync(order=Order.CAUSAL), VSYNC),
    "token": (vsync(order=Order.TOTAL, uniform=True), VSYNC),
    "consensus": (vsync(order=Order.TOTAL, engine=Engine.CONSENSUS), VSYNC),
}


class Reader(Keeper):
    """Keeps what is delivered, and the last view."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[bytes] = []
        self.view: tuple[MemberId, ...] = ()

    def on_delivery(self, each: Delivery) -> None:
        if isinstance(each, Batch):
            self.got += each.payloads
        elif isinstance(each, ViewChange):
            self.view = each.view.members


class Scene:
    """A group that works, and somebody who has heard all of it and twists it."""

    def __init__(self, family: str, seed: int) -> None:
        build, protocol = FAMILIES[family]
        self.rng = Random(seed)
        self.heard: dict[type[Frame], list[Frame]] = {}
        self.known: Any = Union[*protocol.frames]
        self.lab = Lab(latency=100 * MICROSECOND)
        self.lab.carries = self._carries
        self.readers = {me.name: Reader() for me in MEMBERS}
        for me in MEMBERS:
            self.lab.add(me, build(me, Random(f"{me} {seed}")), self.readers[me.name])
        self.lab.start()
        self.lab.run(3 * SECOND)

    def _carries(self, _source: str, _dest: str, frame: Frame) -> bool:
        kept = self.heard.setdefault(type(frame), [])
        if len(kept) < 20 or self.rng.random() < 0.01:
            kept.append(frame)
        return True

    def talk(self, seconds: int) -> None:
        """Everybody sends, and time passes."""
        for step in range(10 * seconds):
            for name, seat in self.lab.seats.items():
                seat.multicast(b"%s %d" % (name.encode(), step))
            self.lab.run(SECOND // 10)

    def lie(self) -> Frame | None:
        """A frame that was heard, with some of it changed; None if nobody would decode it."""
        kind = self.rng.choice(sorted(self.heard, key=lambda each: each.__name__))
        told = msgspec.to_builtins(self.rng.choice(self.heard[kind]), builtin_types=(bytes,))
        for _ in range(self.rng.choice([1, 1, 1, 2, 3])):
            twist(self.rng, told, first=1)
        try:
            lie: Frame = msgspec.convert(told, self.known)
        except msgspec.ValidationError:
            return None
        return lie

    def attack(self, sources: list[MemberId], count: int) -> None:
        """Lies of these, to all, while the group works."""
        for number in range(count):
            lie = self.lie()
            if lie is not None:
                seat = self.rng.choice(list(self.lab.seats.values()))
                if seat.alive:
                    seat.hear(self.rng.choice([each for each in sources if each != seat.member]), lie)
            if number % 20 == 0:
                for name, seat in self.lab.seats.items():
                    if seat.alive:
                        seat.multicast(b"%s under attack" % name.encode())
                self.lab.run(20 * MILLISECOND)


def twist(rng: Random, told: list[Any], *, first: int = 0) -> None:
    """Change one thing somewhere in it."""
    if len(told) <= first:
        return
    at = rng.randrange(first, len(told))
    value = told[at]
    if isinstance(value, list) and value and rng.random() < 0.7:
        twist(rng, value)
    elif isinstance(value, list):
        told[at] = rng.choice([[], value * 2, value[::-1], value[:1]])
    elif isinstance(value, bool):
        told[at] = not value
    elif isinstance(value, int):
        told[at] = rng.choice([*ABSURD, value + 1, value - 1, value * 2])
    elif isinstance(value, bytes):
        told[at] = rng.choice([b"", value * 2, rng.randbytes(len(value)), value[:1]])
    elif isinstance(value, str):
        told[at] = rng.choice(["", "x", value * 2, "z" * 64])
    elif value is None:
        told[at] = rng.choice([0, [], b""])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("family", FAMILIES)
def test_nobody_dies_of_what_decodes(family: str, seed: int) -> None:
    """Whoever it claims to be from, a member included: a group may come apart, a process does not."""
    scene = Scene(family, seed)
    scene.talk(1)
    strangers = [MemberId("a", 4), MemberId("b", 6), MemberId("stranger"), MemberId("z" * 64, 1 << 62)]
    scene.attack([*MEMBERS, *strangers], 800)
    scene.lab.run(5 * SECOND)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", FAMILIES)
def test_a_group_works_again_when_strangers_are_quiet(family: str, seed: int) -> None:
    scene = Scene(family, seed)
    scene.talk(1)
    scene.attack([MemberId("stranger", 1), MemberId("another", 2)], 800)
    scene.lab.run(30 * SECOND)
    for seat in scene.lab.seats.values():
        seat.multicast(b"mark of " + seat.member.name.encode())
    scene.lab.run(10 * SECOND)
    for reader in scene.readers.values():
        marks = {payload for payload in reader.got if payload.startswith(b"mark of ")}
        assert marks == {b"mark of a", b"mark of b", b"mark of c"}
