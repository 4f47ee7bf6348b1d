"""Members that sponsors take in, where no logger is there (Sun 2000, 5.3)."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, Union

import msgspec
import pytest
from tests.protocols.gossiplab import GossipLab
from tests.protocols.severallab import Several
from tests.protocols.test_hostile_frames import twist

from semcast.core import Frame, MemberId
from semcast.core.events import Back, Left
from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.core.stack import Stack
from semcast.lab.seat import Seat
from semcast.protocols.gossip import GossipSettings, Logger, Member, Protocol, Retention
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.frames import Logged, Presence, Report
from semcast.protocols.gossip.sponsor_frames import SPONSOR_FRAMES, Apply, Enroll, Vouch
from semcast.sim.mutants.gossip_sponsors import (
    AckBeforeMembership,
    AnswersToFormerAttempts,
    CountsOneSponsorTwice,
    JoinsBeforeSponsors,
    LeaveAsPrinted,
    LeaveWithoutList,
)

PRESENCE = 50 * MILLISECOND
SHORT = 300 * MILLISECOND


def lab_of(*names: str, kind: type[Member] = Member, **given: Any) -> GossipLab:
    """Members that do not know each other; without `log`, there is no logger."""
    logs = "log" in names
    chosen = {"loggers": ("log",) if logs else (), "presence": PRESENCE, "start": "new", **given}
    lab = GossipLab(kind, names=names, known=(), **chosen)
    lab.run(SECOND)
    return lab


def come(lab: GossipLab, name: str, kind: type[Member] | None = None) -> Seat:
    """Somebody starts."""
    lab.kind = kind or lab.kind
    seat = lab.place(MemberId(name))
    seat.start()
    return seat


def joined(lab: GossipLab, name: str) -> tuple[str | None, list[str]]:
    """How it joined, and by whom."""
    [note] = lab.notes(name, "joined")
    return note.level, [member.name for member in note.members or ()]


def starts(lab: GossipLab, name: str) -> dict[str, int]:
    return {note.sender.name: note.seq for note in lab.notes(name, "start") if note.sender is not None}


def send(lab: GossipLab, name: str, *payloads: bytes) -> None:
    lab.seats[name].multicast(*payloads)
    lab.run(SHORT)


def hears_no(lab: GossipLab, name: str, *kinds: type[Frame], source: str = "") -> None:
    """From now on, frames of these kinds do not reach it."""
    lab.stop(*kinds, dest=name, source=source)


def cut_off(lab: GossipLab, name: str, *kinds: type[Frame]) -> None:
    """Nothing reaches it, and nothing that it sends reaches others; nor do frames of these kinds."""
    lab.carries = lambda source, to, frame: name not in (source, to) and not isinstance(frame, kinds)


def stack_of(lab: GossipLab, name: str) -> Member:
    stack = lab.seats[name].stack
    assert isinstance(stack, Member)
    return stack


@pytest.mark.parametrize("protocol", [Protocol.PBCAST, Protocol.RPBCAST])
def test_a_newcomer_starts_where_its_sponsors_are(protocol: Protocol) -> None:
    lab = lab_of("p", "q", "r", protocol=protocol, sponsors=3)
    send(lab, "p", b"1", b"2", b"3")
    come(lab, "s")
    lab.run(SHORT)
    assert joined(lab, "s") == ("sponsors", ["p", "q", "r"])
    assert starts(lab, "s")["p"] == 3
    send(lab, "p", b"4")
    assert lab.got("s") == [b"4"]
    assert lab.lost("s") == []


def test_what_comes_after_t_join_is_owed_though_the_newcomer_did_not_hear_it() -> None:
    """Its first message is lost: who begins with what it hears would skip it silently."""
    lab = lab_of("p", "q", sponsors=1)
    come(lab, "s")
    lab.run(SHORT)
    heard = lab.stop(Data, source="p", dest="s")
    lab.seats["p"].multicast(b"1")
    lab.run(MILLISECOND)
    heard()
    send(lab, "p", b"2")
    assert lab.got("s") == [b"1", b"2"]


def test_t_join_is_after_what_every_sponsor_had_heard_of() -> None:
    """Property 5.2, and the mutant that takes the earliest."""
    found = {}
    for kind in (Member, JoinsBeforeSponsors):
        lab = lab_of("p", "q", "r", sponsors=2, gossip_period=200 * MILLISECOND, join_rounds=1)
        hears_no(lab, "q", Data)
        lab.seats["p"].multicast(b"1", b"2")
        lab.run(MILLISECOND)
        lab.stop(Vouch, source="p")
        come(lab, "s", kind)
        lab.run(2 * MILLISECOND)
        assert joined(lab, "s") == ("sponsors", ["q", "r"])
        found[kind] = starts(lab, "s").get("p", 0)
    assert found == {Member: 2, JoinsBeforeSponsors: 0}


def test_who_is_alone_is_the_first_and_two_that_start_at_once_find_each_other() -> None:
    lab = lab_of("p")
    assert joined(lab, "p") == ("alone", [])
    lab = lab_of("p", "q")
    assert {joined(lab, name)[0] for name in "pq"} <= {"alone", "few"}
    send(lab, "p", b"1")
    send(lab, "q", b"2")
    assert lab.got("p") == lab.got("q") == [b"1", b"2"]


def test_small_groups_make_do_with_all_there_are_and_do_not_wait() -> None:
    lab = lab_of("p", sponsors=3)
    begin = lab.now
    come(lab, "q")
    lab.run(lab.settings.gossip_period)
    assert joined(lab, "q") == ("few", ["p"])
    assert lab.now - begin < lab.settings.join_rounds * lab.settings.gossip_period


def test_who_waits_for_sponsors_is_no_member_and_no_sponsor() -> None:
    lab = lab_of("p")
    hears_no(lab, "s", Vouch)
    lab.settings = GossipSettings(**{**_as_dict(lab.settings), "join_rounds": 1000})
    seat = come(lab, "s")
    lab.run(SHORT)
    assert seat.stack.phase() == "joining"
    assert [member.name for member in lab.seats["p"].stack.view().members] == ["p"]
    assert seat.multicast(b"1") == 0
    come(lab, "t")
    lab.run(SHORT)
    assert joined(lab, "t") == ("few", ["p"])


def _as_dict(settings: GossipSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__struct_fields__}


def test_a_sponsor_that_crashes_while_it_sponsors_is_replaced_by_another() -> None:
    lab = lab_of("p", "q", "r", sponsors=2)
    lab.stop(Vouch)
    come(lab, "s")
    lab.run(2 * lab.settings.gossip_period)
    lab.crash("r", told=False)
    lab.stop(Vouch, source="r")()
    lab.run(SHORT)
    assert joined(lab, "s")[0] == "sponsors"
    send(lab, "p", b"1")
    assert lab.got("s") == [b"1"]


def test_who_was_away_while_it_waited_asks_anew() -> None:
    """What sponsors answered to the attempt before is old: it would be owed what it never could be given."""
    found = {}
    for kind in (Member, AnswersToFormerAttempts):
        lab = lab_of("p", "q", sponsors=2)
        caught: list[Vouch] = []
        lab.carries = _without_answers(caught)
        seat = come(lab, "s", kind)
        lab.run(lab.settings.gossip_period)
        seat.call(lambda stack, now: stack.disconnect(now))
        send(lab, "p", b"1", b"2")
        seat.call(lambda stack, now: stack.reconnect(now))
        for source, frame in zip("pq", caught[:2], strict=True):
            member = lab.seats[source].member
            seat.call(partial(_hear, source=member, frame=frame))
        lab.carries = lambda *_: True
        lab.run(SHORT)
        found[kind] = starts(lab, "s")["p"]
    assert found == {Member: 2, AnswersToFormerAttempts: 0}


def _hear(stack: Stack, now: Nanos, *, source: MemberId, frame: Frame) -> None:
    stack.on_frame(now, source, frame)


def _without_answers(caught: list[Vouch]) -> Callable[[str, str, Frame], bool]:
    def carries(_source: str, to: str, frame: Frame) -> bool:
        if isinstance(frame, Vouch) and to == "s":
            caught.append(frame)
        return not isinstance(frame, Vouch)

    return carries


@pytest.mark.parametrize("kind", [Member, LeaveAsPrinted])
def test_who_leaves_is_told_by_others_that_they_know(kind: type[Member]) -> None:
    """R-5: as printed nobody answers, and it waits as long as it would for nobody."""
    lab = lab_of("p", "q", "r", kind=kind)
    lab.stop(Presence)
    lab.seats["r"].call(lambda stack, now: stack.leave(now))
    lab.run(2 * lab.settings.gossip_period)
    gone = any(isinstance(event, Left) for event in lab.seats["r"].events)
    assert gone is (kind is Member)
    assert [member.name for member in stack_of(lab, "p").view().members] == ["p", "q"]
    lab.run(lab.settings.join_rounds * lab.settings.gossip_period)
    assert any(isinstance(event, Left) for event in lab.seats["r"].events)


def test_all_leave_at_once_and_nobody_waits() -> None:
    lab = lab_of("p", "q", "r")
    for seat in lab.seats.values():
        seat.call(lambda stack, now: stack.leave(now))
    lab.run(2 * lab.settings.gossip_period)
    assert all(any(isinstance(event, Left) for event in seat.events) for seat in lab.seats.values())


def test_of_many_members_about_twice_as_many_answer_as_must() -> None:
    names = [f"m{number}" for number in range(24)]
    lab = lab_of(*names, sponsors=2)
    answers: list[Vouch] = []
    lab.carries = _without_answers(answers)
    come(lab, "s")
    lab.run(MILLISECOND)
    assert 0 < len(answers) < 12


# Where there are loggers, and none of them is there


def away(kind: type[Member] = Member, names: Sequence[str] = ("p", "q", "r"), **given: Any) -> GossipLab:
    """A group whose logger is down."""
    lab = lab_of(*names, "log", kind=kind, retention=Retention.STABLE, **{"sponsors": 2, **given})
    send(lab, "p", b"0")
    lab.crash("log", told=False)
    lab.run(SECOND)
    return lab


def test_sponsors_admit_while_every_logger_is_away_and_the_loggers_learn_of_it() -> None:
    lab = away()
    seat = come(lab, "s")
    lab.run(SECOND)
    assert joined(lab, "s")[0] == "sponsors"
    assert starts(lab, "s")["p"] == 1
    send(lab, "p", b"1")
    send(lab, "s", b"2")
    assert lab.got("s") == [b"1", b"2"]
    lab.restart("log")
    lab.run(SECOND)
    assert any(isinstance(event, Back) for event in seat.events)
    assert [note.members for note in lab.notes("log", "admit") if note.members == (seat.member,)]
    send(lab, "p", b"3")
    assert lab.got("s") == [b"1", b"2", b"3"]
    assert all(lab.got(name) == [b"0", b"1", b"2", b"3"] for name in "pqr")


@pytest.mark.parametrize("kind", [Member, CountsOneSponsorTwice])
def test_fewer_sponsors_than_are_set_never_do_where_there_are_loggers(kind: type[Member]) -> None:
    lab = away(kind, names=("p",))
    seat = come(lab, "s")
    lab.run(2 * SECOND)
    assert bool(lab.notes("s", "joined")) is (kind is CountsOneSponsorTwice)
    lab.restart("log")
    lab.run(SECOND)
    assert seat.stack.phase() == "operational"


@pytest.mark.parametrize("given", [{"start": "all"}, {"sponsors": 0}])
def test_only_who_begins_with_what_comes_is_sponsored(given: dict[str, Any]) -> None:
    lab = away(**given)
    seat = come(lab, "s")
    lab.run(2 * SECOND)
    assert seat.stack.phase() == "joining"


def test_who_may_have_had_a_session_waits_for_a_logger() -> None:
    """Where it was, a logger alone knows: sponsors would let it skip what it is owed."""
    lab = away()
    seat = lab.restart("q")
    lab.run(2 * SECOND)
    assert seat.stack.phase() == "joining"


@pytest.mark.parametrize("kind", [Member, AckBeforeMembership])
def test_nothing_is_collected_that_a_newcomer_is_owed_though_no_logger_knows_it(kind: type[Member]) -> None:
    """5.2, case 2: a sponsor acknowledges nothing beyond its word before its logger knows whom it took in."""
    lab = away(kind)
    come(lab, "s")
    lab.run(SECOND)
    cut_off(lab, "s", Enroll)
    send(lab, "p", b"1", b"2")
    lab.restart("log")
    lab.run(SECOND)
    collected = [note for note in lab.notes("log", "collect") if note.seq > 1]
    assert bool(collected) is (kind is AckBeforeMembership)
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert lab.got("s") == ([b"1", b"2"] if kind is Member else [])
    if kind is Member:
        assert [note for note in lab.notes("log", "collect") if note.seq > 1]  # all have it now


@pytest.mark.parametrize("kind", [Member, LeaveWithoutList])
def test_a_sponsor_does_not_leave_before_its_logger_knows_whom_it_took_in(kind: type[Member]) -> None:
    lab = away(kind, sponsors=1)
    lab.stop(Vouch, source="q")
    lab.carries = lambda source, _to, frame: not (isinstance(frame, Vouch) and source != "r")
    come(lab, "s")
    lab.run(SECOND)
    assert joined(lab, "s") == ("sponsors", ["r"])
    cut_off(lab, "s", Enroll)
    send(lab, "p", b"1", b"2")
    lab.restart("log")
    lab.run(MILLISECOND)
    lab.seats["r"].call(lambda stack, now: stack.leave(now))
    for name in "pq":  # they never heard of the newcomer
        stack_of(lab, name).belonging.sponsoring._newcomers.clear()
    lab.run(SECOND)
    left = any(isinstance(event, Left) for event in lab.seats["r"].events)
    collected = [note for note in lab.notes("log", "collect") if note.seq > 1]
    assert left is bool(collected) is (kind is LeaveWithoutList)
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert any(isinstance(event, Left) for event in lab.seats["r"].events)


@pytest.mark.parametrize("sponsors", [1, 2])
def test_so_many_sponsors_less_one_may_crash(sponsors: int) -> None:
    """And where all do, what the newcomer cannot be given any more it is told."""
    lab = away(sponsors=sponsors)
    lab.carries = lambda source, _to, frame: not (isinstance(frame, Vouch) and source == "p")
    come(lab, "s")
    lab.run(SECOND)
    cut_off(lab, "s")
    sponsor = joined(lab, "s")[1][0]
    send(lab, "p", b"1", b"2")
    others = [name for name in "pqr" if name not in joined(lab, "s")[1]]
    for name in others:
        stack_of(lab, name).belonging.sponsoring._newcomers.clear()
    lab.restart(sponsor)
    lab.restart("log")
    lab.run(2 * SECOND)
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert lab.got("s") == ([b"1", b"2"] if sponsors > 1 else [])
    assert [(each.first, each.last) for each in lab.lost("s")] == ([] if sponsors > 1 else [(2, 3)])


def test_an_answer_of_a_logger_to_a_former_attempt_does_not_count() -> None:
    """The logger begins elsewhere than the sponsors: one attempt is never both's."""
    lab = away()
    lab.stop(Logged, Report)
    seat = come(lab, "s")
    stack = stack_of(lab, "s")
    lab.run(SECOND)
    assert stack.session.attempt > 1
    assert seat.stack.phase() == "operational"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"sponsors": -1}, "sponsors -1: from 0 to 16"),
        ({"sponsors": 17}, "sponsors 17: from 0 to 16"),
        ({"join_rounds": 0}, "join_rounds 0: at least 1"),
    ],
)
def test_settings_that_cannot_be(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        GossipSettings(**given)


def test_who_is_away_takes_nobody_in() -> None:
    lab = lab_of("p", "q")
    lab.seats["q"].call(lambda stack, now: stack.disconnect(now))
    come(lab, "s")
    lab.run(SHORT)
    assert joined(lab, "s") == ("few", ["p"])


def test_apply_is_all_that_is_taken_of_who_is_no_member() -> None:
    lab = lab_of("p")
    stranger = MemberId("x", 1)
    lab.seats["p"].call(lambda stack, now: stack.on_frame(now, stranger, Apply(1)))
    lab.run(SHORT)
    assert [member.name for member in stack_of(lab, "p").view().members] == ["p"]


def test_nobody_dies_of_what_sponsors_and_newcomers_might_say() -> None:
    """Twisted frames of the family, to members that wait, members that sponsor, and the logger."""
    lab = away()
    heard: list[Frame] = []

    def carries(_source: str, _to: str, frame: Frame) -> bool:
        heard.extend([frame] if isinstance(frame, SPONSOR_FRAMES) else [])
        return True

    lab.carries = carries
    come(lab, "s")
    lab.run(SECOND)
    lab.restart("log")
    lab.run(SHORT)
    come(lab, "t")
    assert {type(frame) for frame in heard} == set(SPONSOR_FRAMES)
    rng = Random(1)
    known: Any = Union[*SPONSOR_FRAMES]
    for number in range(400):
        told = msgspec.to_builtins(rng.choice(heard), builtin_types=(bytes,))
        twist(rng, told, first=1)
        try:
            lie: Frame = msgspec.convert(told, known)
        except msgspec.ValidationError:
            continue
        seat = lab.seats[rng.choice(sorted(lab.seats))]
        source = lab.seats[rng.choice([name for name in sorted(lab.seats) if name != seat.member.name])]
        seat.hear(source.member, lie)
        if number % 40 == 0:
            lab.run(20 * MILLISECOND)
    lab.run(SECOND)
    send(lab, "p", b"after all")
    assert all(seat.alive for seat in lab.seats.values())
    assert lab.got("q")[-1] == b"after all"


def test_who_a_sponsor_took_in_is_not_ended_by_a_logger_that_it_does_not_report_to() -> None:
    """The sponsor told this one; the newcomer reports to another, which shares what it hears of it."""
    lab = Several(inactive=SECOND)
    lab.run(SECOND)
    sponsor, new = lab.seats["p"].member, MemberId("new")
    lab.seats["l"].call(lambda stack, now: stack.on_frame(now, sponsor, Enroll(new, 1, 0, [])))
    lab.run(100 * MILLISECOND)
    logger = lab.seats["l"].stack
    assert isinstance(logger, Logger)
    row = logger.books.rows.of(new)
    assert row is not None
    assert not row.here
