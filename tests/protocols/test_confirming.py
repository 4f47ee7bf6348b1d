"""`Stack.confirm`: what a member says of its own messages, in every stack, whatever its application takes."""

from collections.abc import Callable, Sequence
from random import Random

import pytest
from tests.toy.stack import Toy, ToySettings

from semcast.core import Batch, Frame, MemberId, Outbox, Stack
from semcast.core.annotations import Item
from semcast.core.events import Confirmed, Unconfirmed
from semcast.core.handover import Handover
from semcast.core.ids import MILLISECOND
from semcast.core.mailbox import Mailbox
from semcast.core.outgoing import Outgoing
from semcast.core.views import View
from semcast.lab import Keeper, Lab, Seat
from semcast.protocols.ring import Ring, RingSettings
from semcast.protocols.ring.confirming import Answers
from semcast.protocols.ring.frames import ConfId, Packet, Part
from semcast.protocols.ring.ordering import RingOrder
from semcast.protocols.semantic import SemanticMulticast, Settings
from semcast.protocols.vsync import Engine, Order, VirtualSynchrony, VsyncSettings

Make = Callable[[MemberId, Sequence[MemberId]], Stack]


def ring(**given: object) -> Make:
    return lambda me, _members: Ring(me, RingSettings(**given), Random(me.name), Outbox())  # type: ignore[arg-type]


def vsync(**given: object) -> Make:
    def make(me: MemberId, members: Sequence[MemberId]) -> Stack:
        chosen = VsyncSettings(minimum=len(members), **given)  # type: ignore[arg-type]
        return VirtualSynchrony(me, chosen, Random(me.name), Outbox())

    return make


def srm(**given: object) -> Make:
    return lambda me, members: SemanticMulticast(
        me,
        members,
        Settings(**given),  # type: ignore[arg-type]
        Random(me.name),
        Outbox(),
    )


def toy(me: MemberId, members: Sequence[MemberId]) -> Stack:
    return Toy(me, members, ToySettings(), Outbox())


STACKS: dict[str, Make] = {
    "ring": ring(),
    "fifo": vsync(),
    "causal": vsync(order=Order.CAUSAL),
    "total": vsync(order=Order.TOTAL),
    "consensus": vsync(order=Order.TOTAL, engine=Engine.CONSENSUS),
    "uniform": vsync(uniform=True),
    "total-uniform": vsync(order=Order.TOTAL, uniform=True),
    "s-rm": srm(),
    "s-rm-uniform": srm(uniform=True),
    "toy": toy,
}


class Asking(Keeper):
    """Keeps what it was given."""

    def messages(self) -> list[tuple[str, int]]:
        return [
            (each.sender.name, seq)
            for each in self.taken
            if isinstance(each, Batch)
            for seq in range(each.first, each.last + 1)
        ]


def group(make: Make, names: str = "abc") -> Lab:
    lab, members = Lab(latency=MILLISECOND // 10), [MemberId(name) for name in names]
    for member in members:
        lab.add(member, make(member, members), Asking(), Handover(100, Mailbox()))
    lab.start()
    lab.run(1500 * MILLISECOND)
    assert all(len(seat.stack.view().members) == len(names) for seat in lab.seats.values())
    return lab


def ask(seat: Seat, *payloads: bytes, ticket: int = 1, safe: bool = False, item: str | None = None) -> None:
    note = None if item is None else Item(item)
    seat.send_or_wait(Outgoing(payloads, note, confirm=(ticket, safe)))


def answers(seat: Seat) -> list[Confirmed | Unconfirmed]:
    found = list(seat.handover.answers)
    seat.handover.answers.clear()
    return found


def given(seat: Seat) -> list[tuple[str, int]]:
    assert isinstance(seat.application, Asking)
    return seat.application.messages()


@pytest.mark.parametrize("safe", [False, True], ids=["delivered", "safe"])
@pytest.mark.parametrize("stack", STACKS)
def test_a_message_is_confirmed_in_its_view(stack: str, safe: bool) -> None:
    lab = group(STACKS[stack])
    a = lab.seats["a"]
    ask(a, b"x", b"y", safe=safe)
    lab.run(500 * MILLISECOND)
    [answer] = answers(a)
    assert isinstance(answer, Confirmed)
    assert answer.ticket == 1
    assert answer.view == a.stack.view()
    assert answer.position >= 1
    assert [name for name, _ in given(lab.seats["b"])] == ["a", "a"]


@pytest.mark.parametrize("stack", STACKS)
def test_safe_is_not_said_before_all_have_it(stack: str) -> None:
    lab = group(STACKS[stack])
    lab.carries = lambda _source, dest, _frame: dest != "c"
    a = lab.seats["a"]
    ask(a, b"x", safe=True)
    lab.run(30 * MILLISECOND)
    assert answers(a) == []


@pytest.mark.parametrize("stack", STACKS)
def test_it_does_not_wait_for_the_application(stack: str) -> None:
    """A handler may wait for it: nothing is taken meanwhile."""
    lab = group(STACKS[stack])
    a = lab.seats["a"]
    a.reads = False
    for number in range(4):
        lab.seats["b"].multicast(b"%d" % number)
    ask(a, b"x", safe=True)
    lab.run(500 * MILLISECOND)
    [answer] = answers(a)
    assert isinstance(answer, Confirmed)
    assert ("a", 1) not in given(a)


@pytest.mark.parametrize("stack", STACKS)
def test_several_are_answered_in_order(stack: str) -> None:
    lab = group(STACKS[stack])
    a = lab.seats["a"]
    for ticket in range(1, 6):
        ask(a, b"%d" % ticket, ticket=ticket, safe=ticket % 2 == 0)
        ask(lab.seats["b"], b"%d" % ticket, ticket=ticket)
    lab.run(500 * MILLISECOND)
    found = answers(a)
    assert sorted(answer.ticket for answer in found) == [1, 2, 3, 4, 5]
    places = {each.ticket: each.position for each in found if isinstance(each, Confirmed)}
    assert [places[ticket] for ticket in sorted(places)] == sorted(places.values())
    assert len(places) == 5


@pytest.mark.parametrize("stack", ["total", "consensus", "total-uniform"])
def test_positions_are_those_of_the_messages(stack: str) -> None:
    lab = group(STACKS[stack])
    lab.seats["b"].multicast(b"first")
    ask(lab.seats["a"], b"x")
    lab.run(300 * MILLISECOND)
    [answer] = answers(lab.seats["a"])
    assert isinstance(answer, Confirmed)
    application = lab.seats["c"].application
    assert isinstance(application, Asking)
    orders = {each.sender.name: each.order for each in application.taken if isinstance(each, Batch)}
    assert answer.position == orders["a"]


@pytest.mark.parametrize("stack", ["ring", "fifo", "total", "s-rm", "toy"])
def test_a_purged_message_is_confirmed_by_its_replacement(stack: str) -> None:
    lab = group(STACKS[stack])
    a = lab.seats["a"]
    for seat in lab.seats.values():
        seat.reads = False
    for ticket in range(1, 9):
        ask(a, b"%d" % ticket, ticket=ticket, safe=True, item="price")
    lab.run(800 * MILLISECOND)
    found = answers(a)
    assert [type(answer) for answer in found] == [Confirmed] * 8


@pytest.mark.parametrize("stack", ["ring", "fifo", "causal", "total", "consensus"])
def test_a_change_of_view_in_between_is_said(stack: str) -> None:
    """c is gone, and never had it."""
    lab = group(STACKS[stack])
    lab.seats["c"].alive = False
    a = lab.seats["a"]
    ask(a, b"x", safe=True)
    lab.run(5000 * MILLISECOND)
    [answer] = answers(a)
    assert len(a.stack.view().members) == 2
    assert isinstance(answer, Unconfirmed)
    for view in (a.stack.view().name, "safe in view"):
        assert view in answer.cause


@pytest.mark.parametrize("stack", ["ring", "fifo", "causal", "total", "consensus", "uniform"])
def test_who_left_meanwhile_is_no_reason_to_doubt(stack: str) -> None:
    """c is asked to leave before it has said what it has; all who go on have the message."""
    lab = group(STACKS[stack])
    a, c = lab.seats["a"], lab.seats["c"]
    before = a.stack.view()
    for ticket in range(1, 9):
        ask(a, b"x", ticket=ticket, safe=True)
    c.handover.leave()
    lab.run(5000 * MILLISECOND)
    assert [member.name for member in a.stack.view().members] == ["a", "b"]
    found = answers(a)
    assert [type(answer) for answer in found] == [Confirmed] * 8
    assert {answer.view for answer in found if isinstance(answer, Confirmed)} <= {before, a.stack.view()}


@pytest.mark.parametrize("stack", ["fifo", "causal", "total", "consensus", "uniform"])
def test_what_was_delivered_before_the_change_is_confirmed(stack: str) -> None:
    lab = group(STACKS[stack])
    before = lab.seats["a"].stack.view()
    lab.seats["c"].alive = False
    a = lab.seats["a"]
    ask(a, b"x")
    lab.run(5000 * MILLISECOND)
    [answer] = answers(a)
    assert isinstance(answer, Confirmed)
    assert answer.view == before


def test_a_ring_that_lacks_an_earlier_packet_confirms_nothing() -> None:
    """b's packet is before a's, and a does not have it: the order there is not known."""
    lab = group(STACKS["ring"])
    before = lab.seats["a"].stack.view()

    def carries(source: str, dest: str, frame: Frame) -> bool:
        return not (isinstance(frame, Packet) and dest == "a")

    lab.carries = carries
    lab.seats["b"].multicast(b"lost")
    lab.run(20 * MILLISECOND)
    ask(lab.seats["a"], b"x")
    lab.run(20 * MILLISECOND)
    assert answers(lab.seats["a"]) == []
    for name in "bc":
        lab.seats[name].alive = False
    lab.run(5000 * MILLISECOND)
    [answer] = answers(lab.seats["a"])
    assert isinstance(answer, Unconfirmed)
    assert before.name in answer.cause


def test_a_large_message_is_where_its_last_piece_is() -> None:
    lab = group(STACKS["ring"])
    sent: dict[int, Packet] = {}

    def carries(source: str, _dest: str, frame: Frame) -> bool:
        if isinstance(frame, Packet) and source == "a":
            sent[frame.seq] = frame
        return True

    lab.carries = carries
    ask(lab.seats["a"], bytes(300_000), safe=True)
    lab.run(500 * MILLISECOND)
    [answer] = answers(lab.seats["a"])
    assert isinstance(answer, Confirmed)
    assert len(sent) > 2
    assert answer.position == max(sent)


def test_a_safe_packet_says_nothing_of_those_behind_it() -> None:
    """The configuration ends, and some are gone: only what was delivered as safe is everywhere."""
    a, b = MemberId("a"), MemberId("b")
    conf, out = ConfId(1, a), Outbox()
    order, answers_ = RingOrder(conf, (a, b), a, 16), Answers(out)
    packets = [
        Packet(conf, seq, 0, safe, [Part(seq, [b"x"], None, 0)])
        for seq, safe in ((1, False), (2, True), (3, False))
    ]
    for seq in (1, 2, 3):
        answers_.ask(seq, seq, safe=True)
    answers_.numbered(packets)
    answers_.end(order, packets, View(1, (a, b)), View(2, (a,)), together=False)
    assert [type(each) for each in out.events] == [Confirmed, Confirmed, Unconfirmed]


def test_who_leaves_answers_everybody() -> None:
    lab = group(STACKS["ring"])
    a = lab.seats["a"]
    lab.carries = lambda _source, _dest, _frame: False
    ask(a, b"x", safe=True)
    lab.run(5 * MILLISECOND)
    a.handover.leave()
    lab.run(5000 * MILLISECOND)
    [answer] = answers(a)
    assert isinstance(answer, Unconfirmed)


def test_a_stack_may_say_that_it_cannot_tell() -> None:
    class Mute(Toy):
        confirm = Stack.confirm
        settle_confirmations = Stack.settle_confirmations

    lab = group(lambda me, members: Mute(me, members, ToySettings(), Outbox()))
    ask(lab.seats["a"], b"x")
    [answer] = answers(lab.seats["a"])
    assert isinstance(answer, Unconfirmed)
