"""The rules between groups, each with the schedule that breaks a domain without it."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.isis.lab import Lab

from semcast.core.ids import MILLISECOND, MemberId
from semcast.core.messages import batch_of
from semcast.protocols.isis import IsisSettings, Policy
from semcast.protocols.isis.line import Line
from semcast.protocols.isis.order import DomainOrder, Ticket
from semcast.protocols.isis.policies import Conservative, Full
from semcast.protocols.isis.stamps import Foreign, Head
from semcast.protocols.isis.taking import Taking
from semcast.protocols.isis.total import Totals
from semcast.protocols.isis.waits import Waits
from semcast.sim.isis_programs import DomainProcess
from semcast.sim.mutants import isis as mutants

FULL, CONSERVATIVE = Policy.FULL, Policy.CONSERVATIVE


def _answer_overtakes(policy: Policy, kind: type[DomainProcess] = DomainProcess) -> Lab:
    """p asks in a, and q answers in b; the question has not reached r, who is in both."""
    lab = Lab({"a": "pqr", "b": "qr"}, policy, kind)
    lab.hold(lambda _source, dest, group, carries: dest == "r" and group == "a" and carries)
    lab.send("p", "a", "question")
    lab.run(10)
    lab.send("q", "b", "answer")
    lab.run(10)
    return lab


@pytest.mark.parametrize("policy", [FULL, CONSERVATIVE])
def test_figure_4_an_effect_waits_for_its_cause_in_another_group(policy: Policy) -> None:
    lab = _answer_overtakes(policy)
    assert lab.given["q"][0] == "question"
    assert lab.given["r"] == []
    lab.release()
    lab.run(100)
    assert lab.given["r"] == lab.given["q"] == ["question", "answer"]


def test_with_stamps_the_answer_leaves_at_once_and_waits_at_its_receiver() -> None:
    assert _answer_overtakes(FULL).given["q"] == ["question", "answer"]
    assert _answer_overtakes(CONSERVATIVE).given["q"] == ["question"], "r is not known to have it"


@pytest.mark.parametrize("kind", [mutants.OtherGroupsIgnored])
def test_without_the_stamps_the_answer_overtakes(kind: type[DomainProcess]) -> None:
    assert _answer_overtakes(FULL, kind).given["r"] == ["answer"]


def test_what_is_queued_in_another_group_was_not_given_yet() -> None:
    """The question in a waits for something in c, which comes; it is before that in the line."""

    def run(kind: type[DomainProcess]) -> list[str]:
        lab = Lab({"a": "pqr", "b": "qr", "c": "pr"}, FULL, kind)
        lab.hold(lambda _source, dest, group, carries: dest == "r" and group == "c" and carries)
        lab.send("p", "c", "cause")
        lab.send("p", "a", "question")
        lab.run(10)
        lab.send("q", "b", "answer")
        lab.run(10)
        found = list(lab.given["r"])
        lab.release()
        lab.run(100)
        return found + lab.given["r"]

    assert run(DomainProcess) == ["cause", "question", "answer"]
    assert run(mutants.ReadyCountsQueued)[0] == "question"


def test_the_receive_rule_as_printed_is_a_deadlock() -> None:
    """The answer waits for the question; as printed the question waits for the answer, which came first."""
    lab = _answer_overtakes(FULL, mutants.ReceiveRuleAsPrinted)
    lab.release()
    lab.run(1000)
    assert lab.given["r"] == []


def _told_elsewhere(kind: type[DomainProcess]) -> list[str]:
    """q learns of a's message in d and tells p in c; p must say it in b: nobody told r."""
    lab = Lab({"a": "kr", "d": "kq", "c": "pq", "b": "pqr"}, FULL, kind)
    lab.hold(lambda _source, dest, group, carries: dest == "r" and group == "a" and carries)
    lab.send("k", "a", "first")
    for sender, group, name in (("k", "d", "second"), ("q", "c", "third"), ("p", "b", "fourth")):
        lab.run(30)
        lab.send(sender, group, name)
    lab.run(30)
    return lab.given["r"]


def test_what_somebody_said_elsewhere_is_said_again_in_this_group() -> None:
    assert _told_elsewhere(DomainProcess) == []
    assert _told_elsewhere(mutants.StampToldByAProcess) == ["fourth"]
    assert _told_elsewhere(mutants.ActiveAsPrinted) == ["fourth"], "a relay passes on what it is not in"


def _both_crash(kind: type[DomainProcess], **settings: Any) -> Lab:
    """6.5: only q has what p sent; q acts on it in another group, and both crash."""
    lab = Lab({"a": "pqrst", "b": "quv"}, FULL, kind, **settings)
    lab.hold(lambda _source, dest, group, carries: group == "a" and carries and dest in "rst")
    lab.send("p", "a", "cause")
    lab.run(5)
    assert lab.given["q"] == ["cause"]
    lab.send("q", "b", "effect")
    lab.run(5)
    lab.crash("p", "q")
    lab.release()
    lab.run(5000)
    assert {member.name for member in lab.members("r", "a")} == set("rst")
    assert lab.given["r"] == [], "the cause is gone"
    return lab


def test_nobody_acts_in_another_group_on_what_may_vanish() -> None:
    assert _both_crash(DomainProcess).given["u"] == []
    assert _both_crash(mutants.LeavesWithoutWaitingForSafe).given["u"] == ["effect"], "a gap"


def test_resilience_counts_the_sender_among_those_who_have_it() -> None:
    assert _both_crash(DomainProcess, resilience="2").given["u"] == []
    assert _both_crash(mutants.KCountsTheSenderAlone, resilience="2").given["u"] == ["effect"]


def _joiner(kind: type[DomainProcess]) -> Lab:
    """p sends in the first view of r, and then where r is; neither the first nor the view reached r."""
    lab = Lab({"g": "pr", "h": "pq"}, FULL, kind)
    lab.join("r", "h")
    lab.hold(lambda _source, dest, group, _carries: dest == "r" and group == "h")
    for _ in range(40):
        lab.run(20)
        if len(lab.members("p", "h")) == 3:
            break
    lab.send("p", "h", "cause")
    lab.send("p", "g", "effect")
    lab.run(30)
    return lab


@pytest.mark.parametrize("policy", list(Policy))
def test_who_leaves_is_told_that_the_others_go_on_and_does_not_wait_for_silence(policy: Policy) -> None:
    lab = Lab({"g": "pqr", "h": "pr"}, policy, silence=20_000)
    lab.send("r", "g", "last")
    lab.leave("r", "g")
    lab.run(300)
    assert "g" not in lab.at["r"].seats
    assert lab.given["p"] == lab.given["q"] == ["last"]


def _round_a_join(policy: Policy, kind: type[DomainProcess]) -> Lab:
    """q joins k, and `cause`, which comes after something there, waits for that; it is with all of g.

    So r, who heard of it in b, does not speak of it any more in d.
    """
    groups = {"k": "pu", "b": "pr", "g": "pq", "d": "rq"}
    lab = Lab(groups, policy, kind, resilience="0", stamp_age=50 * MILLISECOND)
    lab.send("p", "k", "before")
    lab.run(20)
    lab.hold(lambda source, dest, group, _carries: group == "k" and "q" in (source, dest))
    lab.join("q", "k")
    lab.run(20)
    lab.send("p", "g", "cause")
    lab.run(5)
    lab.send("p", "b", "between")
    lab.run(300)
    assert not lab.at["r"].policy.heard_of()
    lab.send("r", "d", "effect")
    lab.run(50)
    return lab


@pytest.mark.parametrize("policy", [Policy.FULL, Policy.BLOCKS])
def test_what_waits_for_a_join_is_not_overtaken_by_what_says_nothing_of_it(policy: Policy) -> None:
    lab = _round_a_join(policy, DomainProcess)
    assert lab.given["q"] == []
    lab.release()
    lab.run(2000)
    assert lab.given["q"] == ["cause", "effect"]
    assert _round_a_join(policy, mutants.OvertakenWhileItJoins).given["q"] == ["effect"]


def _said_before_a_join(policy: Policy, kind: type[DomainProcess]) -> Lab:
    """r is given `between` when b has gone on with j already, who has not heard what it says of a."""
    lab = Lab({"a": "pj", "b": "pr", "k": "pr"}, policy, kind, resilience="0")
    lab.hold(lambda _source, dest, group, carries: carries and dest + group in ("ja", "rk"))
    lab.send("p", "k", "before")
    lab.run(5)
    lab.send("p", "a", "cause")
    lab.run(5)
    lab.send("p", "b", "between")
    lab.run(5)
    lab.join("j", "b")
    lab.run(500)
    assert [len(lab.members(each, "b")) for each in "prj"] == [3, 3, 3]
    assert lab.given["r"] == []
    lab.let(lambda _source, dest, group, carries: carries and dest + group == "ja")
    lab.run(50)
    assert lab.given["r"] == ["before", "between"]
    lab.send("r", "b", "effect")
    lab.run(50)
    return lab


@pytest.mark.parametrize("policy", [Policy.FULL, Policy.BLOCKS])
def test_who_joins_is_told_what_messages_of_the_view_before_said(policy: Policy) -> None:
    """Full, seed 134: it was said in the group, but before the view in which it joined."""
    lab = _said_before_a_join(policy, DomainProcess)
    assert lab.given["j"] == []
    lab.release()
    lab.run(500)
    assert lab.given["j"] == ["cause", "effect"]


def test_else_it_is_given_the_effect_first() -> None:
    assert _said_before_a_join(Policy.FULL, mutants.ToldBeforeItJoined).given["j"] == ["effect"]


def test_stamps_of_a_group_that_is_joined_wait_for_it() -> None:
    lab = _joiner(DomainProcess)
    assert lab.given["r"] == []
    lab.release()
    lab.run(500)
    assert lab.given["r"] == ["cause", "effect"]
    assert _joiner(mutants.JoinerIgnoresStamps).given["r"] == ["effect"]


def _leaver(kind: type[DomainProcess], policy: Policy = CONSERVATIVE, **settings: Any) -> Lab:
    """q lacks what p was given in h. p leaves h, and sends where q is, too."""
    lab = Lab({"h": "pqrs", "g": "pq"}, policy, kind, silence=300, **settings)
    lab.hold(lambda _source, dest, group, carries: dest == "q" and group == "h" and carries)
    lab.send("r", "h", "cause")
    lab.run(5)
    lab.leave("p", "h")
    lab.run(360)
    assert "h" not in lab.at["p"].seats
    lab.send("p", "g", "effect")
    lab.run(50)
    return lab


def test_leaving_a_group_does_not_end_its_activity() -> None:
    lab = _leaver(DomainProcess)
    assert lab.given["q"] == []
    lab.release()
    lab.run(500)
    assert lab.given["q"] == ["cause", "effect"]
    assert _leaver(mutants.LeaverForgetsActivity).given["q"] == ["effect"]


def _view_change(kind: type[DomainProcess]) -> Lab:
    """r's message is in the cut of a view that r did not survive; p has the next view, and q does not yet."""
    lab = Lab({"h": "pqrs", "g": "pqt"}, CONSERVATIVE, kind)
    lab.hold(lambda _source, dest, group, carries: dest == "q" and group == "h" and carries)
    lab.send("r", "h", "cause")
    lab.run(5)
    lab.crash("r")
    for _ in range(100):
        lab.run(10)
        if len(lab.members("p", "h")) == 3:
            break
    lab.send("p", "g", "effect")
    lab.run(5)
    return lab


def test_the_end_of_a_view_does_not_end_its_activity() -> None:
    lab = _view_change(DomainProcess)
    assert lab.given["q"] == []
    lab.release()
    lab.run(500)
    assert lab.given["q"] == ["cause", "effect"]
    assert _view_change(mutants.ViewChangeEndsActivity).given["q"] == ["effect"]


def _newer_view(kind: type[DomainProcess]) -> Lab:
    """p sends in a view of h that q has not installed, and then in a group that q is in."""
    lab = Lab({"h": "pqrs", "g": "pqt"}, FULL, kind)
    lab.hold(lambda _source, dest, group, carries: dest == "q" and group == "h" and carries)
    lab.send("r", "h", "last")
    lab.run(5)
    lab.crash("r")
    for _ in range(100):
        lab.run(10)
        if len(lab.members("p", "h")) == 3:
            break
    lab.send("p", "h", "cause")
    lab.run(20)
    lab.send("p", "g", "effect")
    lab.run(20)
    assert lab.given["t"] == ["effect"]
    return lab


def test_a_stamp_of_a_newer_view_waits_for_it() -> None:
    lab = _newer_view(DomainProcess)
    assert lab.given["q"] == []
    lab.release()
    lab.run(500)
    assert lab.given["q"] == ["last", "cause", "effect"]
    assert _newer_view(mutants.NewerStampTakenForStale).given["q"] == ["effect"]


def test_an_old_stamp_is_forgotten_once_all_members_of_its_group_have_it() -> None:
    lab = Lab({"a": "pq", "b": "qr"}, FULL, stamp_age=100 * MILLISECOND)
    lab.send("p", "a", "first")
    lab.run(10)
    lab.send("q", "b", "second")
    lab.run(10)
    policy = lab.at["r"].policy
    assert isinstance(policy, Full)
    assert list(policy.known) == ["a"]
    lab.run(300)
    assert policy.known == {}


def test_credit_is_given_back_when_programs_have_taken_messages() -> None:
    lab = Lab({"a": "pq"}, CONSERVATIVE, credit=2)
    lab.hold(lambda source, _dest, _group, _carries: source == "q")
    for number in range(5):
        lab.send("p", "a", f"m{number}")
    lab.run(100)
    assert lab.given["q"] == ["m0", "m1"], "no word of q has come"
    lab.release()
    lab.run(1000)
    assert lab.given["q"] == [f"m{number}" for number in range(5)]


def test_of_two_groups_of_one_name_the_smaller_gives_way() -> None:
    """They were founded by programs that did not hear each other."""
    lab = Lab({"a": "pq"}, CONSERVATIVE, others="r", beacon=1000 * MILLISECOND)
    lab.hold(lambda source, dest, _group, _carries: (source == "r") != (dest == "r"))
    lab.join("r", "a", 1)
    lab.run(1000)
    assert [member.name for member in lab.members("r", "a")] == ["r"]
    lab.held.clear()
    lab.release()
    lab.run(3000)
    assert lab.left == {"p": False, "q": False, "r": True}


@pytest.mark.parametrize(
    ("kind", "others"), [(DomainOrder, [Foreign("g", 1, [(0, 3)])]), (mutants.DroppingOrder, [])]
)
def test_a_purged_message_hands_on_what_it_says_of_other_groups(
    kind: type[DomainOrder], others: list[Foreign]
) -> None:
    sender, me = MemberId("p"), MemberId("q")
    lines: Any = SimpleNamespace(
        append=lambda _batch: None,
        members=(sender, me),
        queued=[0, 0],
        delivered=[0, 0],
        rank=1,
        replaced_upto=lambda _rank: 9,
    )
    tickets: list[Ticket] = []
    taking, member = Taking(me), SimpleNamespace(is_out=False)
    seat: Any = SimpleNamespace(keep=lambda _others: None, serving=None, member=member, taking=taking)
    line: Any = SimpleNamespace(newest=None, add=tickets.append)
    order = kind(lines, 1, 0, seat, line)
    order.skipped(0, 1, msgspec.msgpack.encode(Head([], [Foreign("g", 1, [(0, 3)])])))
    order.lined_up(batch_of(sender, 2, [b"later"]))
    assert list(tickets[0].others) == others
    taking.here[sender] = 8
    assert taking.certain(me, sender) == (0 if kind is DomainOrder else 8), "the ninth may replace it"


def test_messages_in_a_row_have_one_place_in_the_line() -> None:
    sender, me = MemberId("p"), MemberId("q")
    lines: Any = SimpleNamespace(
        append=lambda _batch: None,
        members=(sender, me),
        queued=[0, 0],
        delivered=[0, 0],
        rank=1,
        replaced_upto=lambda _rank: 9,
    )
    taking, member = Taking(me), SimpleNamespace(is_out=False)
    seat: Any = SimpleNamespace(keep=lambda _others: None, serving=None, member=member, taking=taking)
    line = Line({}, Conservative({}, IsisSettings()), Totals({}))
    order = DomainOrder(lines, 1, 0, seat, line)
    order.lined_up(batch_of(sender, 1, [b"1", b"2"]))
    order.lined_up(batch_of(sender, 3, [b"3"]))
    assert [(each.first, each.last) for each in order.waiting[0]] == [(1, 3)]
    order.skipped(0, 4, msgspec.msgpack.encode(Head([], [Foreign("g", 1, [(0, 3)])])))
    order.lined_up(batch_of(sender, 5, [b"5"]))  # says something itself
    order.lined_up(batch_of(me, 1, [b"mine"]))
    order.lined_up(batch_of(sender, 6, [b"6"]))  # something of another member came before it
    assert [(each.first, each.last) for each in order.waiting[0]] == [(1, 3), (5, 5), (6, 6)]
    line.remove(order.waiting[0][0])
    assert len(line) == 3


def test_holders_of_a_message_are_counted_once() -> None:
    rows = [[3, 0], [3, 0], [2, 0]]
    assert Waits.holders(None, rows, 0, 3) == 2  # type: ignore[arg-type]


def test_a_view_counts_as_known_to_all_only_when_all_have_what_came_before_it() -> None:
    """Policy full, seed 2 with clients: the time of a view without messages was forgotten too early."""
    lab = Lab({"a": "pqr"}, FULL, others="s")
    lab.join("s", "a")
    lab.run(500)
    seat, r = lab.at["p"].seats["a"], MemberId("r")
    view = seat.member.next_view - 1
    assert seat.all_have(view, [])
    seat.past, seat.spoke[r] = [(view - 1, frozenset({seat.me, r}))], view - 1
    assert not seat.all_have(view, []), "r may still be in the view before"
    seat.heard(r, view)
    assert seat.all_have(view, [])


def test_a_flush_returns_when_all_were_given_what_its_program_was_given() -> None:
    def returned(kind: type[DomainProcess]) -> list[bool]:
        lab = Lab({"a": "pqr"}, FULL, kind)
        lab.hold(lambda _source, dest, _group, carries: dest == "r" and carries)
        lab.send("p", "a", "news")
        lab.run(10)
        process = lab.at["q"]
        process.flush()
        process.settle(lab.now)
        lab.run(50)
        found = [not process.program.flushes]
        lab.release()
        lab.run(500)
        return [*found, not process.program.flushes]

    assert returned(DomainProcess) == [False, True]
    assert returned(mutants.FlushedWhenSent) == [True, True]
