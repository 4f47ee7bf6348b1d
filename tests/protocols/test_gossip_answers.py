"""Answers of a logger that come late: to an incarnation that has started again since, and asks the same."""

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core import Frame, MemberId
from semcast.core.events import Answered, Left
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip import Member
from semcast.protocols.gossip.frames import Acknowledged, Confirm, Farewell, Refused, Reported
from semcast.sim.mutants import MUTANTS

LOG, P = MemberId("log"), MemberId("p")
SHORT = 300 * MILLISECOND
FORMER = 0

mutants = pytest.mark.parametrize("mutant", [None, "answers-to-the-former"])


def started_again(mutant: str | None, without: type[Frame], **given: bool) -> GossipLab:
    """q is in its second life, in which it gets none of these frames."""
    kind = MUTANTS["rpbcast"][mutant].stack if mutant else Member
    lab = GossipLab(kind, **given)  # type: ignore[arg-type]
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1")
    lab.crash("q", told=False)
    lab.run(SHORT)
    lab.stop(without, dest="q")
    lab.restart("q")
    lab.run(SHORT)
    return lab


def left(lab: GossipLab) -> list[str]:
    return [each.cause for each in lab.seats["q"].events if isinstance(each, Left)]


@mutants
def test_a_confirmation(mutant: str | None) -> None:
    """Found by a swarm (lbrm, 353)."""
    lab = started_again(mutant, Confirm)
    lab.seats["q"].hear(LOG, Confirm(1, 0, 1, [(P, 5)], [], again=False, incarnation=FORMER))
    assert (lab.seats["q"].stack.phase() == "joining") is (mutant is None)


@mutants
def test_a_refusal(mutant: str | None) -> None:
    """The former wanted to begin where it could not; who comes next may want something else."""
    lab = started_again(mutant, Confirm)
    lab.seats["q"].hear(LOG, Refused(1, FORMER, "no"))
    assert left(lab) == ([] if mutant is None else ["no"])
    lab.seats["q"].hear(LOG, Refused(1, FORMER + 1, "no"))
    assert left(lab) == ["no"]


@mutants
def test_the_answer_to_a_report(mutant: str | None) -> None:
    """Nobody has heard what this one reports: it is away."""
    lab = started_again(mutant, Reported)
    lab.run(SECOND)
    assert lab.notes("q", "disconnect")
    for serial in range(1, 100):
        lab.seats["q"].hear(LOG, Reported(serial, 0, FORMER, 1, []))
    assert bool(lab.notes("q", "reconnect")) is (mutant is not None)


@mutants
def test_the_answer_to_an_acknowledgement(mutant: str | None) -> None:
    """It is not on disk, so another incarnation would be given the message again."""
    lab = started_again(mutant, Acknowledged, explicit=True)

    def say(stack: object, now: int) -> None:
        assert isinstance(stack, Member)
        stack.acknowledge(now, {P: 1}, 7)

    def answered() -> bool:
        return any(isinstance(each, Answered) for each in lab.seats["q"].events)

    lab.seats["q"].call(say)
    lab.seats["q"].hear(LOG, Acknowledged(1, 0, FORMER))
    assert answered() is (mutant is not None)
    lab.seats["q"].hear(LOG, Acknowledged(1, 0, FORMER + 1))
    assert answered()


@mutants
def test_the_end_of_a_session(mutant: str | None) -> None:
    """Every report of a session that is over is answered so; whoever comes back is there at the first."""
    lab = started_again(mutant, Farewell)
    lab.seats["q"].hear(LOG, Farewell(FORMER))
    assert bool(left(lab)) is (mutant is not None)


@mutants
def test_the_end_of_a_session_that_is_about_to_end(mutant: str | None) -> None:
    """It goes when its own end is on disk: before, its logger owes it everything."""
    lab = started_again(mutant, Farewell)
    lab.seats["q"].call(lambda stack, now: stack.leave(now))
    lab.seats["q"].hear(LOG, Farewell(FORMER))
    assert bool(left(lab)) is (mutant is not None)
    lab.seats["q"].hear(LOG, Farewell(FORMER + 1))
    assert left(lab) == ["asked to"]
