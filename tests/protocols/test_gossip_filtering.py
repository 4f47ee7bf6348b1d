"""Programs that want some items only."""

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip import GossipSettings, Retention
from semcast.protocols.gossip.data import Data

SHORT = 300 * MILLISECOND


def test_a_program_is_given_the_items_it_wants_and_events() -> None:
    lab = GossipLab(filter="truck/", retention=Retention.STABLE)
    lab.run(SHORT)
    for number, item in enumerate(("truck/1", "ship/1", "truck/2", "ship/2")):
        lab.update("p", b"%d" % number, item)
    lab.seats["p"].multicast(b"event")
    lab.run(SECOND)
    assert lab.got("q") == [b"0", b"2", b"event"]
    assert lab.got("p") == [b"0", b"1", b"2", b"3", b"event"], "its own are not looked at"
    assert [note.seq for note in lab.notes("q", "lost")] == [2, 4]
    assert not lab.lost("q")
    assert sum(note.count for note in lab.notes("log", "collect")) == 5, "what is unwanted counts as had"


def test_a_log_does_not_send_what_is_unwanted() -> None:
    lab = GossipLab(filter="truck/")
    heal = lab.stop(source="r")
    lab.seats["r"].crash()
    lab.run(SHORT)
    heal()
    for number in range(20):
        lab.update("p", b"%d" % number, f"ship/{number}")
    lab.update("p", b"wanted", "truck/1")
    lab.run(SHORT)
    sent: list[int] = []
    lab.restart("r")

    def carries(_source: str, dest: str, frame: object) -> bool:
        if dest == "r" and isinstance(frame, Data):
            sent.append(frame.first)
        return True

    lab.carries = carries
    lab.run(SECOND)
    assert lab.got("r") == [b"wanted"]
    assert set(sent) == {21}


def test_a_long_filter_is_refused() -> None:
    with pytest.raises(ValueError, match="a filter has 64 characters at most"):
        GossipSettings(filter="x" * 65)
