"""The sessions a logger knows, and how many of those that are over it remembers."""

from tests.protocols.gossiplab import GossipLab
from tests.protocols.severallab import SHORT, Several

from semcast.core import MemberId
from semcast.core.ids import SECOND
from semcast.lab.seat import Seat
from semcast.protocols.gossip import Logger
from semcast.protocols.gossip.rows import Row, Rows


def end(seat: Seat, count: int) -> Logger:
    """So many sessions are over at a logger."""
    logger = seat.stack
    assert isinstance(logger, Logger)
    for number in range(count):
        logger.admission.dismiss(MemberId(f"s{number}"))
    return logger


def test_who_ended_first_is_forgotten_first() -> None:
    rows = Rows(most=2)
    for name in ("a", "b"):
        assert rows.dismiss(MemberId(name, 3)) is None
    assert rows.dismiss(MemberId("a", 2)) is None  # comes late, and says nothing new
    assert rows.dismiss(MemberId("c")) == "b"
    assert rows.dismissed() == [MemberId("a", 3), MemberId("c")]
    assert not rows.is_over(MemberId("b", 3))


def test_of_two_words_about_a_session_the_higher_counts() -> None:
    """What one logger shares may be older than what another has heard: nothing is given again."""
    a, p, q = (MemberId(name) for name in "apq")
    rows = Rows()
    rows.admit(0, a, {p: 5, q: 1})
    assert rows.merge(Row(a, {p: 3, q: 4}, 0, again=False))
    assert not rows.merge(Row(a, {p: 4}, 0, again=False))
    row = rows.of(a)
    assert row is not None
    assert row.through == {p: 5, q: 4}


def test_a_name_that_has_a_session_again_is_not_forgotten() -> None:
    rows = Rows(most=1)
    rows.dismiss(MemberId("a", 3))
    rows.admit(0, MemberId("a", 4), {})
    assert rows.dismiss(MemberId("b")) is None
    assert rows.of(MemberId("a", 4)) is not None
    assert rows.is_over(MemberId("a", 3))


def test_another_logger_that_is_away_will_not_be_told_of_forgotten_sessions() -> None:
    """Nor does what it is to be told grow with all that ever were."""
    lab = Several()
    lab.run(SHORT)
    lab.seats["l"].crash()
    logger = lab.seats["k"].stack
    assert isinstance(logger, Logger)
    logger.books.rows.most = 4
    end(lab.seats["k"], 10)
    lab.run(SHORT)
    end(lab.seats["k"], 20)
    lab.run(SHORT)
    untold = logger.colleagues._others["l"].unshared
    assert sorted(name for name in untold if name.startswith("s")) == ["s16", "s17", "s18", "s19"]
    lab.restart("l")
    lab.run(SECOND)
    other = lab.seats["l"].stack
    assert isinstance(other, Logger)
    over = [MemberId(f"s{number}") for number in range(16, 20)]
    assert other.books.rows.dismissed() == logger.books.rows.dismissed() == over


def test_a_log_with_many_sessions_that_are_over_is_not_written_anew_all_the_time() -> None:
    """They are records that are of use, as messages are."""
    lab = GossipLab(rewrite_records=10)
    lab.run(SHORT)
    end(lab.seats["log"], 50)
    lab.run(SHORT)
    written = lab.disk.next
    lab.run(SECOND)
    assert lab.disk.next == written
