"""A log of many streams: what is asked of them, or said, does not fit into one frame."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.protocols.severallab import SHORT, Several

from semcast.core import Batch, Frame, MemberId
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip import Logger, Protocol, Retention
from semcast.protocols.gossip.data import Data, data_of
from semcast.protocols.gossip.frames import CONTROL, Heartbeats, Report, wanted
from semcast.sim.mutants import MUTANTS

LIVES = [MemberId("p", life) for life in range(1, 61)]


def several(mutant: str | None, **given: Any) -> Several:
    """p was killed many times, and its log keeps all that it ever sent."""
    kind = Logger if mutant is None else MUTANTS["rpbcast"][mutant].logger
    lab = Several(logger=kind, protocol=Protocol.LBRM, retention=Retention.LIVE, **given)
    lab.run(SHORT)
    lab.seats["p"].crash()
    return lab


def logged(lab: Several, name: str, senders: Sequence[MemberId]) -> list[int]:
    stack = lab.seats[name].stack
    assert isinstance(stack, Logger)
    return [stream.logged for stream in map(stack.books.streams.get, senders) if stream is not None]


def test_streams_of_which_nothing_is_wanted_take_no_room() -> None:
    nothing: list[tuple[MemberId, list[tuple[int, int]]]] = [
        (MemberId("p", life), []) for life in range(CONTROL)
    ]
    assert wanted([*nothing, (MemberId("q"), [(1, 2)])]) == [(MemberId("q"), [(1, 2)])]
    assert wanted(nothing) == []


@pytest.mark.parametrize("mutant", [None, "pulls-the-first-alone"])
def test_a_log_of_many_streams_takes_all_that_another_has(mutant: str | None) -> None:
    """chaos 1611: beyond 40 streams, l never had what it did not hear itself, and did not know it."""
    lab = several(mutant)
    for sender in LIVES:
        lab.seats["k"].hear(sender, data_of(Batch(sender, 1, [b"1", b"2"])))
    lab.run(3 * SECOND)
    assert logged(lab, "k", LIVES) == [2] * len(LIVES)
    assert (logged(lab, "l", LIVES) == [2] * len(LIVES)) is (mutant is None)


@pytest.mark.parametrize("mutant", [None, "pulls-the-first-alone"])
def test_what_no_logger_has_holds_up_nothing(mutant: str | None) -> None:
    """Nobody has what l has heard of in many streams; the decider is not there to give it up."""
    lab = several(mutant)
    lab.seats["k"].crash()
    for sender in LIVES:
        lab.seats["l"].hear(sender, Heartbeats(1, [(sender, 5)]))
    lab.restart("k")
    lab.run(SHORT)
    last = MemberId("q", 1)
    lab.seats["k"].hear(last, data_of(Batch(last, 1, [b"1"])))
    lab.run(SECOND)
    assert (logged(lab, "l", [last]) == [1]) is (mutant is None)


@pytest.mark.parametrize("mutant", [None, "moves-in-parts"])
@pytest.mark.parametrize("lost", [0, 1])
def test_a_session_of_many_streams_moves_with_all_of_its_position(lost: int, mutant: str | None) -> None:
    """chaos 1611: l lagged behind k, and took over of each stream what it had itself, as a newer row.

    When its program started again it was given anew what k had acknowledged. Some parts of the first report
    may be lost, too.
    """
    lab = several(mutant, homes={"q": "k"})
    lab.carries = lambda source, dest, frame: not (dest == "l" and isinstance(frame, Data))
    for sender in LIVES:
        for name in "kq":
            lab.seats[name].hear(sender, data_of(Batch(sender, 1, [b"1", b"2"])))
    lab.run(SECOND)
    assert len(lab.got("q")) == 2 * len(LIVES)
    dropped = 0

    def carries(source: str, dest: str, frame: Frame) -> bool:
        nonlocal dropped
        if source == "q" and isinstance(frame, Report) and frame.part and dropped < lost:
            dropped += 1
            return False
        return not (dest == "l" and isinstance(frame, Data))

    lab.carries = carries
    lab.seats["k"].crash()
    lab.run(500 * MILLISECOND)
    assert lab.home("q") == "l"
    assert dropped == lost
    lab.restart("q")
    lab.restart("k")
    lab.run(SECOND)
    assert (lab.got("q") == []) is (mutant is None)
