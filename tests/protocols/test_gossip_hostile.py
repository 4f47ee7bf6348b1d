"""Members and a logger, told whatever decodes: nobody dies of it, and strangers do no harm."""

from random import Random
from typing import Any, Union

import msgspec
import pytest
from tests.protocols.gossiplab import GossipLab
from tests.protocols.test_hostile_frames import twist

from semcast.core import Frame, MemberId
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip import GOSSIP, Protocol

KNOWN: Any = Union[*GOSSIP.frames]


def overheard(lab: GossipLab) -> dict[type[Frame], list[Frame]]:
    """Some frames of each kind, of a group that works."""
    heard: dict[type[Frame], list[Frame]] = {}

    def carries(_source: str, _dest: str, frame: Frame) -> bool:
        kept = heard.setdefault(type(frame), [])
        if len(kept) < 20:
            kept.append(frame)
        return True

    lab.carries = carries
    lab.run(300 * MILLISECOND)
    for number in range(10):
        lab.update("p", b"%d" % number)
        lab.updates("p", ("x", b"%d" % number), ("y", b"%d" % number), ("x", b"again"))
        lab.seats["q"].multicast(b"%d" % number)
        lab.run(20 * MILLISECOND)
    lab.restart("r")
    lab.crash("q")
    lab.run(SECOND)
    lab.restart("q")
    lab.run(SECOND)
    return heard


def lies(lab: GossipLab, heard: dict[type[Frame], list[Frame]], rng: Random, sources: list[MemberId]) -> None:
    for number in range(600):
        kind = rng.choice(sorted(heard, key=lambda each: each.__name__))
        told = msgspec.to_builtins(rng.choice(heard[kind]), builtin_types=(bytes,))
        for _ in range(rng.choice([1, 1, 2, 3])):
            twist(rng, told, first=1)
        try:
            lie: Frame = msgspec.convert(told, KNOWN)
        except msgspec.ValidationError:
            continue
        seat = lab.seats[rng.choice(sorted(lab.seats))]
        if seat.alive:
            seat.hear(rng.choice([each for each in sources if each != seat.member]), lie)
        if number % 20 == 0:
            for name in ("p", "q"):
                if lab.seats[name].alive:
                    lab.seats[name].multicast(b"under attack")
            lab.run(20 * MILLISECOND)


@pytest.mark.parametrize("protocol", [Protocol.LBRM, Protocol.RPBCAST])
@pytest.mark.parametrize("seed", range(2))
def test_nobody_dies_of_what_decodes(protocol: Protocol, seed: int) -> None:
    lab = GossipLab(protocol=protocol, silence=SECOND)
    heard = overheard(lab)
    sources = [*lab.members, MemberId("p", 7), MemberId("stranger"), MemberId("q", 1 << 62)]
    lies(lab, heard, Random(seed), sources)
    lab.run(2 * SECOND)
    lab.restart("log")
    lab.run(SECOND)


@pytest.mark.parametrize("protocol", [Protocol.LBRM, Protocol.RPBCAST])
def test_a_group_works_while_strangers_talk(protocol: Protocol) -> None:
    lab = GossipLab(protocol=protocol)
    lies(lab, overheard(lab), Random(5), [MemberId("stranger", 1), MemberId("another")])
    for name in ("p", "q", "r"):
        lab.seats[name].multicast(b"mark of " + name.encode())
    lab.run(SECOND)
    for name in ("p", "q", "r"):
        marks = {payload for payload in lab.got(name) if payload.startswith(b"mark")}
        assert marks == {b"mark of p", b"mark of q", b"mark of r"}
