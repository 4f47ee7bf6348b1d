"""A turn: what goes in, what comes out, and in which order; on a stack of a few lines."""

from collections.abc import Sequence
from random import Random

import pytest

from semcast.core import (
    Annotation,
    Batch,
    Delivery,
    Dest,
    Event,
    Frame,
    Item,
    MemberId,
    Nanos,
    Outbox,
    Stack,
    Statistics,
    Timer,
    View,
    ViewChange,
)
from semcast.core.events import (
    Blocked,
    Left,
    Minority,
    Rejoining,
    Sent,
    StateReceived,
    StateRequested,
    Unblocked,
    Unconfirmed,
)
from semcast.core.handover import Handover
from semcast.core.messages import batch_of
from semcast.core.outbox import Write
from semcast.core.outgoing import Outgoing
from semcast.core.turn import Turn

A, B, AGAIN = MemberId("a"), MemberId("b"), MemberId("a", 1)


class Say(Frame, frozen=True, array_like=True, tag=200):
    payload: bytes


class Echo(Stack):
    """Multicasts at once, delivers its own messages and those of others, and takes two before it blocks."""

    def __init__(self, me: MemberId, out: Outbox) -> None:
        self.me, self.out, self.stats = me, out, Statistics()
        self.log: list[str] = []
        self.queue: list[Delivery] = []
        self.room = 2
        self.provided: list[tuple[int, bytes]] = []
        self.silent = False  # delivers nothing of its own
        self.leaves = True
        self.says_when_delivered: bytes | None = None

    def start(self, now: Nanos) -> None:
        self.log.append("start")
        self.queue.append(ViewChange(self.view(), joined=(self.me,)))

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        taken = min(self.room, len(payloads))
        self.room -= taken
        if taken:
            batch = batch_of(self.me, self.stats.sent + 1, list(payloads[:taken]))
            self.stats.sent += taken
            self.out.deliver(Sent(batch, 1))
            self.out.multicast(Say(b"".join(batch.payloads)))
            if not self.silent:
                self.queue.append(batch)
        if taken < len(payloads):
            self.out.deliver(Blocked())
        return taken

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        assert isinstance(frame, Say)
        self.log.append(f"{source}: {frame.payload.decode()}")
        if frame.payload == b"room":
            self.room += 2
            self.out.deliver(Unblocked())
        elif frame.payload == b"minority":
            self.out.deliver(Minority(1, 2))
        elif frame.payload == b"out":
            self.out.deliver(Left("too slow", again=True))
        elif frame.payload == b"fail":
            raise ZeroDivisionError("in the stack")
        else:
            self.queue.append(batch_of(source, 1, [frame.payload]))

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        self.log.append(f"timer {timer.value}")

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        taken, self.queue = self.queue, []
        if self.says_when_delivered is not None:
            self.out.multicast(Say(self.says_when_delivered))
        return taken

    def deliverable(self) -> bool:
        return bool(self.queue)

    def provide(self, view: int, state: bytes) -> None:
        self.provided.append((view, state))

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> "Echo":
        return Echo(member, out)

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        if self.leaves:
            super().leave(now, cause)

    def buffered(self) -> int:
        return len(self.queue)

    def phase(self) -> str:
        return "operational"

    def view(self) -> View:
        return View(1, (self.me,))


class Tick(Timer):
    TICK = "tick"


class World:
    """Writes down what a turn does."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.deeds: list[str] = []
        self.woken = 0

    def set_timer(self, timer: Timer, at: Nanos | None) -> None:
        self.deeds.append(f"{timer.value} at {at}")

    def store(self, now: Nanos, writes: Sequence[Write]) -> None:
        self.deeds += [f"write {each!r}" for each in writes]

    def send(self, now: Nanos, sends: Sequence[tuple[Dest, Frame]]) -> None:
        self.sent += [frame.payload for _, frame in sends if isinstance(frame, Say)]

    def flush(self, now: Nanos) -> None:
        self.deeds.append("flush")

    def wake(self) -> None:
        self.woken += 1

    def renew(self, member: MemberId) -> None:
        self.deeds.append(f"renewed as {member}")


class Notes:
    """A watcher."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        self.seen += [type(event).__name__ for event in events]

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        self.seen += [f"delivers {type(each).__name__}" for each in deliveries]

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:
        self.seen.append(f"took {[count for _, count in taken]}")

    def on_renewal(self, now: Nanos, member: MemberId) -> None:
        self.seen.append(f"goes on as {member}")


class Desk:
    """A turn and everything around it."""

    def __init__(self, send_messages: int = 2) -> None:
        self.stack = Echo(A, Outbox())
        self.handover = Handover(send_messages)
        self.world, self.notes = World(), Notes()
        self.turn = Turn(
            A,
            self.stack,
            self.handover,
            self.world,
            watchers=(self.notes,),
            renew=lambda former: (MemberId(former.name, former.incarnation + 1), Random(1)),
        )
        self.turn.start(0)
        self.taken: list[object] = []
        self.read()
        self.notes.seen.clear()

    def hear(self, *payloads: bytes) -> None:
        self.turn.run(1, [(B, [Say(payload) for payload in payloads])])

    def send(self, *payloads: bytes) -> None:
        self.handover.send(Outgoing(payloads))
        self.turn.run(1)

    def read(self) -> list[object]:
        found: list[object] = []
        while self.handover:
            for each in self.handover.take(1):
                found += each.payloads if isinstance(each, Batch) else [each]
        self.taken += found
        return found


def test_a_burst_goes_in_and_everything_it_made_comes_out() -> None:
    desk = Desk()
    desk.turn.run(5, [(B, [Say(b"x"), Say(b"y")])], [Tick.TICK])
    assert desk.stack.log == ["start", "b: x", "b: y", "timer tick"]
    assert desk.read() == [b"x", b"y"]


def test_what_waits_is_given_in_until_flow_control_refuses_and_again_when_there_is_room() -> None:
    desk = Desk()
    desk.send(b"1", b"2", b"3")
    assert desk.world.sent == [b"12"]
    assert desk.handover.unsent == 1
    assert desk.notes.seen[:2] == ["took [2]", "Sent"]
    desk.turn.run(2)
    assert desk.world.sent == [b"12"], "nothing says that another try is worth it"
    desk.hear(b"room")
    assert desk.world.sent == [b"12", b"3"], "in the same turn"
    assert not desk.turn.busy()


def test_plain_messages_that_wait_one_behind_the_other_are_one_run() -> None:
    desk = Desk()
    desk.turn.stack.room = 100  # type: ignore[attr-defined]
    for payload in (b"1", b"2"):
        desk.handover.send_plain(payload)
    desk.handover.send(Outgoing([b"3"], Item("a")))
    desk.handover.send_plain(b"4")
    assert (desk.handover.unsent, desk.handover.unsent_bytes) == (4, 4)
    desk.turn.run(1)
    assert desk.world.sent == [b"12", b"3", b"4"], "in the order of the calls"
    assert (desk.handover.unsent, desk.handover.unsent_bytes) == (0, 0)


def test_updates_that_wait_one_behind_the_other_are_one_run() -> None:
    handover = Desk().handover
    handover.send_plain(b"1")
    handover.send_update(b"22", Item("a"))
    handover.send_update(b"3", Item("b"))
    handover.send_plain(b"4")
    handover.send_update(b"5", Item("a"))
    assert (handover.unsent, handover.unsent_bytes) == (5, 6)
    runs = []
    while handover.outgoing:
        head = handover.head()
        assert handover.head() is head, "looked at twice"
        runs.append((head.payloads, head.annotations, head.bytes(len(head.payloads))))
        handover.outgoing.popleft()
    assert runs == [
        ([b"1"], None, 1),
        ([b"22", b"3"], [Item("a"), Item("b")], 3),
        ([b"4"], None, 1),
        ([b"5"], [Item("a")], 1),
    ]


def test_what_flow_control_leaves_of_a_run_comes_before_what_was_sent_later() -> None:
    desk = Desk()
    for payload in (b"1", b"2", b"3"):
        desk.handover.send_plain(payload)
    desk.turn.run(1)
    desk.handover.send_plain(b"4")
    desk.turn.run(2)
    assert desk.world.sent == [b"12"]
    assert desk.handover.unsent == 2
    desk.hear(b"room")
    assert desk.world.sent == [b"12", b"3", b"4"]


def test_who_waits_in_send_is_woken_when_there_is_room() -> None:
    desk = Desk(send_messages=1)
    desk.send(b"1", b"2", b"3")
    assert not desk.handover.room_for(1)
    desk.handover.wait(reading=False)
    before = desk.world.woken
    desk.hear(b"room")
    assert desk.world.woken > before
    assert desk.handover.room_for(1)


def test_commands_come_before_frames() -> None:
    desk = Desk()
    desk.handover.call(lambda _stack, now: desk.stack.log.append(f"command at {now}"))
    desk.turn.run(7, [(B, [Say(b"x")])])
    assert desk.stack.log == ["start", "command at 7", "b: x"]


class Book:
    state = b"old"

    def export(self) -> bytes:
        return self.state

    def restore(self, state: bytes) -> None:
        self.state = state


def test_the_state_is_asked_for_and_restored_between_two_lists() -> None:
    desk, book = Desk(), Book()
    desk.handover.hooks = book
    wanted: list[Delivery] = [batch_of(B, 1, [b"x"]), StateRequested(4), StateReceived(5, b"new")]
    desk.stack.queue += [*wanted, batch_of(B, 2, [b"y"])]
    desk.turn.run(1)
    lists = []
    while desk.handover:
        lists.append([type(each).__name__ for each in desk.handover.take(1)])
    assert lists == [["Batch"], [], [], ["Batch"]]
    assert book.state == b"new"
    desk.turn.run(2)
    assert desk.stack.provided == [(4, b"old")]


def test_a_minority_is_told_once_a_view() -> None:
    desk = Desk()
    desk.hear(b"minority", b"minority")
    desk.hear(b"minority")
    assert desk.read() == [Minority(1, 2)]


def test_who_leaves_sends_the_rest_first_and_reads_no_more() -> None:
    desk = Desk()
    desk.send(b"1", b"2", b"3")
    desk.handover.leave()
    desk.turn.run(2)
    assert desk.world.sent == [b"12"], "the third waits for room"
    desk.hear(b"room", b"late")
    assert desk.turn.left == Left("asked to")
    assert desk.world.sent == [b"12", b"3"]


def test_who_was_put_out_goes_on_as_another_with_what_had_not_left() -> None:
    desk = Desk()
    desk.send(b"1", b"2", b"3")
    desk.hear(b"out")
    assert desk.turn.member == AGAIN
    assert desk.world.deeds.count("renewed as a#1") == 1
    assert desk.notes.seen.count("goes on as a#1") == 1
    assert desk.world.sent == [b"12"], "not before the application knows who it is"
    told = [each for each in desk.read() if isinstance(each, Rejoining)]
    assert told == [Rejoining(A, AGAIN, "too slow")]
    desk.handover.go_on()
    desk.turn.run(3)
    assert desk.world.sent == [b"12", b"3"]


def test_who_must_not_come_back_is_out_and_nothing_is_sent_or_delivered() -> None:
    desk = Desk()
    desk.turn._renew = None
    desk.send(b"1", b"2", b"3")
    desk.hear(b"out", b"late")
    assert desk.turn.left == Left("too slow", again=True)
    assert desk.handover.unsent == 0, "nobody takes it any more"
    assert b"late" not in desk.read()
    assert not desk.turn.busy()


def test_an_exception_of_the_stack_is_the_drivers_to_catch() -> None:
    desk = Desk()
    with pytest.raises(ZeroDivisionError):
        desk.hear(b"fail")


def test_a_call_is_always_welcome_where_nothing_waits() -> None:
    handover = Handover(2)
    assert handover.room_for(100)
    handover.send(Outgoing([b"."] * 100))
    assert not handover.room_for(1)
    assert handover.unsent == 100
    handover.taken(99, 99)
    assert handover.room_for(1)
    assert not handover.room_for(2)


def test_bytes_may_fill_the_queue_before_messages_do() -> None:
    handover = Handover(100, send_bytes=10)
    handover.send(Outgoing([bytes(6)]))
    assert handover.room_for(1), "what is handed over last may exceed the bound"
    handover.send(Outgoing([bytes(1000)], size=1000))
    assert handover.unsent_bytes == 1006
    assert not handover.room_for(1)
    handover.taken(1, 6)
    assert not handover.room_for(1)
    handover.taken(1, 1000)
    assert handover.room_for(1)


@pytest.mark.parametrize("size", [-1, 18])
def test_bytes_of_what_is_taken_in_parts_add_up(size: int) -> None:
    """Where somebody has counted them all each part has its share, and otherwise its own."""
    whole = Outgoing([bytes(3), bytes(5), bytes(10)], size=size)
    rest = whole.after(1)
    assert whole.bytes(1) + rest.bytes(1) + rest.after(1).bytes(1) == whole.bytes(3) == 18


def test_what_is_taken_frees_its_bytes() -> None:
    desk = Desk(send_messages=9)
    desk.send(b"1", b"22", b"333", b"4444")
    assert desk.handover.unsent == 2
    assert desk.handover.unsent_bytes == 7


def test_the_one_that_waits_for_more_is_woken_though_another_found_room() -> None:
    """Several tasks may wait in `send`: one that goes on must not make the turn forget the others."""
    desk = Desk(send_messages=2)
    desk.send(b"1", b"2", b"3", b"4")
    desk.handover.wait(reading=False)
    desk.handover.wait(reading=False)
    desk.handover.waited(reading=False)
    assert desk.handover.taken(0, 0)


def test_a_turn_that_only_makes_room_wakes_who_waits() -> None:
    desk = Desk(send_messages=1)
    desk.send(b"1", b"2", b"3")
    desk.read()
    desk.handover.wait(reading=False)
    desk.stack.room = 1
    desk.stack.silent = True
    desk.stack.out.deliver(Unblocked())
    before = desk.world.woken
    desk.turn.run(2)
    assert desk.world.woken == before + 1, "nothing was delivered that would have woken it"


def test_what_a_delivery_makes_the_stack_send_leaves_in_the_same_turn() -> None:
    desk = Desk()
    desk.stack.says_when_delivered = b"thanks"
    desk.hear(b"x")
    assert desk.world.sent == [b"thanks"]


def test_a_member_that_closes_does_not_come_back() -> None:
    desk = Desk()
    desk.stack.leaves = False
    desk.handover.leave()
    desk.turn.run(1)
    desk.hear(b"out")
    assert desk.turn.member == A
    assert desk.turn.left == Left("too slow", again=True)


def test_what_is_left_of_a_call_keeps_its_annotations() -> None:
    notes = [Item("a"), Item("b"), Item("c")]
    assert Outgoing([b"1", b"2", b"3"], annotations=notes).after(1) == Outgoing(
        [b"2", b"3"], annotations=notes[1:]
    )
    assert Outgoing([b"1", b"2"], safe=True).after(1) == Outgoing([b"2"], safe=True)


def test_a_call_that_is_taken_in_parts_is_asked_about_once_and_at_its_end() -> None:
    desk = Desk()
    asked: list[tuple[int, int]] = []

    def confirm(now: Nanos, ticket: int, *, safe: bool) -> None:
        asked.append((ticket, desk.stack.stats.sent))

    desk.stack.confirm = confirm  # type: ignore[method-assign]
    desk.handover.send(Outgoing([b"1", b"2", b"3"], confirm=(7, True)))
    desk.turn.run(1)
    assert (desk.stack.stats.sent, asked) == (2, []), "its last message has not left"
    desk.hear(b"room")
    assert asked == [(7, 3)]


def test_what_nobody_takes_any_more_is_answered() -> None:
    """Who waits to know what becomes of it must not wait for ever."""
    desk = Desk()
    desk.turn._renew = None
    desk.handover.send(Outgoing([b"1", b"2", b"3"], confirm=(7, True)))
    desk.handover.send(Outgoing([b"4"], confirm=(8, False)))
    desk.hear(b"out")
    assert [(each.ticket, type(each)) for each in desk.handover.answers] == [
        (7, Unconfirmed),
        (8, Unconfirmed),
    ]
