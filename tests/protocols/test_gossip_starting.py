"""Where sessions begin, and what they acknowledge."""

from typing import Any

import msgspec
import pytest
from tests.protocols.gossiplab import GossipLab
from tests.protocols.severallab import Several

from semcast.core import Outbox
from semcast.core.events import Answered, Left
from semcast.core.ids import MILLISECOND, SECOND, MemberId
from semcast.core.statistics import Statistics
from semcast.lab.disk import Disk
from semcast.protocols.gossip import GossipSettings, Logger, Member, Retention
from semcast.protocols.gossip.acknowledging import Acknowledging
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.frames import Acknowledge, Acknowledged, Confirm, Join, Refused
from semcast.protocols.gossip.receiver import Receiver
from semcast.sim.mutants import MUTANTS

SHORT = 300 * MILLISECOND
P = MemberId("p")


def late(lab: GossipLab, **start: Any) -> None:
    """r comes when there is a log, and wants to start like this."""
    lab.settings = msgspec.structs.replace(lab.settings, **start)
    lab.restart("r")
    lab.run(SECOND)


def busy(**given: Any) -> GossipLab:
    """p sent 0 to 9 about two items, and then an event; r is not there."""
    lab = GossipLab(**given)
    heal = lab.stop(source="r")
    lab.seats["r"].crash()
    lab.run(SHORT)
    heal()
    for number in range(10):
        lab.update("p", b"%d" % number, "odd" if number % 2 else "even")
        lab.run(20 * MILLISECOND)
    lab.seats["p"].multicast(b"event")
    lab.run(SHORT)
    return lab


EVERYTHING = [*[b"%d" % number for number in range(10)], b"event"]


@pytest.mark.parametrize(
    ("start", "given", "receipts"),
    [
        ({"start": "new"}, [], 0),
        ({"start": "all"}, EVERYTHING, 0),
        ({"start": "compacted"}, [b"8", b"9", b"event"], 8),
        ({"start": "position", "start_at": 7}, [b"7", b"8", b"9", b"event"], 0),
        ({"start": "position", "start_at": 11}, [], 0),
        ({"start": "time", "start_at": 0}, EVERYTHING, 0),
        ({"start": "time", "start_at": 1 << 60}, [], 0),
    ],
)
def test_a_session_begins_where_it_asks_to(start: dict[str, Any], given: list[bytes], receipts: int) -> None:
    """Of a log that is kept as it is."""
    lab = busy(compact=False)
    late(lab, **start)
    assert lab.got("r") == given
    assert len(lab.purged("r")) == receipts
    lab.seats["p"].multicast(b"more")
    lab.run(SHORT)
    assert lab.got("r") == [*given, b"more"]


def test_a_session_begins_at_a_time() -> None:
    lab = busy(compact=False)
    now = lab.now
    lab.seats["q"].multicast(b"a", b"b")
    lab.run(SHORT)
    late(lab, start="time", start_at=now)
    assert lab.got("r") == [b"a", b"b"]


@pytest.mark.parametrize("mutant", [None, "begins-with-what-was-collected"])
def test_a_time_begins_with_what_is_still_there(mutant: str | None) -> None:
    """Nobody needed the rest any more, so nobody is told that it is lost (lbrm, 52).

    What was replaced leaves its position empty, and is not trimmed: so the log seems to begin before it.
    """
    logger = MUTANTS["rpbcast"][mutant].logger if mutant else Logger
    assert logger is not None
    lab = busy(logger=logger, retention=Retention.STABLE)
    lab.run(SECOND)
    late(lab, start="time", start_at=0)
    assert lab.got("r") == []
    assert bool(lab.lost("r")) is (mutant is not None)
    lab.seats["p"].multicast(b"more")
    lab.run(SHORT)
    assert lab.got("r") == [b"more"]


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ({"start": "acknowledged"}, "session 'r' is not known here"),
        ({"start": "position", "start_at": 12}, "position 12 is beyond the end of the log, which is 11"),
        ({"start": "position", "start_at": 1, "start_log": 9}, "of log 9, and this is log 1"),
    ],
)
def test_what_cannot_be_is_refused(start: dict[str, Any], why: str) -> None:
    lab = busy()
    late(lab, **start)
    [left] = [each for each in lab.seats["r"].events if isinstance(each, Left)]
    assert why in left.cause
    assert not left.again


def test_who_was_refused_is_refused_again() -> None:
    """It has left: a question that it had asked twice must not make a session that nobody will ever use."""
    lab = busy()
    late(lab, start="position", start_at=12)
    r, log = lab.seats["r"].member, lab.seats["log"].stack
    assert isinstance(log, Logger)
    lab.seats["p"].multicast(b"more")
    lab.seats["p"].multicast(b"and more")
    lab.run(SHORT)
    asked = Join(1, "position", at_most_once=False, at=12, log=0, filter="", again=False)
    lab.seats["log"].call(lambda stack, now: stack.on_frame(now, r, asked))
    lab.run(SHORT)
    assert log.books.rows.of(r) is None


def test_what_was_trimmed_is_refused() -> None:
    lab = busy(retention=Retention.STABLE, compact=False)
    lab.run(SECOND)
    late(lab, start="position", start_at=1)
    [left] = [each for each in lab.seats["r"].events if isinstance(each, Left)]
    assert "position 1 was trimmed: the log begins at 11" in left.cause


def test_a_position_behind_which_something_was_trimmed_is_refused() -> None:
    """Compacted, so the log begins with what was replaced, and is not trimmed; the rest was collected."""
    lab = busy(retention=Retention.STABLE)
    lab.run(SECOND)
    late(lab, start="position", start_at=1)
    [left] = [each for each in lab.seats["r"].events if isinstance(each, Left)]
    assert "position 1: some of what came after it was trimmed; the log is whole from 11 on" in left.cause
    assert not lab.lost("r")


@pytest.mark.parametrize("start", [0, 7])
def test_what_was_replaced_is_not_trimmed(start: int) -> None:
    """p sent 0 to 9 about two items. q, which does not read, holds up the last of each, and the event."""
    lab = GossipLab(retention=Retention.STABLE, queue_messages=1, hold=1)
    lab.seats["r"].crash()
    lab.run(SHORT)
    lab.seats["q"].reads = False
    for number in range(10):
        lab.update("p", b"%d" % number, "odd" if number % 2 else "even")
        lab.run(20 * MILLISECOND)
    lab.seats["p"].multicast(b"event")
    lab.run(SECOND)
    late(lab, start="position", start_at=start)
    assert lab.got("r") == [b"8", b"9", b"event"]
    assert not lab.lost("r"), "what was replaced is told apart from what was trimmed"


def test_what_other_loggers_may_collect_is_refused() -> None:
    """Both have p's message, and know that every session is through with it."""
    lab = Several(retention=Retention.STABLE)
    lab.seats["r"].crash()
    lab.run(SECOND)
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    lab.given |= {"start": "position"}
    lab.restart("r")
    lab.run(SECOND)
    left = [each.cause for each in lab.seats["r"].events if isinstance(each, Left)]
    assert [cause for cause in left if "the log is whole from 1 on" in cause or "begins at 1" in cause]


def test_a_known_session_goes_on_whatever_it_asks_for() -> None:
    for start in ("acknowledged", "all", "new"):
        lab = GossipLab(retention=Retention.LIVE)
        lab.run(SHORT)
        lab.seats["p"].multicast(b"1")
        lab.run(SHORT)
        lab.crash("r", told=False)
        lab.seats["p"].multicast(b"2")
        lab.run(SHORT)
        late(lab, start=start)
        assert lab.got("r") == [b"2"]


def test_a_refusal_of_another_attempt_does_not_count() -> None:
    lab = GossipLab()
    lab.stop(Confirm)
    lab.seats["r"].hear(MemberId("log"), Refused(9, 0, "no"))
    lab.run(SHORT)
    assert lab.seats["r"].stack.phase() == "joining"


def test_at_most_once_is_so_though_the_logger_has_never_heard_of_the_session() -> None:
    """Its disk is lost: that this is a restart, the member itself knows."""
    lab = GossipLab(at_most_once=True, start="all", gc_rounds=1000)
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SHORT)
    assert lab.got("q") == [b"1", b"2"]
    lab.crash("q", told=False)
    lab.crash("log", told=False)
    lab.disk = Disk()
    lab.restart("log")
    lab.run(SHORT)
    lab.restart("q")
    lab.run(SECOND)
    assert lab.seats["q"].stack.phase() == "operational"
    assert lab.got("q") == []
    lab.seats["p"].multicast(b"3")
    lab.run(SECOND)
    assert lab.got("q") == [b"3"]


def test_parts_of_two_answers_are_not_one() -> None:
    """The logger was asked twice, and knew of more streams the second time."""
    lab = GossipLab()
    lab.stop(Confirm, dest="r")
    r, log = lab.seats["r"], MemberId("log")
    lab.run(SHORT)
    first, second = ([(MemberId(f"{name}{number}"), 1) for number in range(3)] for name in "ab")
    r.hear(log, Confirm(1, 0, 2, first, [], again=False))
    r.hear(log, Confirm(1, 1, 3, second[:1], [], again=False))
    r.hear(log, Confirm(1, 2, 3, second[1:2], [], again=False))
    assert r.stack.phase() == "joining", "the first part of the second answer is not here"
    r.hear(log, Confirm(1, 0, 3, second[2:], [], again=False))
    assert r.stack.phase() == "operational"
    assert not [note for note in lab.notes("r", "start") if note.sender in dict(first)]


# Acknowledgements


def acknowledge(lab: GossipLab, name: str, seq: int, ticket: int = 1) -> None:
    def say(stack: Any, now: int) -> None:
        assert isinstance(stack, Member)
        stack.acknowledge(now, {P: seq}, ticket)

    lab.seats[name].call(say)


def acknowledged(lab: GossipLab, session: str) -> int:
    return max(
        (note.seq for note in lab.notes("log", "acknowledge") if note.members == (MemberId(session),)),
        default=0,
    )


@pytest.mark.parametrize("mutant", [None, "acknowledge-on-receipt"])
def test_what_lies_in_the_mailbox_was_not_taken(mutant: str | None) -> None:
    """R-9: the program has it only when it took it."""
    kind = MUTANTS["rpbcast"][mutant].stack if mutant else Member
    lab = GossipLab(kind, start="all")  # type: ignore[arg-type]
    lab.run(SHORT)
    lab.seats["q"].reads = False
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SHORT)
    assert (acknowledged(lab, "q") == 0) is (mutant is None)
    lab.seats["q"].read()
    lab.run(SHORT)
    assert acknowledged(lab, "q") == 2


@pytest.mark.parametrize("mutant", [None, "explicit-ignored"])
def test_a_program_says_what_it_is_through_with(mutant: str | None) -> None:
    """And the mutant that takes it for granted."""
    kind = MUTANTS["rpbcast"][mutant].stack if mutant else Member
    lab = GossipLab(kind, explicit=True)  # type: ignore[arg-type]
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1", b"2", b"3")
    lab.run(SHORT)
    assert (acknowledged(lab, "q") == 0) is (mutant is None)
    acknowledge(lab, "q", 2)
    lab.run(SHORT)
    assert (acknowledged(lab, "q") == 2) is (mutant is None)
    lab.crash("q", told=False)
    lab.restart("q")
    lab.run(SECOND)
    assert lab.got("q") == ([b"3"] if mutant is None else [])


def test_an_acknowledgement_in_parts_is_done_when_all_of_them_are_on_disk() -> None:
    """One of many streams does not fit into a frame: a restart would be given the rest again."""
    streams = [MemberId(f"sender {number}") for number in range(100)]
    out = Outbox()
    receiver = Receiver(P, GossipSettings(explicit=True), Statistics(), Outbox())
    acknowledging = Acknowledging(receiver, out)
    for stream in streams:
        receiver.open(stream, 5, "at-least-once")
    acknowledging.acknowledge(dict.fromkeys(streams, 5), 7, MemberId("log"))
    parts = [frame for _, frame in out.sends]
    assert len(parts) > 2
    for part in (*parts[1:], parts[1]):
        assert isinstance(part, Acknowledge)
        acknowledging.on_acknowledged(Acknowledged(part.serial, part.part, 0))
        assert Answered(7, "acknowledged") not in out.events
    acknowledging.on_round(MemberId("log"))
    assert out.sends[-1][1] == parts[0], "what was not answered is said again, and nothing else"
    acknowledging.on_acknowledged(Acknowledged(1, 0, 0))
    assert out.events.count(Answered(7, "acknowledged")) == 1


def test_an_acknowledgement_is_done_when_it_is_on_disk() -> None:
    lab = GossipLab(explicit=True)
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    lab.seats["log"].sync_after = None
    acknowledge(lab, "q", 1, ticket=7)
    lab.run(SHORT)
    assert not [each for each in lab.seats["q"].events if isinstance(each, Answered)]
    lab.seats["log"].sync_after = 0
    lab.seats["log"].finish_sync()
    lab.run(SHORT)
    assert [each.ticket for each in lab.seats["q"].events if isinstance(each, Answered)] == [7]


def test_what_no_logger_has_heard_of_is_not_acknowledged() -> None:
    """Sessions 520106: it was sent while the logger was down; who was told so was given it again."""
    lab = GossipLab(explicit=True)
    lab.run(SHORT)
    lab.seats["log"].crash()
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    assert lab.got("q") == [b"1"]
    acknowledge(lab, "q", 1, ticket=7)
    heal = lab.stop(Data, dest="log")
    lab.restart("log")
    lab.run(SHORT)
    assert not [each for each in lab.seats["q"].events if isinstance(each, Answered)]
    heal()
    lab.run(SHORT)
    assert [each.ticket for each in lab.seats["q"].events if isinstance(each, Answered)] == [7]
    lab.crash("q", told=False)
    lab.restart("q")
    lab.run(SECOND)
    assert lab.got("q") == []


def test_what_was_not_delivered_cannot_be_acknowledged() -> None:
    lab = GossipLab(explicit=True)
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    with pytest.raises(ValueError, match=r"\(p,2\) was not delivered here"):
        acknowledge(lab, "q", 2)
    automatic = GossipLab()
    with pytest.raises(ValueError, match="acknowledgements are automatic here"):
        acknowledge(automatic, "q", 0)


@pytest.mark.parametrize("mutant", [None, "own-messages-passed-over"])
def test_what_it_sent_before_it_was_admitted_comes_again(mutant: str | None) -> None:
    """sessions 717078: its session began after that, though its program had not read it."""
    logger = MUTANTS["rpbcast"][mutant].logger if mutant else Logger
    assert logger is not None
    lab = GossipLab(logger=logger, start="new")
    heal = lab.stop(Join, source="r")
    lab.seats["r"].reads = False
    lab.run(SHORT)
    lab.seats["r"].multicast(b"1")
    lab.run(SHORT)
    assert lab.notes("log", "log")
    heal()
    lab.run(SECOND)
    assert lab.seats["r"].stack.phase() == "operational"
    lab.restart("r")
    lab.run(SECOND)
    assert lab.got("r") == ([] if mutant else [b"1"])
    assert not lab.lost("r")
