"""What sessions answer to a logger that closes a stream, part by part (`closing.py`)."""

from semcast.core import MemberId
from semcast.protocols.gossip.closing import Inquiry
from semcast.protocols.gossip.frames import Holding, Inquire
from semcast.protocols.gossip.log import LogStream

P, Q = MemberId("p"), MemberId("q")


def inquiry() -> Inquiry:
    return Inquiry(LogStream(P), closing=True)


def asked(about: Inquiry) -> list[int]:
    """From where on q is asked."""
    found = []
    for member, question in about.questions([Q]):
        assert member == Q
        assert isinstance(question, Inquire)
        found.append(question.after)
    return found


def test_an_answer_comes_in_parts() -> None:
    about = inquiry()
    assert asked(about) == [0]
    about.on_holding(Q, Holding(P, 0, 9, [(1, 2)], more=True))
    assert asked(about) == [2]
    assert about.lacking(Q) == [(1, 2)], "they are asked for meanwhile"
    about.on_holding(Q, Holding(P, 0, 9, [(1, 2)], more=True))
    about.on_holding(Q, Holding(P, 2, 9, [(4, 5)], more=False))
    assert about.lacking(Q) == [(1, 2), (4, 5)]
    assert not about.complete([Q])


def test_who_holds_what_is_not_here_is_asked_again_and_its_last_whole_answer_counts() -> None:
    about = inquiry()
    list(about.questions([Q]))
    about.on_holding(Q, Holding(P, 0, 9, [(1, 2), (4, 5)], more=False))
    assert asked(about) == [0]
    about.on_holding(Q, Holding(P, 0, 9, [(2, 2)], more=True))
    assert about.lacking(Q) == [(1, 2), (4, 5)], "it has not said all"
    assert asked(about) == [2]
    about.on_holding(Q, Holding(P, 2, 9, [], more=False))
    assert about.lacking(Q) == [(2, 2)]
    about.on_holding(Q, Holding(P, 0, 9, [], more=False))
    assert about.complete([Q])
    assert asked(about) == []
    assert (about.last, about.holes()) == (9, [(1, 9)])
