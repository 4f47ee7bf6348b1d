"""Sessions, turns, the census in parts, and what strangers and clients may not do."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from tests.lightweight.world import World

from semcast.core import MemberId
from semcast.core.events import Left, ViewChange
from semcast.core.outbox import Outbox
from semcast.protocols.clients.codec import Format
from semcast.protocols.clients.codec import encode as encode_frame
from semcast.protocols.clients.frames import Deliver
from semcast.protocols.lightweight import Lightweight, LightweightSettings, Machine, Refused
from semcast.protocols.lightweight.census import Gathering, census_of
from semcast.protocols.lightweight.events import Delivered, GroupView, Out, Placed
from semcast.protocols.lightweight.groups import Group, Map
from semcast.protocols.lightweight.ids import Epoch, Position, ViewId
from semcast.protocols.lightweight.messages import Came, Cast, Census, Join, body_of, decode, encode, tag_of
from semcast.protocols.lightweight.sessions import Session, Turns, Wish
from semcast.protocols.lightweight.settings import MAX_RUN, MAX_TARGETS
from semcast.protocols.lightweight.written import Written
from semcast.protocols.ring import Ring, RingSettings

P, Q = MemberId("p"), MemberId("q")
CONF = Epoch(7, False, P)
RING = RingSettings()


def machine(**settings: Any) -> Machine:
    made = Machine(P, LightweightSettings(**settings), Outbox())
    made.on_configuration(7, P, [P])
    return made


def run(daemon: Machine) -> None:
    """As the only daemon: everything gets its place at once, and is safe."""
    while True:
        daemon.requests.fill(100)
        if not daemon.requests.sends:
            break
        daemon.on_message(P, daemon.tag + daemon.requests.sends.popleft()[0])
    daemon.on_safe(daemon.placing.own)


def test_names_order_as_clients_see_them() -> None:
    """A rest comes between its configuration and the next."""
    rest = Epoch(7, True, Q)
    views = [ViewId(CONF, 2), ViewId(rest, 1), ViewId(Epoch(8, False, P), 1)]
    assert sorted(views, reverse=True) == views[::-1]
    assert [str(view) for view in views] == ["7@p.2", "7~q.1", "8@p.1"]


def test_what_no_daemon_says_is_dropped_by_all() -> None:
    daemon = machine()
    rng = Random(1)
    for payload in (b"", b"\xff", daemon.tag, daemon.tag + b"\x93", *(rng.randbytes(40) for _ in range(200))):
        daemon.on_message(Q, payload)
    assert daemon.map.clients == {}
    assert daemon.stats.malformed + daemon.stats.stale == 204


def test_messages_are_bounded() -> None:
    client = MemberId("a@p", 1)
    groups = tuple(map(str, range(MAX_TARGETS + 1)))
    assert decode(encode(Cast(client, 1, groups, None, False, [b""]))) is None
    assert decode(encode(Join(client, 1, "x" * 1000, False))) is None
    assert decode(encode(Join(client, 1, "group", False)).replace(b"group", b"gr\xb9up")) is None
    cast = Cast(client, 1, ("e",), None, False, [b"x"])
    assert decode(body_of(tag_of(CONF) + encode(cast))) == cast


def cast_of(payloads: Any, items: list[str] | None = None) -> Any:
    """As it arrives."""
    return decode(encode(Cast(Q, 1, ("g",), None, False, payloads, items)))


def test_a_run_is_passed_on_as_it_was_written() -> None:
    """In frames for clients it is the same as if each message had been read and written again."""
    payloads = [b"", b"1", bytes(300), bytes(70_000)]
    run = cast_of(payloads).payloads
    assert type(run) is Written
    assert (len(run), run[2], list(run)) == (4, bytes(300), payloads)
    for form in Format:
        frames = [Deliver(("g",), Q, 1, Position(CONF, 3), each) for each in (payloads, run)]
        one, other = (encode_frame(frame, form) for frame in frames)
        assert one == other
    assert cast_of([b"single"]).payloads == [b"single"]


@pytest.mark.parametrize("payloads", [[], 7, b"abc", {}, [1], [b""] * (MAX_RUN + 1)])
def test_a_run_that_is_none_is_dropped(payloads: Any) -> None:
    assert cast_of(payloads) is None
    assert cast_of([b"1", b"2"], ["one"]) is None


@pytest.mark.parametrize("size", [2, 15, 16, 70_000])
def test_a_run_of_a_broken_daemon_has_messages_of_no_bytes(size: int) -> None:
    """Nobody looks into a run that is only passed on: who reads it must not fail."""
    run = Written(msgspec.Raw(msgspec.msgpack.encode([[None]] * size)))
    assert len(run) == size
    assert list(run) == [b""] * size


def test_a_daemon_speaks_for_its_own_clients_only() -> None:
    daemon = machine()
    session = daemon.requests.connect("a", 1)
    run(daemon)
    daemon.on_message(Q, daemon.tag + encode(Join(session.client, 1, "e", False)))
    daemon.on_message(Q, daemon.tag + encode(Came(session.client)))
    assert daemon.map.groups == {}
    assert daemon.map.clients[session.client].daemon == P


@pytest.mark.parametrize("name", ["", "a@b", "x" * 64])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(Refused, match="is no name"):
        machine().requests.connect(name, 1)


def test_a_name_is_taken_once_and_sessions_grow() -> None:
    daemon = machine(clients=2)
    first = daemon.requests.connect("a", 5)
    with pytest.raises(Refused, match="'a' is taken"):
        daemon.requests.connect("a", 6)
    daemon.requests.connect("b", 1)
    with pytest.raises(Refused, match="2 clients already"):
        daemon.requests.connect("c", 1)
    daemon.requests.disconnect(first, "bye")
    run(daemon)
    with pytest.raises(Refused, match="there was 5 already"):
        daemon.requests.connect("a", 5)
    assert daemon.requests.connect("a", 6).client == MemberId("a@p", 6)


def test_what_a_client_may_not_ask_for() -> None:
    daemon = machine(memberships=1, send_messages=4, run_bytes=10)
    requests = daemon.requests
    session = requests.connect("a", 1)
    requests.join(session, "e")
    refusals: tuple[Callable[[], int], ...] = (
        lambda: requests.join(session, "e"),
        lambda: requests.join(session, "f"),
        lambda: requests.leave(session, "f"),
        lambda: requests.cast(session, (), [b""]),
        lambda: requests.cast(session, ("e", "e"), [b""]),
        lambda: requests.cast(session, ("e",), []),
        lambda: requests.cast(session, ("e",), [b"x" * 11]),
        lambda: requests.cast(session, ("e" * 1000,), [b""]),
        lambda: requests.cast(session, ("e",), [b""] * 4),
        lambda: requests.private(session, session.client, b"x" * 11),
    )
    for refused in refusals:
        with pytest.raises(Refused):
            refused()
    assert requests.cast(session, ("e",), [b""] * 3) == 2, "refused requests take no numbers"
    run(daemon)
    kinds = [type(event) for event in session.take()]
    assert kinds == [GroupView, Delivered, Placed]
    assert session.credit == 4
    requests.disconnect(session, "bye")
    with pytest.raises(Refused, match="is over: bye"):
        requests.leave(session, "e")


@pytest.mark.parametrize("patient", [True, False])
def test_a_slow_client_is_put_out_and_nobody_waits(patient: bool) -> None:
    """At once, or once it has been too slow for `leave_after`."""
    daemon = machine(queue_messages=5)
    slow, fast = daemon.requests.connect("slow", 1), daemon.requests.connect("fast", 1)
    slow.patient = patient
    for session in (slow, fast):
        daemon.requests.join(session, "e")
    run(daemon)
    for _ in range(10):
        daemon.requests.cast(fast, ("e",), [b"x"])
        run(daemon)
        daemon.tend()
        fast.take()
    assert bool(slow.closed) is not patient
    daemon.now += daemon.settings.leave_after
    daemon.tend()
    run(daemon)
    assert [type(event) for event in slow.take()] == [Out]
    assert list(daemon.map.groups["e"].members) == [fast.client]
    assert list(daemon.requests.sessions) == [fast.client]


def test_clients_take_turns_by_bytes() -> None:
    turns = Turns(100)
    sessions = [Session(MemberId(name, 1), LightweightSettings(), []) for name in "ab"]
    for _ in range(100):
        sessions[0].wish(Wish(b"x" * 68))
    for _ in range(4):
        sessions[1].wish(Wish(b"x" * 18))
    for session in sessions:
        turns.add(session)
    order = "".join(turns.next()[0].client.name for _ in range(8))
    assert order == "abbabbaa", "a large one, or two small ones"


def test_a_census_in_parts_is_put_together() -> None:
    there = Map()
    for number in range(30):
        client = MemberId(f"c{number}@p", 1)
        there.came(client, P)
        for group in range(number % 7):
            found = there.groups.get(f"e{group}") or Group(f"e{group}", vs=False)
            found.view, found.size = ViewId(CONF, group), 1
            there.join(client, found, Position(CONF, number), fresh=False)
    parts = census_of(there, P, 60)
    assert len(parts) > 10
    census = Gathering([P, Q])
    assert not census.add(Q, Census(1, 1, [], [], []))
    decoded = [decode(encode(part)) for part in parts]
    assert [isinstance(part, Census) and census.add(P, part) for part in decoded] == [
        *[False] * (len(parts) - 1),
        True,
    ]
    union, told = census.united()
    assert {name: group.members for name, group in union.groups.items()} == {
        name: group.members for name, group in there.groups.items()
    }
    assert all(listed.view == there.groups[name].view for name, said in told.items() for _, listed in said)


def test_a_hostile_census_names_groups_that_are_not_there() -> None:
    census = Gathering([Q])
    assert census.add(Q, Census(1, 1, [], [], [(MemberId("a@q", 1), [(5, 0, 1, False)])]))
    assert census.united()[0].groups == {}


def test_work_for_a_cast_does_not_grow_with_groups() -> None:
    """One look-up: a daemon without members of a group does nothing else for it."""
    daemon = machine(memberships=2000, send_messages=4000)
    session = daemon.requests.connect("a", 1)
    for number in range(1000):
        daemon.requests.join(session, f"e{number}")
    run(daemon)
    touched: list[str] = []

    class Counted(dict[str, Group]):
        def get(self, name: str, default: object = None) -> Group | None:  # type: ignore[override]
            touched.append(name)
            return super().get(name)

    daemon.map.groups = Counted(daemon.map.groups)
    daemon.requests.cast(session, ("e5",), [b"x"] * 100)
    run(daemon)
    assert touched == ["e5"]


def test_a_census_begins_again_in_the_middle() -> None:
    """Its parts that had not left are dropped."""
    world = World(2, settings=LightweightSettings(notes=True, census_bytes=1))
    client = world.connect(0, "a")
    world.join(client, "e", "f", "g")
    world.settle()
    world.change()
    assert len(world.daemons[0].machine.parts) > 2
    world.change([0], [1])
    world.change()
    world.settle()
    assert world.broken() == set()


def test_a_daemon_that_leaves_puts_its_clients_out() -> None:
    out = Outbox()
    stack = Lightweight(
        P, LightweightSettings(), lambda me, rng, box: Ring(me, RING, rng, box), Random(1), out
    )
    stack.start(0)
    assert stack.deliverable()
    (change,) = stack.deliver(0, 1)
    assert isinstance(change, ViewChange)
    assert change.view.members == (P,)
    session = stack.machine.requests.connect("a", 1)
    stack.machine.requests.join(session, "e")
    stack.settle(1)
    with pytest.raises(ValueError, match="connect a client"):
        stack.multicast(1, [b"x"])
    stack.leave(2)
    for at in range(1, 400):
        timers, out.timers = out.timers, []
        for timer, due in timers:
            if due is not None:
                stack.on_timer(due + at, timer)
    assert any(isinstance(event, Left) for event in out.events)
    assert [type(event) for event in session.take()][-1] is Out
    assert stack.phase() == "left"
