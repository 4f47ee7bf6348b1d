"""The daemon's side of connections, without sockets."""

from typing import Any

import pytest
from tests.daemon.hosting import OTHER_TOKEN, WEB, WEB_TOKEN, D, Hosted, Wire

from semcast.core.ids import SECOND, MemberId
from semcast.protocols.clients.codec import Format, decode_reply, encode
from semcast.protocols.clients.frames import (
    VERSION,
    Answer,
    Ask,
    Block,
    Bye,
    Cast,
    Credits,
    Deliver,
    DeliverPrivate,
    Done,
    Error,
    Hello,
    Join,
    Leave,
    Left,
    OutOf,
    Ping,
    Placed,
    Private,
    Purged,
    Ready,
    Resume,
    Taken,
    Undeliverable,
    View,
)
from semcast.protocols.clients.guests import Link
from semcast.protocols.clients.host import HostSettings
from semcast.protocols.clients.permissions import Identity, Rule
from semcast.protocols.lightweight.messages import Came, Client
from semcast.protocols.lightweight.messages import Cast as LightCast
from semcast.protocols.lightweight.messages import encode as encode_operation


def texts(wire: Wire) -> list[bytes]:
    """The messages that come."""
    return [payload for each in wire.hear_of(Deliver) for payload in each.payloads]


def test_a_session_from_hello_to_bye() -> None:
    hosted = Hosted()
    alice, bob = hosted.connect("alice"), hosted.connect("bob")
    welcome = alice.welcome()
    assert (welcome.member.name, welcome.daemon, welcome.domain) == ("alice@d", D, "test")
    assert bob.welcome().resume == ""  # ends with its connection
    alice.say(Join(1, "g"))
    [view] = alice.hear_of(View)
    assert view.members == (welcome.member,)
    bob.say(Cast(1, ("g",), "agreed", [b"hi", b"there"]))  # from outside
    assert texts(alice) == [b"hi", b"there"]
    assert bob.hear_of(Placed) == [Placed(2)]
    bob.say(Private(3, welcome.member, b"psst"))
    assert [each.payload for each in alice.hear_of(DeliverPrivate)] == [b"psst"]
    alice.say(Leave(2, "g"), Ping(9))
    assert alice.hear()[:1] == [Done(9)]
    bob.say(Bye())
    hosted.run()
    assert bob.link.over
    assert [str(client) for client in hosted.machine.map.clients] == [str(welcome.member)]
    alice.say(Private(3, bob.hosted.machine.me, b"?"))
    assert alice.hear_of(Undeliverable)


def test_leaving_is_told() -> None:
    wire = Hosted().connect()
    wire.say(Join(1, "g"), Leave(2, "g"))
    assert wire.hear_of(OutOf) == [OutOf("g")]


def test_who_asked_to_leave_sends_from_outside() -> None:
    """Also before it has read that it left, and if it has asked to join again; then in the new view."""
    hosted = Hosted()
    wire = hosted.connect("a", window=1)
    wire.welcome()
    wire.say(Join(1, "v", "vs"))
    [old] = wire.hear_of(View)
    [guest] = hosted.host.guests.values()
    assert guest.views == {"v": old.id}
    wire.say(Leave(2, "v"), Join(3, "v", "vs"))
    assert wire.hear_of(OutOf) == []  # it takes nothing, so it is told nothing
    assert guest.views == {}
    told = [each for taken in range(1, 5) for each in wire.take(taken)]
    assert [type(each) for each in told if not isinstance(each, Placed)] == [OutOf, View]
    [new] = [each for each in told if isinstance(each, View)]
    assert guest.views == {"v": new.id}
    assert new.id != old.id


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (Hello(2), "version"),
        (Hello(VERSION, "a@b"), "name"),
        (Hello(VERSION, policy="block"), "policy"),
        (Hello(VERSION, token=WEB_TOKEN * 2), "denied"),
        (Hello(VERSION, token=WEB_TOKEN, resume=Resume("stolen", 0)), "session"),
        (Join(1, "g"), "hello"),
    ],
)
def test_who_is_not_let_in(first: Hello | Join, code: str) -> None:
    hosted = Hosted()
    wire = Wire(hosted, Link(0, identity=None if code in ("denied", "session") else Identity(("local",))))
    wire.say(first)
    [error] = wire.hear_of(Error)
    assert (error.seq, error.code) == (None, code)
    assert wire.link.over
    assert not hosted.host.guests


def test_who_says_nothing_is_not_kept() -> None:
    hosted = Hosted()
    wire = Wire(hosted, Link(0))
    hosted.now = 6 * SECOND
    assert wire.hear_of(Error)
    assert wire.link.over


def test_a_name_is_taken_once_and_free_again() -> None:
    hosted = Hosted()
    first = hosted.connect("alice")
    number = first.welcome().member.incarnation
    assert hosted.connect("alice").hear_of(Error)[0].code == "name"
    first.break_()
    hosted.run()
    assert hosted.connect("alice").welcome().member.incarnation > number


def test_permissions_are_per_group_and_a_refusal_takes_a_number() -> None:
    rules = (Rule("token:web", ("chat.*",), ("join", "send")), Rule("local"))
    hosted = Hosted(rules=rules)
    web = hosted.connect("w", None, token=WEB_TOKEN)
    web.say(
        Join(1, "orders"),
        Join(2, "chat.a"),
        Cast(3, ("chat.a", "orders"), "agreed", [b"1", b"2"]),
        Private(5, D, b"x"),
        Cast(6, ("chat.a",), "agreed", [b"3"]),
    )
    told = web.hear()
    assert [each.seq for each in told if isinstance(each, Error)] == [1, 3, 5]
    assert [each.payloads for each in told if isinstance(each, Deliver)] == [[b"3"]]
    assert [each.upto for each in told if isinstance(each, Placed)][-1] == 6
    assert list(hosted.machine.map.groups) == ["chat.a"]


def test_what_was_refused_counts_as_placed() -> None:
    """Whoever waits until everything has its place does not wait for what never has one."""
    wire = Hosted().connect()
    wire.hear()
    wire.say(Leave(1, "g"))
    assert wire.hear_of(Placed) == [Placed(1)]
    wire.say(Join(2, "g"), Cast(3, ("g",), "loud", [b"1", b"2"]), Leave(5, "h"))
    assert wire.hear_of(Placed)[-1] == Placed(5)
    wire.say(Leave(6, "g"))
    assert wire.hear_of(Placed)[-1] == Placed(6)


def test_requests_have_the_next_number() -> None:
    wire = Hosted().connect()
    wire.say(Join(2, "g"))
    assert wire.hear_of(Error)[0].code == "number"


def test_who_has_no_credit_is_put_out() -> None:
    hosted = Hosted(send_messages=10)
    greedy, other = hosted.connect("greedy"), hosted.connect("other")
    greedy.hear()
    greedy.say(Cast(1, ("g",), "agreed", [b"x"] * 8), Cast(9, ("g",), "agreed", [b"x"] * 8))
    assert greedy.hear_of(Error)[0].code == "credit"
    greedy.break_()
    other.say(Join(1, "h"))
    assert other.hear_of(View)


def test_credit_comes_back_as_the_ring_takes_messages() -> None:
    hosted = Hosted(send_messages=10)
    wire = hosted.connect()
    for first in range(1, 100, 10):
        wire.hear()
        wire.say(Cast(first, ("g",), "agreed", [b"x"] * 10))
    assert sum(each.messages for each in wire.hear_of(Credits)) == 10
    assert not wire.link.over


def test_not_more_is_under_way_than_the_client_takes() -> None:
    hosted = Hosted()
    slow, fast = hosted.connect("slow", window=3), hosted.connect("fast")
    slow.say(Join(1, "g"))
    slow.hear()
    fast.say(*(Cast(n, ("g",), "agreed", [b"%d" % n]) for n in range(1, 9)))
    assert len(slow.hear()) == 1  # the view and the place of its join are under way
    slow.say(Taken(3))
    assert texts(slow) == [b"2", b"3", b"4"]
    slow.say(Taken(99))
    assert slow.hear_of(Error)[0].code == "taken"


def test_a_slow_client_misses_only_what_is_obsolete() -> None:
    hosted = Hosted(queue_messages=20)
    slow, fast = hosted.connect("slow", window=2), hosted.connect("fast")
    slow.say(Join(1, "g"))
    slow.hear()
    for n in range(1, 401):
        items = ["price" if n % 50 else ""]
        fast.say(Cast(n, ("g",), "agreed", [b"%d" % n], items))
        fast.hear()
    session = next(iter(hosted.machine.requests.sessions.values()))
    assert len(session) < 60
    assert not session.closed
    told: list[object] = []
    taken = 2
    while found := slow.take(taken):
        told += found
        taken += len(found)
    delivered = [int(payload) for each in told if isinstance(each, Deliver) for payload in each.payloads]
    assert set(range(50, 401, 50)) <= set(delivered)
    assert delivered == sorted(delivered)
    assert delivered[-1] == 400
    purged = [each for each in told if isinstance(each, Purged)]
    assert sum(each.count for each in purged) + len(delivered) == 400


def test_a_client_that_takes_nothing_is_put_out_after_a_while() -> None:
    hosted = Hosted(queue_messages=20)
    slow, fast = hosted.connect("slow", window=2), hosted.connect("fast")
    slow.say(Join(1, "g"))
    slow.hear()
    for n in range(1, 60):
        fast.say(Cast(n, ("g",), "agreed", [b"x"]))
        fast.hear()
    assert len(hosted.host.guests) == 2
    hosted.now += 5 * SECOND
    hosted.run()
    assert slow.hear_of(Left) == [Left("it does not take what it is told")]
    assert slow.link.over
    assert len(hosted.machine.map.clients) == 1


def test_a_broken_connection_is_taken_up_again() -> None:
    """Nothing twice, nothing lost, in both directions."""
    hosted = Hosted()
    web = hosted.connect("w", None, token=WEB_TOKEN)
    token = web.welcome().resume
    web.say(Join(1, "g"), Cast(2, ("g",), "agreed", [b"1", b"2"]))
    told = web.hear()  # lost on its way
    assert len(told) >= 2
    web.break_()
    other = hosted.connect("other")
    other.say(Cast(1, ("g",), "agreed", [b"3"]))
    other.hear()
    again = Wire(hosted, Link(hosted.now))
    again.say(Hello(VERSION, token=WEB_TOKEN, resume=Resume(token, 1)))  # it has the view
    welcome, *rest = again.hear()
    assert welcome.member.name == "w@d"  # type: ignore[union-attr]
    assert welcome.seq == 3  # type: ignore[union-attr]
    again.say(Cast(2, ("g",), "agreed", [b"1", b"2"]), Cast(4, ("g",), "agreed", [b"4"]))
    rest += again.hear()
    delivered = [payload for each in rest if isinstance(each, Deliver) for payload in each.payloads]
    assert delivered == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("token", [OTHER_TOKEN, WEB_TOKEN])
def test_a_session_is_not_taken_over_by_a_stranger(token: str) -> None:
    """One with another identity, or without the secret."""
    hosted = Hosted()
    web = hosted.connect("w", None, token=WEB_TOKEN)
    secret = web.welcome().resume if token == OTHER_TOKEN else "secret-0"
    web.break_()
    thief = Wire(hosted, Link(hosted.now))
    thief.say(Hello(VERSION, token=token, resume=Resume(secret, 0)))
    assert thief.hear_of(Error)[0].code == "session"
    assert [guest.identity for guest in hosted.host.guests.values()] == [WEB]


def test_a_session_waits_for_its_client_and_no_longer() -> None:
    hosted = Hosted()
    web = hosted.connect("w", None, token=WEB_TOKEN)
    web.hear()
    web.break_()
    hosted.now += 4 * SECOND
    hosted.run()
    assert hosted.host.guests
    hosted.now += 2 * SECOND
    hosted.run()
    hosted.run()
    assert not hosted.host.guests
    assert not hosted.machine.map.clients


def test_the_old_connection_ends_where_the_session_goes_on_elsewhere() -> None:
    hosted = Hosted()
    web = hosted.connect("w", None, token=WEB_TOKEN)
    token = web.welcome().resume
    again = Wire(hosted, Link(0))
    again.say(Hello(VERSION, token=WEB_TOKEN, resume=Resume(token, 0)))
    assert again.welcome()
    assert web.link.over
    web.break_()
    again.say(Join(1, "g"))
    assert again.hear_of(View)


def test_a_member_of_a_blocking_group_answers_and_waits() -> None:
    hosted = Hosted()
    a, b = hosted.connect("a"), hosted.connect("b")
    a.say(Join(1, "v", "vs"))
    [view] = a.hear_of(View)
    b.say(Join(1, "v", "vs"))
    [block] = a.hear_of(Block)
    assert block.view == view.id
    a.say(Cast(2, ("v",), "agreed", [b"in the old view"]), Ready("v", block.view))
    a.say(Cast(3, ("v",), "agreed", [b"too early"]))
    told = a.hear()
    assert [each.code for each in told if isinstance(each, Error)] == ["blocked"]
    kinds = [type(each) for each in told if isinstance(each, Deliver | View)]
    assert kinds == [Deliver, View]
    a.say(Cast(4, ("v",), "agreed", [b"in the new one"]))
    assert texts(b) == [b"in the new one"]


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize(
    "nonsense", [[None, 3], [[], {}], ["text", b"\xff"], [b"good", 7, b"good"], [[[[]]]] * 20]
)
def test_a_run_of_a_daemon_that_writes_nonsense_harms_no_client(nonsense: Any, form: Format) -> None:
    """Its messages have no bytes; what comes before and after is heard."""
    hosted = Hosted()
    wire = hosted.connect("a")
    wire.welcome()
    wire.link.form = form
    hosted.host.heard(wire.link, encode(Join(1, "g"), form))
    hosted.run()
    other, stranger = MemberId("q", 1), Client("b@q", 1)
    for operation in (Came(stranger), LightCast(stranger, 1, ("g",), None, False, nonsense)):
        hosted.machine.on_message(other, hosted.machine.tag + encode_operation(operation))
    hosted.host.heard(wire.link, encode(Cast(2, ("g",), "agreed", [b"x", b"y"]), form))
    hosted.run()
    heard = [decode_reply(body, form) for body in wire.link.out]
    assert [list(each.payloads) for each in heard if isinstance(each, Deliver)] == [
        [b""] * len(nonsense),
        [b"x", b"y"],
    ]


def test_only_administrators_ask() -> None:
    hosted = Hosted()
    admin = Wire(hosted, Link(0, identity=Identity(("local",), admin=True)))
    admin.say(Ask(1, "status"))
    assert admin.hear() == [Answer(1, '"status "')]
    other = hosted.connect("x", Identity(("uid:5",)))
    other.say(Ask(1, "status"))
    assert other.hear_of(Error)[0].code == "denied"


def test_dropping_a_client_is_told_to_it() -> None:
    hosted = Hosted()
    wire = hosted.connect("a")
    client = wire.welcome().member
    assert hosted.host.drop(client, "because")
    assert wire.hear_of(Left) == [Left("because")]
    assert wire.link.over
    assert not hosted.host.drop(client, "again")


def waits(hosted: Hosted) -> bool:
    """Whether everybody waits for one client."""
    return hosted.machine.requests.held


def test_everybody_waits_for_who_may_ask_for_that() -> None:
    hosted = Hosted(settings=HostSettings(allow_block=True), queue_messages=10)
    slow, fast = hosted.connect("slow", policy="block", window=2), hosted.connect("fast")
    slow.say(Join(1, "g"))
    slow.hear()
    for n in range(1, 20):
        fast.say(Cast(n, ("g",), "agreed", [b"x"]))
        fast.hear()
    assert waits(hosted)
    hosted.now += 60 * SECOND
    hosted.run()
    taken = 2
    while found := slow.take(taken):
        taken += len(found)
    hosted.run()
    assert not waits(hosted)
    assert taken > 20
