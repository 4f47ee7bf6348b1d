"""The pure parts of a replication server: quorum, knowledge, plan, colours, membership, requests."""

import pytest

from semcast.core import MemberId
from semcast.replication.actions import Asked, Change, Join, Leave, Reweigh, Run, plain
from semcast.replication.clients import Clients, Gone
from semcast.replication.colours import Colours, GapError
from semcast.replication.dedupe import Requests
from semcast.replication.ids import ConfId, Creator, Server, Weighted
from semcast.replication.knowledge import Account, Prim, Vulnerable, learn
from semcast.replication.lineage import ForgetError, estranged, forgetting, given_up, made_up, past_of
from semcast.replication.membership import Membership
from semcast.replication.messages import State
from semcast.replication.plan import Planner
from semcast.replication.quorum import is_quorum, may_found
from semcast.replication.records import Forgot

A, B, C, D = (Server(name, 1) for name in "abcd")
ONE, TWO = ConfId(1, MemberId("a")), ConfId(2, MemberId("a"))


def weighing(*servers: Server, weight: int = 1) -> Weighted:
    return tuple((server, weight) for server in servers)


def runs_of(server: Server, *lengths: int, clock: int = 1) -> list[Run]:
    found, first = [], 1
    for step, length in enumerate(lengths):
        found.append(Run(Creator(server, 1), first, clock + step, [plain(b"x")] * length))
        first += length
    return found


# Quorum (6.1.2, figure 6.13)


def test_half_is_a_quorum_with_the_first_only() -> None:
    prim = Prim(1, servers=weighing(A, B, C, D))
    assert is_quorum(prim, [A, C])
    assert not is_quorum(prim, [B, C])
    assert is_quorum(prim, [B, C, D])


def test_weights_count() -> None:
    prim = Prim(1, servers=((A, 0), (B, 1), (C, 3)))
    assert is_quorum(prim, [C])
    assert not is_quorum(prim, [A, B])


def test_what_an_operator_made_up_needs_all() -> None:
    prim = Prim(2, servers=weighing(A, B, C), whole=True)
    assert not is_quorum(prim, [A, B])
    assert is_quorum(prim, [A, B, C, D])


def test_all_found_a_group_each_with_one_store() -> None:
    assert may_found("ab", [A, B])
    assert not may_found("abc", [A, B])
    assert not may_found("ab", [A, B, Server("b", 2)])
    assert not may_found((), [A])


# Knowledge (figure 6.12)


def account(prim: Prim, vulnerable: Vulnerable | None = None, attempt: int = 0) -> Account:
    return Account(prim, attempt, None, vulnerable)


def test_the_newest_primary_is_known_and_its_attempts() -> None:
    old, new = Prim(1, 1, ONE, weighing(A, B)), Prim(2, 1, TWO, weighing(A, B))
    known = learn({A: account(old, attempt=7), B: account(new, attempt=2)})
    assert (known.prim, known.attempt) == (new, 2)


def test_yellow_is_what_all_have_who_were_there_to_the_end() -> None:
    prim = Prim(1, 1, ONE, weighing(A, B, C))
    x, y = (Creator(A, 1), 1), (Creator(B, 1), 1)
    known = learn({A: Account(prim, 0, (x, y), None), B: Account(prim, 0, (x,), None), C: account(prim)})
    assert known.yellow == (x,)
    assert learn({C: account(prim)}).yellow is None


def test_a_record_is_void_where_another_primary_followed() -> None:
    record = Vulnerable(1, 1, ONE, weighing(A, B))
    other = Prim(2, 2, TWO, weighing(B, C))
    assert learn({A: account(Prim(1), record), C: account(other)}).vulnerable[A] is None
    same = Prim(2, 1, ONE, weighing(A, B))
    assert learn({A: account(Prim(1), record), C: account(same)}).vulnerable[A] is not None


def test_a_record_is_void_where_one_of_the_attempt_has_none() -> None:
    record = Vulnerable(1, 1, ONE, weighing(A, B, C))
    assert learn({A: account(Prim(1), record), B: account(Prim(1))}).vulnerable[A] is None


def test_bits_are_gathered_across_meetings() -> None:
    record = Vulnerable(1, 1, ONE, weighing(A, B, C))
    first = learn({A: account(Prim(1), record), B: account(Prim(1), record)}).vulnerable[A]
    assert first is not None
    assert first.bits == (A, B)
    assert learn({A: account(Prim(1), first), C: account(Prim(1), record)}).vulnerable[A] is None


# Plan (6.1.3)


def state(server: Server, green: int = 0, cut: dict[Creator, int] | None = None, **kw: object) -> State:
    prim = kw.get("prim", Prim(1, 1, ONE, weighing(A, B, C)))
    assert isinstance(prim, Prim)
    start = kw.get("start", 0)
    assert isinstance(start, int)
    told = tuple(sorted((cut or {}).items()))
    members = weighing(A, B, C)
    return State(ONE, server, green, b"", start, told, 0, prim, None, None, members, members, (), 10)


def test_each_action_leaves_once() -> None:
    a, b = Creator(A, 1), Creator(B, 1)
    plan = Planner().plan(
        {
            A: state(A, 5, {a: 5, b: 2}),
            B: state(B, 5, {a: 5, b: 4}),
            C: state(C, 3, {a: 3, b: 0}),
        }
    )
    assert plan.members == (A, B, C)
    first, second = plan.shares
    assert (first.server, first.greens, first.after, first.reds) == (A, True, 3, ((a, 3, 5), (b, 0, 2)))
    assert (second.server, second.greens, second.reds) == (B, False, ((b, 2, 4),))


def test_nothing_is_sent_where_all_have_the_same() -> None:
    assert Planner().plan({A: state(A, 5), B: state(B, 5)}).shares == ()


def test_who_is_behind_or_ahead_counts_as_absent() -> None:
    c = Creator(C, 1)
    assert Planner().plan({A: state(A, 50), B: state(B, 30), C: state(C, 45)}).members == (A, C)
    assert Planner().plan({A: state(A, 50), C: state(C, 50, {c: 11})}).members == (A,)
    assert Planner().plan({A: state(A, 50, start=47), C: state(C, 45)}).members == (A,)


def test_a_store_that_nobody_let_in_counts_as_absent() -> None:
    fresh = Server("b", 2)
    plan = Planner().plan({A: state(A, 5), fresh: state(fresh, prim=Prim())})
    assert plan.members == (A,)


# Colours (figure 6.19)


def test_a_gap_is_an_error() -> None:
    colours = Colours()
    first, second = runs_of(A, 2, 3)
    with pytest.raises(GapError):
        colours.mark_red(second)
    assert colours.mark_red(first)
    assert not colours.mark_red(first)
    assert colours.mark_red(second)
    assert colours.cut == {Creator(A, 1): 5}


def test_green_actions_have_positions_and_a_chain_hash() -> None:
    one, other = Colours(), Colours()
    first, second = runs_of(A, 2, 3)
    assert [one.mark_green(run) for run in (first, second, first)] == [1, 3, 0]
    other.mark_red(first)
    other.mark_red(second)
    for run in (first, second):
        other.mark_green(run)
    assert one.line == other.line == 5
    assert one.digest == other.digest == one.digest_at(5)
    assert one.digest_at(2) == other.digest_at(2) != one.digest
    assert one.digest_at(3) is None
    assert [position for position, _ in one.after(2)] == [3]


def test_what_is_trimmed_is_still_counted() -> None:
    colours = Colours()
    for run in runs_of(A, 2, 3):
        colours.mark_green(run)
    before = colours.digest_at(2)
    colours.trim(4)
    assert (colours.start, colours.line, colours.digest_at(2)) == (2, 5, before)
    assert [position for position, _ in colours.between(0, 5, 9)] == [3]


def test_reds_are_ordered_by_clock_then_by_creator() -> None:
    colours = Colours()
    late, early, tied = runs_of(A, 1, clock=2), runs_of(B, 1, clock=1), runs_of(C, 1, clock=1)
    for run in (*late, *tied, *early):
        colours.mark_red(run)
    assert colours.in_red_order() == [*early, *tied, *late]


# Membership and requests


def test_a_new_store_takes_the_place_of_the_old_one() -> None:
    members = Membership()
    members.found(weighing(A, B))
    assert members.apply(Join(Server("b", 2), 3), 7)
    assert members.weights == {A: 1, Server("b", 2): 3}
    assert not members.apply(Join(B, 1), 8), "a store that was removed never joins again"
    assert members.apply(Reweigh(A, 0), 9)
    assert members.apply(Leave(A), 10)
    assert not members.apply(Leave(Server("b", 2)), 11), "the last one stays"
    assert members.since == {Server("b", 2): 7}


@pytest.mark.parametrize("what", [Reweigh(B, 0), Leave(B), Join(Server("b", 2), 1)])
def test_what_actions_make_of_the_group_does_not_depend_on_who_was_given_up_meanwhile(what: Change) -> None:
    members, others = Membership(), Membership()
    for each in (members, others):
        each.found(weighing(A, B, C))
    members.forget(frozenset({B}))
    assert members.apply(what, 7)
    members.forget(frozenset())
    assert others.apply(what, 7)
    assert members.written() == others.written()
    others.forget(frozenset({B}))
    assert B not in others
    assert B not in members or what == Reweigh(B, 0)


def test_the_last_one_that_was_not_given_up_stays() -> None:
    members = Membership()
    members.found(weighing(A, B))
    members.forget(frozenset({B}))
    assert not members.apply(Leave(A), 3)
    assert members.apply(Leave(B), 4)
    assert members.weights == {A: 1}


def test_a_request_is_done_once_in_any_order() -> None:
    requests = Requests()
    assert requests.apply(Asked("k", 2, 0, b""), 5)
    assert requests.apply(Asked("k", 1, 0, b""), 6), "a lower number that comes late is done all the same"
    assert not requests.apply(Asked("k", 2, 0, b""), 7)
    assert requests.position("k", 2) == 5
    assert requests.apply(Asked("k", 3, 3, b""), 8)
    assert requests.position("k", 2) is None, "the client has that outcome"
    assert not requests.apply(Asked("k", 1, 0, b""), 9)


A, B, C, D = (Server(name, 1) for name in "abcd")


def _members() -> Membership:
    members = Membership()
    members.found(((A, 1), (B, 1), (C, 1), (D, 1)))
    return members


@pytest.mark.parametrize(
    ("server", "last", "names", "said"),
    [
        (A, (), "b", "a knows no primary"),
        (Server("x", 1), (A, B), "b", "x is no server of this database"),
        (A, (A, B), "z", "there is no server 'z': the servers are a, b, c, d"),
        (A, (A, B), "ab", "a cannot forget itself"),
        (A, (B, C), "b", "which may have ordered what is not here: forget at c"),
        (A, (B, C), "bc", "what only these had is lost"),
    ],
)
def test_forgetting_that_is_refused(server: Server, last: tuple[Server, ...], names: str, said: str) -> None:
    prim = Prim(5 if last else 0, 1, servers=tuple((each, 1) for each in last), lineage=3)
    with pytest.raises(ForgetError, match=said):
        forgetting(server, prim, _members(), list(names), loss=False)


def test_the_primary_that_an_operator_makes_up() -> None:
    prim = Prim(5, 1, servers=((B, 1), (C, 1)), lineage=3)
    record = forgetting(C, prim, _members(), ["b"], loss=False)
    assert forgetting(C, prim, _members(), ["b"], loss=True) == record  # whoever does it, it is the same one
    made = made_up(prim, record, _members())
    assert (made.index, made.servers, made.whole, made.forgot) == (6, ((C, 1),), True, (B,))
    assert past_of(made, 17) == ((3, 17),)
    everybody = forgetting(A, prim, _members(), ["b", "c"], loss=True)
    assert made_up(prim, everybody, _members()).servers == ((A, 1), (D, 1))


def test_who_can_go_on_after_an_order_was_given_up() -> None:
    old, ours = Prim(5, 1, servers=((B, 1), (C, 1)), lineage=3), Prim(2, 1, servers=((D, 1),), lineage=1)
    made = made_up(old, Forgot((B,), 9), _members())
    new = Prim(7, 1, servers=((C, 1), (D, 1)), lineage=9, past=past_of(made, 17), forgot=made.forgot)
    assert not estranged(C, old, made)  # the rest of the last primary: it is needed
    assert estranged(D, old, made)
    assert not given_up(D, old, 30, made)  # nobody knows yet where the old order ends
    assert estranged(D, old, new)
    assert not given_up(D, old, 17, new)
    assert "positions 18 to 19 were ordered here" in given_up(D, old, 19, new)
    assert given_up(B, old, 17, new) == (
        "this server was forgotten by an operator, and the others went on without it"
    )
    assert "positions 1 to 4" in given_up(D, ours, 4, new)  # another group altogether
    assert not estranged(D, new, new)
    assert not given_up(D, made, 17, new)  # made up there as well, and nothing was ordered since


def _asked(client: str, number: int, floor: int = 0) -> Asked:
    return Asked(client, number, floor, b"")


def test_clients_that_never_come_back_are_forgotten_in_the_order_of_all() -> None:
    clients: Clients[int] = Clients(most_clients=2)
    assert clients.add(_asked("a", 1), 1) == clients.add(_asked("b", 1), 2) == []
    assert clients.add(_asked("a", 2, 2), 3) == [Gone("a", 1)], "it has that outcome"
    assert clients.add(_asked("c", 1), 4) == [Gone("b", 1), Gone("b")], "b asked for something longest ago"
    assert clients.is_new(_asked("b", 1)), "who was forgotten is done it again"
    assert not clients.is_new(_asked("a", 1))


def test_a_client_that_never_says_what_it_has_keeps_its_newer_half() -> None:
    clients: Clients[int] = Clients(most_numbers=4)
    for number in (5, 1, 2, 4):
        assert clients.add(_asked("a", number), number) == []
    assert clients.add(_asked("a", 3), 9) == [Gone("a", 1), Gone("a", 2)]
    assert clients.floor("a") == 3
    assert not clients.is_new(_asked("a", 2)), "it is not done twice"


def test_what_is_forgotten_is_the_same_after_a_snapshot() -> None:
    clients: Clients[int] = Clients(most_clients=3)
    for position, client in enumerate("abcba", 1):
        clients.add(_asked(client, position), position)
    done, floors = clients.written()
    other: Clients[int] = Clients(most_clients=3)
    shuffled = {client: done[client] for client in sorted(done)}
    other.restore(shuffled, floors, {client: max(places.values()) for client, places in done.items()})
    new = _asked("d", 1)
    assert other.add(new, 6) == clients.add(new, 6) == [Gone("c", 3), Gone("c")]


def test_who_was_forgotten_here_only_belongs_again_when_another_primary_counts() -> None:
    members = _members()
    before = members.written()
    members.forget(frozenset([B]))
    assert B not in members
    assert B in members.removed
    assert members.written() == before, (
        "what actions made of the servers is written; the primary tells of the rest"
    )
    again = Membership()
    again.forget(frozenset([B]))
    again.restore(before)
    assert again.weights == members.weights
    members.forget(frozenset())
    assert B in members
    assert B not in members.removed
    assert members.written() == before
