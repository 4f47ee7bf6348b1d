"""The sessions a logger knows, and how many of those that are over it remembers."""

from tests.protocols.gossiplab import GossipLab
from tests.protocols.severallab import SHORT, Several

from semcast.core import Frame, MemberId
from semcast.core.ids import MILLISECOND, SECOND
from semcast.lab.seat import Seat
from semcast.protocols.gossip import Logger
from semcast.protocols.gossip.frames import Confirm, Join, Share
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


def shares(lab: Several, *lost: type[Frame]) -> tuple[int, int]:
    """How often a row is said in a second, and a member asks to be admitted, where some frames are lost."""
    found: list[Frame] = []

    def carries(_source: str, _dest: str, frame: Frame) -> bool:
        found.append(frame)
        return not isinstance(frame, lost)

    lab.carries = carries
    lab.run(SECOND)
    return sum(isinstance(each, Share) for each in found), sum(isinstance(each, Join) for each in found)


def test_rows_are_said_until_they_are_answered_also_where_that_takes_longer_than_a_round() -> None:
    """rpbcast 760030: an answer counted only for what was said in the same round: rows were said for ever."""
    lab = Several(latency=15 * MILLISECOND)
    lab.run(2 * SECOND)
    assert shares(lab) == (0, 0)
    lab.seats["p"].multicast(b"1")
    assert shares(lab)[0] > 0
    lab.run(SECOND)
    assert shares(lab) == (0, 0)


def test_who_asks_again_to_be_admitted_does_not_have_its_row_said_anew() -> None:
    """rpbcast 760030: with rows of all who asked again the network was so full that nobody was admitted."""
    lab = Several(log_acks=2, report=10 * SECOND)
    said, asked = shares(lab, Confirm)
    assert said > 0
    assert asked > 0
    said, asked = shares(lab, Confirm)
    assert said == 0
    assert asked > 0
    lab.carries = lambda *_: True
    lab.run(SHORT)
    assert lab.seats["q"].stack.phase() == "operational"
