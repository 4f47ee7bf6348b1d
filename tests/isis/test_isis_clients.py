"""Groups with clients (1991, 2, 7.1 and 7.4): what they are given, and the schedule that breaks each rule."""

from collections.abc import Callable

import pytest
from tests.isis.lab import Lab

from semcast.core.ids import MemberId
from semcast.history import History
from semcast.protocols.isis import Policy
from semcast.protocols.isis.client_frames import Came, Gone, Roll
from semcast.protocols.isis.roster import Roster
from semcast.protocols.isis.styles import Style
from semcast.protocols.lightweight.sessions import Refused
from semcast.sim.isis_programs import DomainProcess
from semcast.sim.isis_scenario import IsisVariant
from semcast.sim.mutants import isis_clients as mutants
from semcast.sim.swarm import report
from semcast.specs import check

POLICIES = pytest.mark.parametrize("policy", list(Policy))
QUOTES = {"g": "diffusion"}
ORDERS = {"g": "client-server"}


def _broken(lab: Lab) -> set[str]:
    history: History = lab.history()
    return {verdict.property for verdict in check(history) if verdict.count}


@POLICIES
def test_clients_of_a_diffusion_group_are_given_everything_in_causal_order(policy: Policy) -> None:
    lab = Lab({"g": "abc"}, policy, others="xy", styles=QUOTES)
    lab.visit("x", "g")
    lab.visit("y", "g")
    lab.run(300)
    lab.send("a", "g", "one")
    lab.run(50)
    lab.send("b", "g", "two")
    lab.run(100)
    assert [lab.given[each] for each in "abcxy"] == [["one", "two"]] * 5
    assert {member.name for member in lab.members("a", "g")} == set("abc"), "clients are in no view"
    assert lab.views["a"] == 1, "and change none"
    assert not _broken(lab)


@POLICIES
def test_a_client_sends_to_all_servers_and_one_of_them_answers_it(policy: Policy) -> None:
    lab = Lab({"g": "ab"}, policy, others="xy", styles=ORDERS)
    lab.visit("x", "g")
    lab.visit("y", "g")
    lab.run(300)
    lab.send("x", "g", "buy")
    lab.run(100)
    lab.send("a", "g", "bought", to="x")
    lab.run(50)
    lab.send("b", "g", "noted")
    lab.run(100)
    assert lab.given["a"] == lab.given["b"] == ["buy", "bought", "noted"]
    assert lab.given["x"] == ["bought"]
    assert lab.given["y"] == []
    assert not _broken(lab)


def _contact_fails(kind: type[DomainProcess] = DomainProcess) -> Lab:
    """The contact of x, which is a, fails with something that it has not passed on."""
    lab = Lab({"g": "abc"}, Policy.FULL, kind, others="x", styles=QUOTES, silence=300)
    lab.visit("x", "g")
    lab.run(300)
    lab.send("b", "g", "one")
    lab.run(100)
    lab.hold(lambda source, dest, _group, _carries: source == "a" and dest == "x")
    lab.send("c", "g", "two")
    lab.run(20)
    lab.crash("a")
    lab.release()
    lab.run(2000)
    lab.send("b", "g", "three")
    lab.run(200)
    return lab


def test_another_server_goes_on_where_the_contact_of_a_client_failed() -> None:
    lab = _contact_fails()
    assert lab.given["x"] == ["one", "two", "three"]
    assert not _broken(lab)


def test_without_what_the_client_has_it_goes_on_with_a_gap() -> None:
    lab = _contact_fails(mutants.ClientStampWithoutD)
    assert lab.given["x"] == ["one", "three"]
    assert "client_completeness" in _broken(lab)


def _server_changes_the_group(policy: Policy, kind: type[DomainProcess] = DomainProcess) -> Lab:
    """x is a client of g and a peer of a in h, and has not received what a said in g before."""
    lab = Lab({"g": "ab", "h": "ax"}, policy, kind, styles=QUOTES)
    lab.visit("x", "g")
    lab.run(300)
    lab.hold(lambda _source, dest, group, _carries: dest == "x" and group == "g")
    lab.send("a", "g", "cause")
    lab.run(20)
    lab.send("a", "h", "effect")
    lab.run(20)
    return lab


@POLICIES
def test_who_changes_the_group_waits_for_its_clients(policy: Policy) -> None:
    lab = _server_changes_the_group(policy)
    assert lab.given["x"] == []
    lab.release()
    lab.run(100)
    assert lab.given["x"] == ["cause", "effect"]
    assert not _broken(lab)


def test_without_that_the_effect_overtakes() -> None:
    lab = _server_changes_the_group(Policy.FULL, mutants.ClientsNotWaitedFor)
    assert lab.given["x"] == ["effect"]
    lab.release()
    lab.run(100)
    assert "domain_causal_delivery" in _broken(lab)


@POLICIES
def test_a_client_that_changes_the_group_waits_for_servers_and_clients(policy: Policy) -> None:
    """x heard of something in g that y, who is a client, too, has not; both are in h."""
    lab = Lab({"g": "ab", "h": "xy"}, policy, styles=QUOTES)
    lab.visit("x", "g")
    lab.visit("y", "g")
    lab.run(300)
    lab.hold(lambda _source, dest, group, _carries: dest == "y" and group == "g")
    lab.send("a", "g", "cause")
    lab.run(50)
    assert lab.given["x"] == ["cause"]
    lab.send("x", "h", "effect")
    lab.run(50)
    assert lab.given["y"] == []
    lab.release()
    lab.run(200)
    assert lab.given["y"] == ["cause", "effect"]
    assert not _broken(lab)


def _sends_again(kind: type[DomainProcess] = DomainProcess) -> Lab:
    """The contact of x multicasts what it sends, fails, and x does not know that."""
    lab = Lab({"g": "abc"}, Policy.FULL, kind, others="x", styles=ORDERS, silence=300)
    lab.visit("x", "g")
    lab.run(300)
    lab.hold(lambda source, dest, _group, _carries: source == "a" and dest == "x")
    lab.send("x", "g", "buy")
    lab.run(50)
    assert lab.given["b"] == ["buy"]
    lab.crash("a")
    lab.release()
    lab.run(2000)
    return lab


def test_what_a_client_sends_again_is_given_once() -> None:
    lab = _sends_again()
    assert lab.given["b"] == lab.given["c"] == ["buy"]
    assert not _broken(lab)


def test_relayed_twice_it_is_given_twice() -> None:
    lab = _sends_again(mutants.RelayedTwice)
    assert lab.given["b"] == ["buy", "buy"]
    assert "client_agreement" in _broken(lab)


def _flushes(kind: type[DomainProcess] = DomainProcess, *, contact_fails: bool = False) -> list[bool]:
    """x was given what c has not; whether its flush has returned before c is given it, and after."""
    lab = Lab({"g": "abc"}, Policy.FULL, kind, others="x", styles=QUOTES, silence=300)
    lab.visit("x", "g")
    lab.run(300)
    lab.hold(lambda _source, dest, _group, carries: dest == "c" and carries)
    lab.send("b", "g", "news")
    lab.run(10)
    assert [lab.given[each] for each in "xc"] == [["news"], []]
    process = lab.at["x"]
    process.flush()
    process.settle(lab.now)
    lab.run(50)
    found = [not process.program.flushes]
    if contact_fails:
        lab.crash("a")
    lab.release()
    lab.run(2000)
    assert lab.given["c"] == ["news"]
    return [*found, not process.program.flushes]


def test_the_flush_of_a_client_waits_until_all_servers_were_given_what_it_was_given() -> None:
    assert _flushes() == [False, True]
    assert _flushes(contact_fails=True) == [False, True], "the next contact is asked again"
    assert _flushes(mutants.ClientFlushedAtOnce) == [True, True]


@pytest.mark.parametrize("style", ["diffusion", "client-server"])
def test_the_contact_asks_again_what_servers_took(style: str) -> None:
    """What c said of that is lost, and nobody sends anything more."""
    lab = Lab({"g": "abc"}, Policy.CONSERVATIVE, others="x", styles={"g": style})
    lab.visit("x", "g")
    lab.run(300)
    contact = lab.at["x"].clientele.visits["g"].contact
    assert contact == MemberId("a")
    lab.hold(lambda source, dest, _group, carries: source + dest == "ca" and not carries)
    lab.send(*(("b", "g", "news") if style == "diffusion" else ("x", "g", "buy")))
    lab.run(100)
    assert lab.given["c"] == lab.given["b"] != []
    process = lab.at["x"]
    process.flush()
    process.settle(lab.now)
    lab.run(50)
    assert process.program.flushes
    lab.held.clear()
    lab.release()
    lab.run(2000)
    assert not process.program.flushes


def test_a_client_that_lost_touch_goes_on_with_the_same_contact() -> None:
    """Nothing else came for x meanwhile: its contact has to say that x is served again."""
    lab = Lab({"g": "a"}, Policy.FULL, others="x", styles=ORDERS, silence=300)
    lab.visit("x", "g")
    lab.run(300)
    lab.hold(lambda source, dest, _group, _carries: source == "a" and dest == "x")
    lab.run(400)
    lab.send("x", "g", "buy")
    lab.release()
    lab.run(1000)
    assert lab.given["a"] == ["buy"]
    assert not lab.left["x"]


def test_a_client_leaves_when_all_servers_were_given_what_it_was_given() -> None:
    """A flush that comes later could ask nobody (policy full, seed 2)."""
    lab = Lab({"g": "abc", "h": "bcd"}, Policy.FULL, others="x", styles=QUOTES)
    lab.visit("x", "g")
    lab.run(300)
    lab.hold(lambda _source, dest, group, carries: dest == "c" and carries and group == "h")
    lab.send("d", "h", "cause")
    lab.run(50)
    lab.send("b", "g", "news")
    lab.run(50)
    assert [lab.given[each] for each in "xc"] == [["news"], []], "it waits in the line of c"
    lab.leave("x", "g")
    lab.run(100)
    assert "g" in lab.at["x"].clientele.visits
    lab.release()
    lab.run(500)
    assert lab.given["c"] == ["cause", "news"]
    assert "g" not in lab.at["x"].clientele.visits


def _orphan(kind: type[DomainProcess] = DomainProcess) -> Lab:
    """The contact of x fails before it has passed on what b said; then b speaks to x in another group."""
    lab = Lab({"g": "abc", "h": "bx"}, Policy.FULL, kind, styles=QUOTES, silence=300)
    lab.visit("x", "g")
    lab.run(300)
    lab.hold(lambda source, dest, group, _carries: dest == "x" and group == "g" and source in "abc")
    lab.send("b", "g", "cause")
    lab.run(20)
    lab.crash("a")
    lab.run(700)
    lab.send("b", "h", "effect")
    lab.run(50)
    return lab


def test_a_client_without_contact_is_waited_for() -> None:
    lab = _orphan()
    assert lab.given["x"] == []
    lab.release()
    lab.run(2000)
    assert lab.given["x"] == ["cause", "effect"]
    assert not _broken(lab)


def test_forgotten_it_is_told_the_effect_first() -> None:
    lab = _orphan(mutants.OrphansForgotten)
    assert lab.given["x"] == ["effect"]


@POLICIES
def test_a_client_that_says_nothing_holds_up_nobody_for_long(policy: Policy) -> None:
    lab = Lab({"g": "ab", "h": "ab"}, policy, others="x", styles=QUOTES, silence=300)
    lab.visit("x", "g")
    lab.run(300)
    lab.crash("x")
    lab.send("a", "g", "one")
    lab.send("a", "h", "two")
    lab.run(1500)
    assert lab.given["b"] == ["one", "two"]


@POLICIES
def test_clients_leave_and_come_again(policy: Policy) -> None:
    lab = Lab({"g": "ab"}, policy, others="x", styles=QUOTES)
    lab.visit("x", "g")
    lab.run(300)
    lab.send("a", "g", "one")
    lab.run(100)
    lab.leave("x", "g")
    lab.run(300)
    assert "g" not in lab.at["x"].clientele.visits
    lab.send("a", "g", "two")
    lab.run(100)
    lab.visit("x", "g")
    lab.run(300)
    lab.send("a", "g", "three")
    lab.run(100)
    assert lab.given["x"] == ["one", "three"]
    assert not _broken(lab)


def test_clients_without_servers_wait_and_are_served_when_some_come() -> None:
    """Everybody has left but the client, which had been given something: it comes back as another one."""
    lab = Lab({"g": "ab"}, Policy.CONSERVATIVE, others="xc", styles=QUOTES, silence=300)
    lab.visit("x", "g")
    lab.run(300)
    lab.send("a", "g", "one")
    lab.run(100)
    lab.leave("a", "g")
    lab.leave("b", "g")
    lab.run(3000)
    assert lab.left["x"], "it was put out, and its program comes back as another incarnation"


@POLICIES
def test_clients_whose_servers_have_all_left_are_given_what_has_come(policy: Policy) -> None:
    """x waits to hear that all have what it was given, and nobody is left who could say so."""
    lab = Lab({"g": "ab", "h": "xy"}, policy, styles=QUOTES)
    lab.visit("x", "g")
    lab.run(300)
    lab.hold(lambda source, _dest, group, carries: carries and source + group == "xg")
    lab.send("a", "g", "one")
    lab.run(50)
    lab.send("x", "h", "effect")
    lab.run(5)
    lab.send("a", "g", "two")
    lab.run(50)
    assert lab.given["x"] == ["one"], "it pauses"
    for letter in "ab":
        lab.at[letter].leave(lab.now)
        lab._drain(letter)
    lab.run(500)
    assert [lab.at[letter].phase() for letter in "ab"] == ["left", "left"]
    assert lab.given["y"] == ["effect"]
    assert lab.given["x"] == ["one", "two", "effect"]
    assert not lab.left["x"]
    assert not _broken(lab)


def _waits_for_a_barrier(kind: type[DomainProcess], follows: str) -> Lab:
    """x waits for the epoch of `second` in h; behind it there comes a view, or a message of a lower epoch."""
    lab = Lab({"g": "abc", "h": "ax"}, Policy.EPOCHS, kind, styles=QUOTES, resilience="0")
    lab.visit("x", "g")
    lab.run(300)
    held = ("xh", "bg") if follows == "third" else ("xh",)
    lab.hold(lambda source, dest, group, _carries: source == "a" and dest + group in held)
    lab.send("a", "h", "first")
    lab.run(5)
    lab.send("a", "g", "second")
    lab.run(5)
    if follows == "view":
        lab.leave("c", "g")
    else:
        lab.send("b", "g", "third")
    lab.run(50)
    return lab


@pytest.mark.parametrize("follows", ["view", "third"])
def test_an_epoch_does_not_wait_for_what_comes_behind_it_in_its_group(follows: str) -> None:
    """Epochs, seeds 5 and 19: a client waited for ever, and so did all who waited for it."""
    for kind in (DomainProcess, mutants.EpochsAgainstThePipe):
        lab = _waits_for_a_barrier(kind, follows)
        assert "second" not in lab.given["x"]
        lab.release()
        lab.run(1000)
        whole = kind is DomainProcess
        if follows == "view":
            assert lab.given["x"] == (["first", "second"] if whole else ["first"])
        else:
            assert lab.given["x"] == (["third", "first", "second"] if whole else ["first"])
        assert not whole or not _broken(lab)


@POLICIES
def test_a_server_leaves_although_clients_have_sent_what_it_has_not_multicast(policy: Policy) -> None:
    """Epochs, seed 40: leaving waited for that, and that for leaving. They send it to another contact."""
    lab = Lab({"g": "abc", "h": "abc"}, policy, others="x", styles=ORDERS, silence=300, credit=1)
    lab.visit("x", "g")
    lab.run(300)
    contact = lab.at["x"].clientele.visits["g"].contact
    assert contact is not None
    lab.hold(lambda source, _dest, group, _carries: source == "c" and group == "g")
    lab.send(contact.name, "g", "one")
    lab.run(5)
    lab.send("x", "g", "buy")
    lab.run(5)
    seat = lab.at[contact.name].seats["g"]
    assert seat.serving is not None
    assert seat.serving.outgoing, "it waits for credit: c has not taken what came before"
    lab.leave(contact.name, "g")
    lab.run(5)
    lab.release()
    lab.run(3000)
    assert "g" not in lab.at[contact.name].seats
    for letter in {"a", "b", "c"} - {contact.name}:
        assert lab.given[letter] == ["one", "buy"]
    assert not _broken(lab)


def _reads_while_it_leaves(kind: type[DomainProcess]) -> Lab:
    """c has `cause` in its line when it leaves, and a client of g, with which it is in h, lacks it."""
    groups = {"g": "abc", "h": "cx", "k": "bc"}
    lab = Lab(groups, Policy.FULL, kind, styles=QUOTES, silence=300, resilience="0")
    lab.visit("x", "g")
    lab.run(300)
    lab.hold(lambda _source, dest, group, carries: carries and dest + group in ("ck", "xg"))
    lab.send("b", "k", "before")
    lab.run(1)
    lab.send("b", "g", "cause")
    lab.run(1)
    lab.hold(
        lambda source, dest, group, carries: source + group == "cg" or (carries and dest + group == "xg")
    )
    lab.leave("c", "g")
    lab.run(1)
    lab.let(lambda _source, dest, group, carries: carries and dest + group == "xg")
    lab.run(500)
    assert "g" not in lab.at["c"].seats
    lab.send("c", "h", "effect")
    lab.run(100)
    return lab


def test_who_leaves_a_group_with_clients_is_given_nothing_more_of_it() -> None:
    lab = _reads_while_it_leaves(DomainProcess)
    assert lab.given["c"] == ["before", "effect"]
    lab.release()
    lab.run(500)
    assert not _broken(lab)


def test_else_its_clients_may_be_told_of_that_too_late() -> None:
    lab = _reads_while_it_leaves(mutants.LeaverReadsOn)
    assert lab.given["x"] == ["effect"]
    lab.release()
    lab.run(500)
    assert "domain_causal_delivery" in _broken(lab)


REFUSED: dict[str, Callable[[DomainProcess], object]] = {
    "only listen": lambda x: x.cast("g", [b"m"]),
    "no role": lambda x: x.join(0, "k", 1, "peer", "client"),
    "say server or client": lambda x: x.join(0, "k", 1, "diffusion", ""),
    "there are peer": lambda x: x.join(0, "k", 1, "tree", "client"),
    "already": lambda x: x.join(0, "g", 1, "diffusion", "client"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_does_not_fit_is_refused(why: str) -> None:
    lab = Lab({"g": "a"}, Policy.FULL, others="x", styles=QUOTES)
    lab.visit("x", "g")
    lab.run(300)
    with pytest.raises(Refused, match=why):
        REFUSED[why](lab.at["x"])


def test_servers_say_what_they_send_to_one_client() -> None:
    lab = Lab({"g": "a", "h": "a"}, Policy.FULL, styles=ORDERS)
    with pytest.raises(Refused, match="only servers send to one client"):
        lab.at["a"].cast("h", [b"m"], to=MemberId("x"))
    with pytest.raises(Refused, match="has clients"):
        lab.at["a"].cast("g", [b"m"], ordered=True)


@pytest.mark.parametrize("seed", range(3))
@POLICIES
def test_the_swarm_with_clients_finds_nothing(policy: Policy, seed: int) -> None:
    found = report(seed, "isis", None, IsisVariant(policy=policy, clients=True))
    assert not found.broken, found.broken


def test_an_orphan_that_has_started_again_is_given_up_at_once() -> None:
    """Live: its contact was dead, too, and who changed the group waited three times the longest silence."""
    first, dead, client = MemberId("s"), MemberId("t"), MemberId("c", 1)
    roster = Roster(first, Style.CLIENT_SERVER)
    roster.enter((first, dead), [])
    roster.rolled(dead, Roll(False, Style.CLIENT_SERVER.value, [], []))
    assert roster.came(dead, Came(client, 1, 1, 0, []))
    roster.enter((first,), [])
    roster.commands.clear()
    roster.tick(10, 1000, ())
    assert roster.awaited()
    assert not roster.commands
    again = MemberId("c", 2)
    assert roster.came(first, Came(again, 1, 1, 0, []))
    roster.tick(20, 1000, (again,))
    assert list(roster.commands) == [Gone(client, 0)]
    assert roster.went(Gone(client, 0))
    assert not roster.awaited()
    assert again in roster.listed
