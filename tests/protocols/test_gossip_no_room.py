"""A log that has no room for another stream says so, and does not let its sender wait for ever."""

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core.events import Left
from semcast.core.ids import SECOND
from semcast.lab.seat import Seat
from semcast.protocols.gossip import Logger, Protocol, admission, books
from semcast.protocols.gossip.frames import Full


def causes(seat: Seat) -> list[str]:
    return [event.cause for event in seat.events if isinstance(event, Left)]


@pytest.mark.parametrize("protocol", [Protocol.LBRM, Protocol.RPBCAST])
def test_a_sender_for_which_there_is_no_room_is_told(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start is another stream, and a log that keeps what nothing replaced keeps the former one."""
    lab = GossipLab(protocol=protocol)
    lab.run(SECOND)
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    monkeypatch.setattr(books, "_IN_ALL", 3)
    p = lab.restart("p")
    lab.run(SECOND)
    assert not causes(p), "it may read"
    p.multicast(b"2")
    lab.run(SECOND)
    [cause] = causes(p)
    assert "log cannot log what is sent here: the log has 3 streams" in cause
    logger = lab.seats["log"].stack
    assert isinstance(logger, Logger)
    assert logger.books.refused >= 1
    assert logger.books.rows.known("p") is None, "nobody would use its session any more"
    lab.seats["q"].multicast(b"3")
    lab.run(SECOND)
    assert lab.got("r")[-1] == b"3", "the others go on"


def test_one_name_cannot_take_all_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "_OPEN", 1)
    lab = GossipLab()
    lab.run(SECOND)
    logger = lab.seats["log"].stack
    assert isinstance(logger, Logger)
    found = logger.books.no_room(lab.seats["p"].member)
    assert found.startswith("1 streams of 'p' wait to be closed")


def test_a_session_for_which_there_is_no_room_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for ever. The others go on, and who comes back has its own."""
    monkeypatch.setattr(admission, "_MOST", 2)
    lab = GossipLab()
    lab.run(SECOND)
    [refused] = [name for name in "pqr" if causes(lab.seats[name])]
    assert "the log has 2 sessions" in causes(lab.seats[refused])[0]
    sender, back = sorted({*"pqr"} - {refused})
    lab.restart(back)
    lab.seats[sender].multicast(b"1")
    lab.run(SECOND)
    assert lab.got(back) == [b"1"]
    logger = lab.seats["log"].stack
    assert isinstance(logger, Logger)
    assert logger.books.refused == 1


def test_what_another_incarnation_was_told_does_not_count() -> None:
    lab = GossipLab()
    lab.run(SECOND)
    log = lab.seats["log"].member
    lab.seats["p"].call(lambda stack, now: stack.on_frame(now, log, Full(7, "no room")))
    lab.run(SECOND)
    assert not causes(lab.seats["p"])
