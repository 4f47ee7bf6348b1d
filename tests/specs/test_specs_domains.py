"""The checkers of causal domains, by hand: each lets sound histories pass and catches what breaks it."""

import msgspec
import pytest
from tests.specs.domain_scripts import domain, statuses, violated

from semcast.core import Item, MemberId
from semcast.history import Event
from semcast.history.schema import kind_named
from semcast.history.wellformed import problem
from semcast.specs import DOMAINS, Status, check

FIGURE_4 = """
p: Va1=ps a>1 a<p1
s: Va1=ps Vd1=sq a<p1 d>1 d<s1
q: Vd1=sq Vb1=qr d<s1 b>1 b<q1
r: Vb1=qr b<q1
"""

_ONE, _CLIENT = "Va1=p/client-server1", "Ca1=p/client-server1"
SOUND = [
    FIGURE_4,
    # Runs, cut as each process likes.
    "p: Va1=pq Vb1=pq a>1-4 a<p1-4 b>1 b<p1\nq: Va1=pq Vb1=pq a<p1-2 a<p3-4 b<p1",
    # A replacement is as good, also when it comes later than the effect.
    "p: Va1=pq Vb1=pq a>1:x a<p1 b>1 b<p1 a>2:x a<p2\nq: Va1=pq Vb1=pq b<p1 a<p2",
    # Who crashed owes nothing.
    "p: Va1=pqr Vb1=pq a>1 a<p1 b>1 b<p1 Va2=pq Vb2=pq\n"
    "q: Va1=pqr Vb1=pq a<p1 b<p1 Va2=pq Vb2=pq\nr: Va1=pqr crash",
    # A direct message, and what comes after it.
    "p: Va1=pq Vb1=pq a>1@q b>1 b<p1\nq: Va1=pq Vb1=pq a<p1@ b<p1",
    # Left one group, and in it again.
    "p: Va1=pq Vb1=pq a>1 a<p1 Va2=p Va3=pq\nq: Va1=pq Vb1=pq a<p1 -a Va3=pq",
    # Orders that agree.
    "p: Va1=pq Vb1=pq a>1 a<p1^ b<q1^\nq: Va1=pq Vb1=pq b>1 a<p1^ b<q1^",
    "p: Va1=pq t10 a>1 a<p1 F1? t20 F1.\nq: Va1=pq t15 a<p1",
    "p: full Va1=pq Vb1=pr a>1#2b2 a<p1\nq: conservative Va1=pq a<p1\nr: Vb1=pr",
    "p: blocks Va1=pq Vb1=pr b>1#2a2c2 b<p1\nq: Va1=pq Vc1=qr\nr: Vb1=pr Vc1=qr b<p1",
    # A client is given what is for it, may begin late, and what replaced something counts.
    f"p: {_ONE} a>1%c a<p1 a>2 a<p2 a>3%d a<p3 a>4%c a<p4 a<c1\nc: {_CLIENT} a<p1 a<p4 a>1~",
    "p: Va1=p/diffusion1 a>1 a<p1 a>2:x a<p2 a>3:x a<p3\nc: Ca1=p/diffusion1 a<p1 a<p3",
    "p: Va1=p/diffusion1 a>1 a<p1 a>2 a<p2\nc: Ca1=p/diffusion1 a<p2",
    # Who left, or was put out, is owed nothing more.
    "p: Va1=p/diffusion1 a>1 a<p1 a>2 a<p2\nc: Ca1=p/diffusion1 a<p1 -a",
    f"p: {_ONE} Vb1=pc a>1%c a<p1 a>2%c a<p2 b>3 b<p3\nc: {_CLIENT} Vb1=pc a<p1 b<p3 !a",
]


@pytest.mark.parametrize("script", SOUND)
def test_sound_histories_pass(script: str) -> None:
    assert statuses(domain(script)) == dict.fromkeys(DOMAINS, Status.HOLDS)


BROKEN = [
    # The effect in b before its cause in a (6.1).
    (
        "domain_causal_delivery",
        1,
        "p: Va1=pq Vb1=pq a>1 a<p1 b>1 b<p1\nq: Va1=pq Vb1=pq b<p1 a<p1",
    ),
    # Through a third process that is in neither of both groups together with q.
    (
        "domain_causal_delivery",
        1,
        "p: Va1=pqr a>1 a<p1\nr: Va1=pqr Vb1=rs a<p1 b>1 b<r1\ns: Vb1=rs Vc1=qs b<r1 c>1 c<s1\n"
        "q: Va1=pqr Vc1=qs c<s1 a<p1",
    ),
    # A run, of which two come too late.
    (
        "domain_causal_delivery",
        2,
        "p: Va1=pq Vb1=pq a>1-3 a<p1-3 b>1 b<p1\nq: Va1=pq Vb1=pq a<p1 b<p1 a<p2-3",
    ),
    # A direct message that is overtaken (7.2).
    (
        "domain_causal_delivery",
        1,
        "p: Va1=pq Vb1=pq a>1@q b>1 b<p1\nq: Va1=pq Vb1=pq b<p1 a<p1@",
    ),
    # Given before it was sent.
    ("domain_causal_delivery", 2, "p: Va1=pq a<p1 a>1\nq: Va1=pq a<p1"),
    # The order of sending is the order of one process over all groups.
    (
        "domain_causal_delivery",
        1,
        "p: Va1=pq Vb1=pq a>1 b>1 a<p1 b<p1\nq: Va1=pq Vb1=pq b<p1 a<p1",
    ),
    # A direct message that never comes.
    (
        "domain_causal_completeness",
        1,
        "p: Va1=pq Vb1=pq a>1@q b>1 b<p1\nq: Va1=pq Vb1=pq b<p1",
    ),
    # One after the other was put out of a only.
    ("domain_one_fate", 1, "p: Va1=pq Vb1=pq\nq: Va1=pq Vb1=pq !a b>1"),
    ("domain_one_fate", 2, "p: Va1=pq\nq: Va1=pq !a Vb1=q F1?"),
    # The paper's other cycle: no two processes disagree, three groups do (6.2).
    (
        "domain_total_order",
        3,
        "p: Va1=pr Vb1=pq a>1 a<p1^ b<q1^\nq: Vb1=pq Vc1=qr b>1 b<q1^ c<r1^\n"
        "r: Vc1=qr Va1=pr c>1 c<r1^ a<p1^",
    ),
    (
        "domain_total_order",
        3,
        "p: Va1=pq Vb1=pq a>1-2 a<p1-2^ b<q1^\nq: Va1=pq Vb1=pq b>1 b<q1^ a<p1-2^",
    ),
    # q has it only after the flush has returned (7.3), or never did.
    ("domain_flush", 1, "p: Va1=pq t10 a>1 a<p1 F1? t20 F1.\nq: Va1=pq t25 a<p1"),
    ("domain_flush", 1, "p: Va1=pq t10 a>1@q F1? t20 F1.\nq: Va1=pq t25 a<p1@"),
    (
        "domain_flush",
        1,
        "p: Va1=pq t10 a>1:x a<p1 F1? t20 F1. t30 a>2:x a<p2\nq: Va1=pq t40 a<p2",
    ),
    # Also what another had sent, in another group.
    (
        "domain_flush",
        1,
        "p: Va1=pqr t10 a<q1 F1? t20 F1.\nq: Va1=pqr t5 a>1 a<q1\nr: Va1=pqr t21 a<q1",
    ),
    ("stamp_bound", 1, "p: conservative Va1=pq Vb1=p a>1#2b1 a<p1\nq: Va1=pq a<p1"),
    ("stamp_bound", 1, "p: full Va1=pq a>1#3 a<p1\nq: Va1=pq a<p1"),
    ("stamp_bound", 1, "p: epochs Va1=pq a>1#2c1 a<p1\nq: Va1=pq a<p1\nr: Vc1=r"),
    # A chain of groups has no block.
    (
        "stamp_bound",
        1,
        "p: blocks Va1=pq a>1#2c1 a<p1\nq: Va1=pq Vb1=qr a<p1\nr: Vb1=qr Vc1=r",
    ),
    ("stamp_bound", 1, "p: full Va1=pq Vb1=p a>1#1b2 a<p1\nq: Va1=pq a<p1"),
    ("stamp_bound", 1, "p: full Va1=pqr/diffusion1 a>1#2 a<p1\nq: Va1=pqr a<p1\nr: Va1=pqr a<p1"),
    ("stamp_bound", 1, "p: full Va1=pqr/client-server1 a>1#5 a<p1\nq: Va1=pqr a<p1\nr: Va1=pqr a<p1"),
    # A client in a view; views out of order (7.4).
    ("client_views", 2, "p: Va1=pc/diffusion2\nc: Ca1=pc/diffusion2"),
    ("client_views", 1, "p: Va1=p/diffusion1\nc: Ca2=p/diffusion1 Ca1=p/diffusion1"),
    # What a client sends is given twice, out of order, by some, by nobody (7.1).
    ("client_agreement", 1, f"p: {_ONE} a<c1 a<c1\nc: {_CLIENT} a>1~"),
    ("client_agreement", 1, f"p: {_ONE} a<c2 a<c1\nc: {_CLIENT} a>1~ a>2~"),
    ("client_agreement", 1, f"p: {_ONE}\nc: {_CLIENT} a>1~"),
    (
        "client_agreement",
        2,
        "p: Va1=pq/client-server2 Va2=pqr/client-server3\n"
        "q: Va1=pq/client-server2 a<c1 Va2=pqr/client-server3\nr: Va2=pqr/client-server3\n"
        "c: Ca1=pq/client-server2 a>1~",
    ),
    # A client with a gap, in its group and because of another one; and with an end that is missing.
    (
        "client_completeness",
        1,
        "p: Va1=p/diffusion1 a>1 a<p1 a>2 a<p2 a>3 a<p3\nc: Ca1=p/diffusion1 a<p1 a<p3",
    ),
    (
        "client_completeness",
        1,
        f"p: {_ONE} Vb1=pc a>1%c a<p1 a>2%c a<p2 b>3 b<p3\nc: {_CLIENT} Vb1=pc a<p1 b<p3",
    ),
    ("client_completeness", 1, "p: Va1=p/diffusion1 a>1 a<p1 a>2 a<p2\nc: Ca1=p/diffusion1 a<p1"),
    # The effect comes before the cause at a client.
    (
        "domain_causal_delivery",
        1,
        "p: Va1=p/diffusion1 Vb1=pc a>1 a<p1 b>2 b<p2\nc: Ca1=p/diffusion1 Vb1=pc b<p2 a<p1",
    ),
    # Of one group alone.
    ("domain_groups", 1, "p: Va1=pq a>1 a<p1\nq: Va1=pq"),
    ("domain_groups", 1, "p: Va1=pq a>1-2 a<p1-2 Vb1=p\nq: Va1=pq a<p2 a<p1"),
]


@pytest.mark.parametrize(("name", "count", "script"), BROKEN)
def test_each_catches_what_breaks_it(name: str, count: int, script: str) -> None:
    found = violated(domain(script))
    assert name in found
    assert found[name].count == count
    assert found[name].offending
    assert found[name].detail


def test_what_comes_late_in_one_group_is_broken_twice_and_nothing_else() -> None:
    script = "p: Va1=pq Vb1=pq a>1 a<p1 b>1 b<p1\nq: Va1=pq Vb1=pq b<p1 a<p1"
    assert set(violated(domain(script))) == {"domain_causal_delivery"}


INCOMPLETE = """
p: Va1=pqr Vb1=pq a>1 a<p1 b>1 b<p1 crash
q: Va1=pqr Vb1=pq b<p1 Va2=qr Vb2=q
r: Va1=pqr Va2=qr
"""


def test_a_cause_that_is_lost_is_missing_at_who_was_given_the_effect_and_at_the_others() -> None:
    found = violated(domain(INCOMPLETE))
    assert set(found) == {"domain_causal_completeness", "no_causal_gap"}
    assert found["domain_causal_completeness"].count == 1
    assert found["no_causal_gap"].count == 2


SECTION_6_5 = """
p: Va1=pqstu a>1 a<p1 crash
q: Va1=pqstu Vb1=qrv a<p1 b>1 b<q1 crash
r: Vb1=qrv b<q1 Vb2=rv
s: Va1=pqstu Va2=stu
t: Va1=pqstu Va2=stu
u: Va1=pqstu Va2=stu
v: Vb1=qrv b<q1 Vb2=rv
"""


def test_section_6_5_both_crash_and_the_cause_is_gone_though_nobody_has_both() -> None:
    found = violated(domain(SECTION_6_5))
    assert set(found) == {"no_causal_gap"}
    assert "s has neither (p,1) of a" in found["no_causal_gap"].detail
    assert "r was given (q,1) of b" in found["no_causal_gap"].detail


def test_with_a_resilience_a_gap_is_broken_if_no_more_failed_than_that() -> None:
    for resilience, broken in ((0, False), (1, False), (2, True), (3, True)):
        history = domain(SECTION_6_5.replace("r: ", f"r: full{resilience} "))
        [verdict] = check(history, ["no_causal_gap"])
        assert (verdict.status is Status.VIOLATED) == broken
        assert bool(verdict.note) != broken


def test_an_effect_that_nobody_has_who_goes_on_asks_for_nothing() -> None:
    gone = SECTION_6_5.replace("b<q1 Vb2=rv", "b<q1 crash")
    assert violated(domain(gone)) == {}


def test_before_the_run_is_over_what_may_still_come_is_not_missing() -> None:
    script = "p: Va1=pq Vb1=pq a>1 a<p1 b>1 b<p1\nq: Va1=pq Vb1=pq b<p1"
    assert "domain_causal_completeness" in violated(domain(script))
    assert violated(domain(script, quiesced=False)) == {}


def test_who_left_a_group_owes_nothing_more_there() -> None:
    script = "p: Va1=pq Vb1=pq a>1 a<p1 b>1 b<p1 Va2=p\nq: Va1=pq Vb1=pq -a b<p1"
    assert violated(domain(script)) == {}


def test_a_recording_that_is_cut_off_leaves_what_rests_on_it_unknown() -> None:
    script = "p: Va1=pq Vb1=pq a>1 a<p1\nq: Va1=pq Vb1=pq a<p1 b<p1"
    found = statuses(domain(script, cut_off="p"))
    assert found["domain_causal_delivery"] is Status.UNKNOWN
    assert found["domain_causal_completeness"] is Status.UNKNOWN
    assert found["no_causal_gap"] is Status.UNKNOWN
    assert found["domain_one_fate"] is Status.HOLDS
    # What is broken anyway is broken.
    broken = "p: Va1=pq Vb1=pq a>1 a<p1 b>1 b<p1\nq: Va1=pq Vb1=pq b<p1 a<p1 b<p2"
    found = statuses(domain(broken, cut_off="p"))
    assert found["domain_causal_delivery"] is Status.VIOLATED


def test_without_views_or_with_circles_nothing_can_be_told() -> None:
    assert statuses(domain("p: a>1 a<p1"))["domain_causal_delivery"] is Status.UNKNOWN
    circle = "p: Va1=pq a>1:{q1} a<p1 a<q1\nq: Va1=pq a>1:{p1} a<p1 a<q1"
    assert statuses(domain(circle))["no_causal_gap"] is Status.UNKNOWN
    early = "p: Va1=pq a<q1 a>1 a<p1\nq: Va1=pq a<p1 a>1 a<q1"
    found = {each.property: each for each in check(domain(early), list(DOMAINS))}
    assert found["domain_causal_delivery"].count == 4
    assert found["domain_causal_completeness"].detail == "precedence runs in a circle"


def test_a_flush_of_live_programs_is_not_judged_by_their_clocks() -> None:
    script = "p: Va1=pq t10 a>1 a<p1 F1? t20 F1.\nq: Va1=pq t25 a<p1"
    [verdict] = check(domain(script, seed=None), ["domain_flush"])
    assert verdict.status is Status.UNKNOWN
    [verdict] = check(domain("p: Va1=p", seed=None), ["domain_flush"])
    assert verdict.status is Status.HOLDS


def test_stamps_without_a_policy_are_not_judged() -> None:
    assert statuses(domain("p: Va1=p Vb1=p a>1#1b1 a<p1"))["stamp_bound"] is Status.UNKNOWN


P = MemberId("p")
TEXT = Item('{"group": "a"}')


@pytest.mark.parametrize(
    ("kind", "columns", "said"),
    [
        ("dom-began", {"level": "lazy"}, "unknown policy"),
        ("dom-view", {"view": 1, "annotation": TEXT}, "without members"),
        ("dom-view", {"view": 1, "members": (P,)}, "of no group"),
        ("dom-view", {"view": 1, "members": (P,), "annotation": Item("{")}, "cannot be read"),
        (
            "dom-view",
            {"view": 1, "members": (P,), "annotation": Item('{"group":"a","style":"odd"}')},
            "unknown style",
        ),
        ("dom-sent", {"sender": P, "seq": 1, "count": 1, "annotation": TEXT}, "in no view"),
        ("dom-sent", {"sender": P, "seq": 0, "count": 1, "view": 1, "annotation": TEXT}, "of no messages"),
        (
            "dom-sent",
            {"sender": P, "seq": 1, "count": 1, "view": 1, "annotation": TEXT, "members": (P,)},
            "a direct message is for one member",
        ),
        (
            "dom-sent",
            {"sender": P, "seq": 1, "count": 2, "view": 1, "annotation": Item('{"group":"a","item":"x"}')},
            "speaks for one message",
        ),
        (
            "dom-given",
            {"sender": P, "seq": 1, "count": 1, "level": "odd", "annotation": TEXT},
            "in the order",
        ),
        ("dom-flush", {"seq": 1}, "neither asked for nor returned"),
        ("dom-left", {}, "of no group"),
    ],
)
def test_rows_that_cannot_be_are_refused(kind: str, columns: dict[str, object], said: str) -> None:
    event = msgspec.structs.replace(Event(P, 0, 0, kind_named(kind), "floor"), **columns)
    assert said in (problem(event) or "")
