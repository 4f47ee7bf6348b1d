"""Regions: members prefer the loggers and peers of their own, and one that is cut off goes on."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core import Frame, MemberId, Outbox
from semcast.core.ids import MILLISECOND, SECOND
from semcast.lab.disk import Disk
from semcast.lab.seat import Seat
from semcast.protocols.gossip import Choice, GossipSettings, Logger, Member
from semcast.protocols.gossip.peers import Peers

REGIONS = {"p": "east", "q": "east", "k": "east", "r": "west", "s": "west", "l": "west"}
EAST = [name for name, region in REGIONS.items() if region == "east"]
LOGGERS = ("k", "l")


class RegionLab(GossipLab):
    """Two regions, each with a logger."""

    def __init__(self, **given: Any) -> None:
        self.disks = {name: Disk() for name in LOGGERS}
        super().__init__(names=tuple(REGIONS), known=(), loggers=LOGGERS, presence=50 * MILLISECOND, **given)
        self.run(SECOND)

    def place(self, member: MemberId) -> Seat:
        rng, out = Random(f"{member}"), Outbox()
        given = {name: getattr(self.settings, name) for name in self.settings.__struct_fields__}
        settings = GossipSettings(**{**given, "region": REGIONS[member.name]})
        if member.name in LOGGERS:
            logger = Logger(member, (), settings, rng, out)
            return self.add(member, logger, disk=self.disks[member.name])
        return self.add(member, Member(member, (), settings, rng, out))

    def home(self, name: str) -> str:
        stack = self.seats[name].stack
        assert isinstance(stack, Member)
        assert stack.session.logger is not None
        return stack.session.logger.name

    def homes(self) -> dict[str, str]:
        return {name: self.home(name) for name in REGIONS if name not in LOGGERS}


AT_HOME = {"p": "k", "q": "k", "r": "l", "s": "l"}


def test_sessions_are_at_home_at_the_logger_of_their_region() -> None:
    assert RegionLab().homes() == AT_HOME


def test_where_that_is_down_another_serves_and_they_come_back() -> None:
    lab = RegionLab()
    lab.crash("k", told=False)
    lab.run(SECOND)
    assert lab.homes() == {**AT_HOME, "p": "l", "q": "l"}
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    assert all(lab.got(name) == [b"1"] for name in "pqrs")
    lab.restart("k")
    lab.run(2 * SECOND)
    assert lab.homes() == AT_HOME
    lab.seats["r"].multicast(b"2")
    lab.run(SECOND)
    assert all(lab.got(name) == [b"1", b"2"] for name in "pqrs")


def test_a_region_that_is_cut_off_goes_on_and_has_everything_later() -> None:
    lab = RegionLab(window=4)
    lab.carries = _not_between_regions
    sent = {"p": [b"e%d" % number for number in range(40)], "r": [b"w%d" % number for number in range(40)]}
    for place in range(40):
        for name, payloads in sent.items():
            assert lab.seats[name].multicast(payloads[place]) == 1  # nobody waits for the other side
        lab.run(20 * MILLISECOND)
    assert lab.got("q") == sent["p"]
    assert lab.got("s") == sent["r"]
    lab.carries = lambda *_: True
    lab.run(3 * SECOND)
    for name in "pqrs":
        assert sorted(lab.got(name)) == sorted(sent["p"] + sent["r"])
        assert lab.lost(name) == []


def _not_between_regions(source: str, to: str, _frame: Frame) -> bool:
    return REGIONS[source] == REGIONS[to]


def test_most_rounds_go_to_peers_of_the_region_and_some_to_others() -> None:
    peers = Peers([MemberId(f"m{number}") for number in range(20)], Choice.UNIFORM, Random(1))
    peers.near = ("m0", "m1", "gone")
    chosen = Counter(found.name for found in (peers.choose() for _ in range(2000)) if found is not None)
    assert 0.5 < (chosen["m0"] + chosen["m1"]) / 2000 < 0.8  # some are chosen in vain, and then anybody is
    assert len(chosen) == 20


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"region": "east"}, "give a presence period"),
        ({"region": "x" * 65, "presence": SECOND}, "64 characters at most"),
    ],
)
def test_settings_that_cannot_be(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        GossipSettings(**given)
