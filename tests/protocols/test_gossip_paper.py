"""Gossip and loggers, by hand (Sun 2000), and what our deviations are for."""

from itertools import count
from typing import Any

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core.events import Blocked, Left, Unblocked
from semcast.core.ids import MILLISECOND, SECOND, MemberId
from semcast.lab.disk import Disk
from semcast.protocols.gossip import GossipSettings, Member, Protocol, Retention
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.desk import Desk
from semcast.protocols.gossip.frames import (
    Closed,
    Confirm,
    Farewell,
    Forgotten,
    Logged,
    Reported,
    Want,
)
from semcast.protocols.gossip.idle import IdleMarks, salted
from semcast.sim.mutants import MUTANTS
from semcast.sim.mutants.gossip import EIGHT_BITS

SHORT = 300 * MILLISECOND


def lbrm(**given: Any) -> GossipLab:
    return GossipLab(protocol=Protocol.LBRM, **given)


# L, the simplified LBRM (chapter 3)


def test_what_is_lost_is_asked_of_the_logger() -> None:
    """3.3: a gap goes to `missing`, and each tick asks for it."""
    lab = lbrm()
    lab.run(SHORT)
    heal = lab.stop(Data, source="p", dest="q")
    lab.seats["p"].multicast(b"1")
    lab.flow()
    heal()
    lab.seats["p"].multicast(b"2")
    lab.run(SHORT)
    assert lab.got("q") == [b"1", b"2"]


def test_a_heartbeat_shows_that_the_last_is_missing() -> None:
    """3.1: an idle sender says its number."""
    lab = lbrm(eager=False, report=60 * SECOND)
    lab.run(SHORT)
    heal = lab.stop(Data, source="p", dest="q")
    lab.seats["p"].multicast(b"1")
    lab.flow()
    heal()
    lab.run(SHORT)
    assert lab.got("q") == [b"1"]


def test_a_sender_resends_until_the_logger_acknowledges() -> None:
    """3.1, invariant 3.2: m is in sendbuf iff it is not acknowledged."""
    lab = lbrm()
    lab.run(SHORT)
    heal = lab.stop(Data, dest="log")
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    stack = lab.seats["p"].stack
    assert isinstance(stack, lab.kind)
    assert (stack.sender.seq, stack.sender.logged) == (1, 0)
    heal()
    lab.run(SHORT)
    assert stack.sender.logged == 1
    assert [note.seq for note in lab.notes("p", "letgo")] == [1]


def test_a_sender_keeps_what_nobody_has() -> None:
    """And the mutant that forgets a message when it is multicast."""
    for mutant in (None, "sender-forgets-early"):
        kind = None if mutant is None else MUTANTS["rpbcast"][mutant].stack
        lab = GossipLab(gc_rounds=1) if kind is None else GossipLab(kind, gc_rounds=1)  # type: ignore[arg-type]
        lab.run(SHORT)
        heal = lab.stop(Data)
        lab.seats["p"].multicast(b"1")
        lab.run(SHORT)
        heal()
        lab.run(SECOND)
        assert lab.got("q") == ([b"1"] if mutant is None else [])


def test_a_duplicate_is_acknowledged_again() -> None:
    """3.2: the acknowledgement may have been lost."""
    lab = lbrm()
    lab.run(SHORT)
    heal = lab.stop(Logged, Reported, dest="p")
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    heal()
    lab.run(SHORT)
    stack = lab.seats["p"].stack
    assert isinstance(stack, lab.kind)
    assert stack.sender.logged == 1


def test_nothing_is_acknowledged_before_it_is_on_disk() -> None:
    """R-11."""
    lab = lbrm()
    lab.run(SHORT)
    lab.seats["log"].sync_after = None
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    assert not lab.notes("p", "letgo")
    assert not lab.notes("log", "log")
    lab.seats["log"].finish_sync()
    lab.seats["log"].sync_after = 0
    lab.run(SHORT)
    assert lab.notes("p", "letgo")


# rpbcast (4.3)


def test_peers_repair_among_themselves() -> None:
    lab = GossipLab(eager=True)
    lab.run(SHORT)
    heal = lab.stop(Data, source="p", dest="q")
    lab.seats["p"].multicast(b"1")
    lab.flow()
    heal()
    lab.stop(Want)
    lab.seats["p"].multicast(b"2")
    lab.run(SHORT)
    assert lab.got("q") == [b"1", b"2"]


def test_a_late_note_does_not_bring_back_what_was_delivered() -> None:
    """R-1: as printed, it does."""
    for kind, times in ((None, 1), (MUTANTS["rpbcast"]["gc-note-as-printed"].stack, 2)):
        lab = GossipLab() if kind is None else GossipLab(kind)  # type: ignore[arg-type]
        lab.run(SHORT)
        lab.seats["p"].multicast(b"1")
        lab.run(SHORT)
        lab.seats["q"].hear(MemberId("r"), Forgotten(1, [(MemberId("p"), [(1, 1)])]))
        lab.run(SHORT)
        assert lab.got("q") == [b"1"] * times


def test_what_nobody_had_comes_from_the_logger() -> None:
    """R-2: nobody sends a note for what nobody had."""
    for mutant in (None, "notes-only"):
        kind = None if mutant is None else MUTANTS["rpbcast"][mutant].stack
        lab = GossipLab() if kind is None else GossipLab(kind)  # type: ignore[arg-type]
        lab.run(SHORT)
        lab.carries = lambda source, dest, _frame: "p" not in (source, dest) or "log" in (source, dest)
        lab.seats["p"].multicast(b"1")
        lab.run(SECOND)
        assert lab.got("q") == ([b"1"] if mutant is None else [])


def test_heartbeats_spread_by_hash() -> None:
    """5.1: q heard p go idle, r did not, and nobody tells it but q."""
    lab = GossipLab(eager=False, report=60 * SECOND, gossip_rounds=50, gc_rounds=50)
    lab.run(SHORT)
    lab.carries = lambda source, dest, _frame: dest != "r" or source == "q"
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    assert lab.got("r") == [b"1"]


def test_a_collision_lasts_one_round() -> None:
    """R-18: two sets of marks that look the same in one round differ in the next."""
    p = MemberId("p")
    plain = [({p: seq}, salted({p: seq}, p, 1)[:1]) for seq in range(1, 400)]
    first, second = next((one, other) for one, a in plain for other, b in plain if one != other and a == b)
    assert any(salted(first, p, number)[:1] != salted(second, p, number)[:1] for number in range(2, 12))


class _EightBits(IdleMarks):
    def hash(self, gossiper: MemberId, number: int) -> bytes | None:
        found = super().hash(gossiper, number)
        return None if found is None else found[:EIGHT_BITS]


class _EightBitsDesk(Desk):
    idle_kind = _EightBits


class EightBits(Member):
    """With hashes that collide soon, and salt."""

    desk_kind = _EightBitsDesk


@pytest.mark.parametrize("mutant", [None, "hash-without-salt"])
def test_a_collision_hides_nothing_for_good(mutant: str | None) -> None:
    """R-18: q knows that p is idle with a later number than r thinks; their hashes are the same."""
    p, found = MemberId("p"), dict[bytes, int]()
    hashes = ((last, salted({p: last}, MemberId("anybody"), 0)[:EIGHT_BITS]) for last in count(1))
    first, last = next((found[each], last) for last, each in hashes if found.setdefault(each, last) < last)
    kind = MUTANTS["rpbcast"][mutant].stack if mutant else EightBits
    lab = GossipLab(kind, loggers=(), eager=False, gossip_rounds=500, gc_rounds=500)  # type: ignore[arg-type]
    lab.run(SHORT)
    lab.seats["p"].multicast(*[b"x"] * first)
    lab.run(SHORT)
    assert len(lab.got("r")) == first
    lab.carries = lambda source, dest, _frame: dest != "r" or source == "q"
    lab.seats["p"].multicast(*[b"y"] * (last - first))
    lab.run(2 * SECOND)
    assert len(lab.got("r")) == (last if mutant is None else first)


@pytest.mark.parametrize("mutant", [None, "no-idle-heartbeat"])
def test_who_pauses_says_which_number_was_the_last(mutant: str | None) -> None:
    kind = MUTANTS["rpbcast"][mutant].stack if mutant else Member
    lab = GossipLab(kind, loggers=())  # type: ignore[arg-type]
    lab.run(SHORT)
    heal = lab.stop(Data, source="p")
    lab.seats["p"].multicast(b"1")
    lab.flow()
    heal()
    lab.run(SECOND)
    assert lab.got("q") == ([b"1"] if mutant is None else [])


def test_later_data_ends_a_mark() -> None:
    """R-19."""
    marks, p = IdleMarks(), MemberId("p")
    assert marks.hash(p, 1) is None
    marks.mark(p, 3)
    marks.data(p, 3)
    assert marks.hash(p, 1) is not None
    marks.data(p, 4)
    assert marks.hash(p, 1) is None


# Flow control


def test_a_sender_waits_for_its_logger_alone() -> None:
    lab = GossipLab(window=3)
    lab.run(SHORT)
    lab.crash("q", told=False)
    lab.seats["r"].reads = False
    heal = lab.stop(dest="log")
    assert lab.seats["p"].multicast(b"1", b"2", b"3", b"4") == 3
    assert any(isinstance(each, Blocked) for each in lab.seats["p"].events)
    heal()
    lab.run(SHORT)
    assert any(isinstance(each, Unblocked) for each in lab.seats["p"].events)
    assert lab.seats["p"].multicast(b"4") == 1


def test_without_a_logger_nothing_waits() -> None:
    lab = GossipLab(loggers=(), window=3)
    assert lab.seats["p"].multicast(*[b"."] * 100) == 100
    lab.run(SHORT)
    assert len(lab.got("q")) == 100


# Loggers


@pytest.mark.parametrize("spare", [0, 4096])
def test_a_logger_that_starts_again_has_what_it_acknowledged(spare: int) -> None:
    """Also where the log was written anew meanwhile."""
    lab = GossipLab(rewrite_records=spare)
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SHORT)
    lab.restart("log")
    assert [(note.seq, note.count) for note in lab.notes("log", "kept")] == [(1, 2)]
    lab.run(SHORT)
    assert lab.seats["p"].multicast(b"3") == 1
    lab.run(SHORT)
    assert lab.got("q") == [b"1", b"2", b"3"]


def test_a_message_only_a_member_has_is_logged_when_its_sender_is_gone() -> None:
    """R-10, and the mutant that asks nobody."""
    for mutant in (None, "asks-nobody"):
        logger = MUTANTS["rpbcast"][mutant].logger if mutant else None
        lab = GossipLab() if logger is None else GossipLab(logger=logger)
        lab.run(SHORT)
        heal = lab.stop(source="p")
        lab.carries = lambda source, dest, _frame: source != "p" or dest == "q"
        lab.seats["p"].multicast(b"1")
        lab.flow()
        lab.crash("p")
        heal()
        lab.run(2 * SECOND)
        assert lab.got("q") == [b"1"]
        assert lab.got("r") == ([b"1"] if mutant is None else [])
        assert not lab.notes("r", "lost")


def test_what_comes_after_the_inquiry_is_not_taken() -> None:
    """Else q would have what everybody else has given up."""
    for mutant in (None, "no-freeze"):
        kind = None if mutant is None else MUTANTS["rpbcast"][mutant].stack
        lab = GossipLab() if kind is None else GossipLab(kind)  # type: ignore[arg-type]
        lab.run(SHORT)
        lab.seats["p"].multicast(b"1")
        lab.run(SHORT)
        lab.crash("p")
        lab.stop(Closed)
        lab.run(100 * MILLISECOND)
        lab.seats["q"].hear(MemberId("p"), Data(MemberId("p"), 2, [b"late"]))
        lab.run(100 * MILLISECOND)
        assert lab.got("q") == ([b"1"] if mutant is None else [b"1", b"late"])


def test_a_hole_that_nobody_can_fill_has_a_receipt() -> None:
    """A sender that crashed had said a number, and nobody has the message."""
    lab = GossipLab()
    lab.run(SHORT)
    lab.carries = lambda _source, _dest, frame: not isinstance(frame, Data)
    lab.seats["p"].multicast(b"1")
    lab.run(50 * MILLISECOND)
    lab.crash("p")
    lab.run(2 * SECOND)
    for name in ("q", "r"):
        assert [(note.seq, note.level) for note in lab.notes(name, "lost")] == [(1, "abandoned")]


def test_a_lost_disk_takes_what_only_it_had() -> None:
    """Correction 10: what a living sender has let go is given up, and the stream goes on."""
    lab = GossipLab(retention=Retention.LIVE, gc_rounds=2)
    lab.run(SHORT)
    lab.carries = lambda source, dest, _frame: dest != "r" and source != "r"
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SECOND)
    lab.seats["log"].crash()
    lab.disk = Disk()
    lab.restart("log")
    lab.carries = lambda *_: True
    lab.run(2 * SECOND)
    assert lab.seats["p"].multicast(b"3") == 1
    lab.run(SECOND)
    assert lab.got("r") == [b"3"]
    assert sum(note.count for note in lab.notes("r", "lost")) == 2


def test_a_closed_sender_that_is_there_goes_on_as_another() -> None:
    """Correction 9."""
    lab = GossipLab(silence=SECOND)
    lab.run(SHORT)
    lab.carries = lambda source, dest, _frame: "p" not in (source, dest)
    lab.seats["p"].multicast(b"lost?")
    lab.run(3 * SECOND)
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert lab.notes("p", "fenced")


@pytest.mark.parametrize("mutant", [None, "fences-who-leaves"])
def test_who_leaves_may_hear_of_the_end_of_its_stream_first(mutant: str | None) -> None:
    """R-5: its session is over, so it must not go on as another. Found by `semcast chaos` (gossip, 1611)."""
    lab = GossipLab(MUTANTS["rpbcast"][mutant].stack if mutant else Member)  # type: ignore[arg-type]
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    lab.stop(Farewell)
    lab.seats["p"].call(lambda stack, now: stack.leave(now))
    lab.run(SHORT)
    assert lab.notes("log", "dismissed")
    assert lab.notes("log", "closed")
    assert bool(lab.notes("p", "fenced")) is (mutant is not None)
    lab.carries = lambda *_: True
    lab.run(SHORT)
    left = [each for each in lab.seats["p"].events if isinstance(each, Left)]
    assert [each.again for each in left] == [mutant is not None]


def test_who_leaves_with_something_that_no_log_has_goes_on_as_another() -> None:
    """Its stream was closed before: what it sent last is not in it, and its session goes on."""
    lab = GossipLab(silence=SECOND)
    lab.run(SHORT)
    lab.carries = lambda source, dest, _frame: "p" not in (source, dest)
    lab.seats["p"].multicast(b"lost?")
    lab.seats["p"].call(lambda stack, now: stack.leave(now))
    lab.run(3 * SECOND)
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert lab.notes("p", "fenced")
    assert not lab.notes("log", "dismissed")


def test_a_late_joiner_reads_what_still_matters() -> None:
    """Compaction, with receipts."""
    lab = GossipLab(start="all")
    lab.seats["r"].crash()
    lab.run(SHORT)
    for number in range(10):
        lab.update("p", b"%d" % number)
        lab.run(20 * MILLISECOND)
    lab.seats["p"].multicast(b"kept")
    lab.run(SHORT)
    lab.restart("r")
    lab.run(2 * SECOND)
    assert lab.got("r") == [b"9", b"kept"]
    assert lab.purged("r") == list(range(1, 10))


def test_a_session_goes_on_where_it_had_acknowledged() -> None:
    """Chapter 6, at least once."""
    lab = GossipLab()
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SHORT)
    lab.crash("q", told=False)
    lab.seats["p"].multicast(b"3")
    lab.run(SHORT)
    lab.restart("q")
    lab.run(SECOND)
    assert lab.got("q") == [b"3"]


def test_at_most_once_begins_where_the_sender_is() -> None:
    lab = GossipLab(at_most_once=True, report=200 * MILLISECOND)
    lab.run(SECOND)
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(20 * MILLISECOND)
    assert lab.got("q") == [b"1", b"2"]
    lab.restart("q")
    lab.run(SECOND)
    assert lab.got("q") == []
    lab.seats["p"].multicast(b"3")
    lab.run(SECOND)
    assert lab.got("q") == [b"3"]


def test_a_stable_log_is_empty_when_all_have_everything() -> None:
    lab = GossipLab(retention=Retention.STABLE)
    lab.run(SECOND)
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SECOND)
    assert sum(note.count for note in lab.notes("log", "collect")) == 2


def test_a_leaver_says_farewell_when_what_it_sent_is_logged() -> None:
    """R-5, R-12."""
    lab = GossipLab(retention=Retention.STABLE)
    lab.run(SECOND)
    lab.seats["p"].multicast(b"1")
    lab.seats["p"].handover.leave()
    lab.seats["p"].run()
    lab.run(SECOND)
    assert lab.seats["p"].turn.left is not None
    assert lab.got("q") == [b"1"]
    assert lab.notes("log", "collect")


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0},
        {"gossip_period": 0},
        {"heartbeat_most": 1},
        {"protocol": Protocol.PBCAST, "loggers": ("a",)},
        {"protocol": Protocol.LBRM},
        {"loggers": ("a", "a")},
        {"loggers": ("a",), "log_acks": 2},
        {"log_acks": 0},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"must|needs|has no|at most"):
        GossipSettings(**wrong)  # type: ignore[arg-type]


def test_a_confirmation_names_its_attempt() -> None:
    lab = GossipLab()
    lab.seats["q"].hear(MemberId("log"), Confirm(7, 0, 1, [(MemberId("p"), 5)], [], again=False))
    assert lab.seats["q"].stack.phase() == "joining"


def test_a_confirmation_for_the_incarnation_before_is_not_taken() -> None:
    """It asked with the same attempt; found by a swarm (lbrm, 353)."""
    lab = GossipLab()
    heal = lab.stop(Confirm)
    lab.restart("q")
    lab.run(5 * MILLISECOND)
    lab.seats["q"].hear(MemberId("log"), Confirm(1, 0, 1, [(MemberId("p"), 5)], [], again=False))
    assert lab.seats["q"].stack.phase() == "joining"
    heal()
    lab.run(SECOND)
    assert lab.seats["q"].stack.phase() == "operational"
