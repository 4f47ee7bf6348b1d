"""What a stack knows of its program: whether it waits, has stopped, receives anything, or closes."""

from collections.abc import Sequence

import pytest
from tests.core.test_core_turn import A, B, Desk, Echo, Notes, Say, World

from semcast.core import Batch, Delivery, HeldBack, MemberId, Nanos, Outbox, View, ViewChange
from semcast.core.events import Skipped, StateRequested, Unblocked
from semcast.core.handover import Handover
from semcast.core.holdup import Holdup
from semcast.core.ids import MILLISECOND
from semcast.core.mailbox import Mailbox
from semcast.core.messages import batch_of
from semcast.core.outgoing import Outgoing
from semcast.core.reading import LONG, PATIENCE
from semcast.core.turn import Turn
from semcast.sim.mutants.programs import ExcessUncounted


class Reserved(Echo):
    """One that has a reserve of its own, and says what it was told."""

    def __init__(self, me: MemberId, out: Outbox) -> None:
        super().__init__(me, out)
        self.told: list[str] = []
        self.unseen = False  # a view waits that the program does not know
        self.full = False  # queue and reserve
        self.held: HeldBack | None = None
        self.unsent = 0
        self.sends_when_deaf = False

    def on_reader(self, now: Nanos) -> None:
        reader = self.reader
        flags = {
            "waits": reader.waits,
            "deaf": not reader.receives,
            "closing": reader.closing,
            "stopped": reader.stopped,
        }
        if self.sends_when_deaf and not reader.receives:
            self.multicast(now, [b"mine"])
        self.told.append(" ".join([name for name, so in flags.items() if so]) or "reads")
        self.log.append(f"told: {self.told[-1]}")

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        self.unseen = False
        return super().deliver(now, most)

    def behind(self) -> bool:
        return self.unseen

    def overflowing(self) -> bool:
        return self.full

    def queued(self) -> int:
        return sum(len(each.payloads) for each in self.queue if isinstance(each, Batch)) + self.reader.excess

    def pending(self) -> int:
        return self.unsent

    def held_back(self) -> HeldBack | None:
        return self.held


class Office(Desk):
    """A turn on such a stack."""

    stack: Reserved

    def __init__(
        self,
        *,
        queue: int = 3,
        began: bool = True,
        receives: bool = True,
        kind: type[Handover] = Handover,
    ) -> None:
        self.stack = Reserved(A, Outbox())
        self.handover = kind(2, queue_messages=queue, receives=receives)
        self.world, self.notes = World(), Notes()
        self.turn = Turn(A, self.stack, self.handover, self.world, watchers=(self.notes,))
        self.turn.start(0)
        self.taken = []
        if began:
            self.read()
        self.notes.seen.clear()

    def fill(self) -> None:
        """The mailbox is full, and more waits in the stack."""
        for number in range(3):
            self.hear(b"%d" % number)
        assert self.stack.queue


def told(office: Office) -> list[str]:
    """What the stack was told of its program, but for its excess."""
    return office.stack.told


def test_who_reads_and_waits_in_send_waits_at_once() -> None:
    office = Office()
    office.handover.wait(reading=True)
    assert office.turn.busy(), "the stack has to know"
    office.turn.run(2)
    office.handover.waited(reading=True)
    office.turn.run(3)
    assert office.stack.told == ["waits", "reads"]


def test_with_another_task_in_send_it_waits_once_nothing_was_taken_for_a_second() -> None:
    office = Office()
    office.handover.wait(reading=False)
    office.fill()
    office.turn.run(PATIENCE)
    waited = [office.stack.reader.waits]
    office.turn.run(1 + PATIENCE)
    waited.append(office.stack.reader.waits)
    office.read()
    office.turn.run(2 + PATIENCE)
    waited.append(office.stack.reader.waits)
    office.turn.run(3 + PATIENCE)
    office.read()
    office.turn.run(9 * PATIENCE)
    waited.append(office.stack.reader.waits)
    assert waited == [False, True, False, False], "at last there is nothing to take"


def test_who_was_refused_waits_until_it_takes_or_sends_or_gives_up() -> None:
    office = Office()
    office.fill()
    for end in ("takes", "sends", "gives up"):
        office.handover.reading.refused(reading=True)
        assert office.turn.busy()
        office.turn.run(2)
        assert office.stack.reader.waits, end
        if end == "takes":
            office.handover.take(3)
        elif end == "sends":
            office.handover.send(Outgoing([b"1"]))
        office.turn.run(2 + PATIENCE if end == "gives up" else 3)
        assert not office.stack.reader.waits, end


def test_who_has_something_to_take_and_neither_takes_nor_waits_has_stopped() -> None:
    office = Office()
    office.hear(b"x")
    office.turn.run(1)
    office.turn.run(LONG)
    assert told(office) == []
    office.turn.run(1 + LONG)
    office.handover.wait(reading=True)
    office.turn.run(2 + LONG)
    office.handover.waited(reading=True)
    office.read()
    office.turn.run(3 + LONG)
    office.turn.run(4 + 2 * LONG)
    assert told(office) == ["stopped", "waits", "reads"], "at last there is nothing to take"


def test_a_view_goes_to_a_full_mailbox_if_anything_is_unsent_and_the_excess_counts() -> None:
    office = Office()
    office.fill()
    office.stack.unseen = True
    office.turn.run(2)
    assert office.stack.queue, "nothing is to be sent"
    office.stack.unsent = 1
    office.turn.run(3)
    assert not office.stack.queue
    assert office.stack.reader.excess == 1
    office.read()
    assert office.turn.busy(), "the stack counts what lay there"
    office.turn.run(4)
    assert office.stack.reader.excess == 0


@pytest.mark.parametrize(("kind", "within"), [(Handover, True), (ExcessUncounted, False)])
def test_views_again_and_again_put_no_more_into_a_mailbox_than_the_stack_counts(
    kind: type[Handover], within: bool
) -> None:
    """The stack takes nothing in while its queue is full: with the mutant it never is."""
    office = Office(kind=kind)
    office.fill()
    office.stack.unsent = 1
    for number in range(50):
        if office.stack.queued() < 3:
            office.stack.unseen = True
            office.hear(b"%d" % number)
    assert (office.handover.mailbox.held <= 2 * 3 + 3) is within


def test_what_is_delivered_fills_no_mailbox_beyond_its_bound_for_the_sake_of_who_waits() -> None:
    """The reserve is in the stack, where what is obsolete can be purged."""
    office = Office()
    office.fill()
    office.handover.wait(reading=True)
    office.turn.run(2)
    assert office.stack.queue


def test_who_waits_is_told_when_queue_and_reserve_are_full() -> None:
    office = Office()
    office.fill()
    office.stack.full = True
    office.turn.run(2)
    seen = [office.handover.overflows]  # nobody waits
    office.handover.wait(reading=True)
    before = office.world.woken
    office.turn.run(3)
    seen.append(office.handover.overflows)
    assert office.handover.backlog == 3
    assert office.world.woken > before
    office.stack.full = False
    office.turn.run(4)
    assert not office.handover.overflowing
    assert [*seen, office.handover.overflows] == [0, 1, 1]


def test_one_that_never_iterated_is_skipped_once_its_queue_is_full_and_told_so_when_it_does() -> None:
    office = Office(queue=2, began=False)
    for number in range(2):
        office.hear(b"%d" % number)
    assert told(office) == [], "one of them waits in the stack, the other in the mailbox"
    office.hear(b"2", b"3", b"4")
    assert told(office) == [], "its reading task may be about to start"
    office.turn.run(1 + LONG)
    assert told(office) == ["stopped", "deaf"]
    assert not office.stack.queue
    assert office.notes.seen.count("delivers Batch") == 5, "recorded as delivered all the same"
    office.stack.queue.append(ViewChange(View(7, (A, B)), joined=(B,)))
    office.hear(b"5")
    assert office.handover.begin(), "a turn has to see to it"
    assert office.turn.busy()
    office.hear(b"6")
    assert told(office) == ["stopped", "deaf", "reads"]
    assert office.read() == [Skipped(6), ViewChange(View(7, (A, B)), joined=(A, B)), b"6"]
    assert not office.handover.begin()


def test_what_is_sent_because_its_program_is_skipped_is_sent_before_it_is_delivered() -> None:
    office = Office(began=False)
    office.stack.sends_when_deaf = True
    office.fill()
    for number in range(3):
        office.hear(b"%d" % number)
    office.notes.seen.clear()
    office.turn.run(2 + LONG)
    assert office.handover.reading.skipping
    assert office.notes.seen[0] == "Sent"
    assert office.notes.seen.count("delivers Batch") == len(office.notes.seen) - 1


def test_the_view_that_lay_in_its_mailbox_is_not_lost_on_one_that_was_skipped() -> None:
    office = Office(queue=1, began=False)
    office.hear(b"0")
    office.hear(b"1")
    office.turn.run(1 + LONG)
    assert not office.stack.reader.receives
    office.handover.begin()
    office.turn.run(2)
    assert office.read() == [Skipped(2), ViewChange(View(1, (A,)), joined=(A,))]


def test_one_that_began_is_never_skipped() -> None:
    office = Office(queue=1)
    office.fill()
    office.turn.run(2)
    assert office.stack.queue
    assert office.stack.reader.receives


def test_who_receives_nothing_is_given_nothing_and_comes_back_all_the_same() -> None:
    office = Office(receives=False, began=False)
    for number in range(9):
        office.hear(b"%d" % number)
    assert not office.handover
    assert not office.stack.queue
    assert office.handover.skipped == 0, "it did not want them"
    assert not office.stack.reader.receives


def test_a_deaf_program_hears_of_no_state_either() -> None:
    office = Office(receives=False, began=False)
    office.stack.queue.append(StateRequested(3))
    office.turn.run(1)
    assert not office.stack.provided


def test_who_closes_drops_what_is_delivered_and_its_stack_knows() -> None:
    office = Office()
    office.stack.leaves = False
    office.fill()
    office.handover.leave()
    office.turn.run(2)
    assert office.stack.told == ["closing"]
    assert not office.stack.queue


def test_answers_go_before_what_other_tasks_send_while_somebody_holds_the_member_back() -> None:
    office = Office()
    handover = office.handover
    office.stack.room = 0
    office.send(b"1")
    handover.wait(reading=True)
    office.turn.run(2)
    assert handover.room_for(1, reading=True)
    assert not handover.room_for(1, reading=False)
    office.stack.held = HeldBack(B, "its program does not read")
    handover.waited(reading=True)
    office.turn.run(3)
    assert not handover.room_for(1, reading=False), "the next answer comes first, too"
    handover.wait(reading=False)
    office.stack.held = None
    before = office.world.woken
    office.turn.run(4)
    assert handover.room_for(1, reading=False)
    assert office.world.woken > before


def test_who_holds_a_member_back_and_for_how_long() -> None:
    office, key = Office(), ("b", "its program does not read")
    office.stack.room = 0
    office.send(b"1")
    office.stack.held = HeldBack(B, "its program does not read")
    office.turn.run(10 * MILLISECOND)
    assert office.turn.holdup.so_far(25 * MILLISECOND) == {key: 15 * MILLISECOND}
    office.turn.run(25 * MILLISECOND)
    assert office.turn.holdup.so_far(30 * MILLISECOND) == {key: 20 * MILLISECOND}
    office.stack.held = None
    office.stack.room = 2
    office.stack.out.deliver(Unblocked())
    office.turn.run(40 * MILLISECOND)
    assert office.turn.holdup.so_far(99 * MILLISECOND) == {key: 30 * MILLISECOND}


def test_counts_of_those_who_hold_back_have_a_bound() -> None:
    holdup = Holdup()
    for number in range(1000):
        holdup.note(number, HeldBack(None, f"reason {number}"))
    assert len(holdup.spent) <= 65


def test_a_list_holds_no_more_than_the_queue() -> None:
    handover = Handover(1, queue_messages=4)
    assert handover.mailbox.want == 4
    for _ in range(9):
        handover.mailbox.put([batch_of(B, 1, [b"."] * 4)])
        handover.take(0)
        handover.dealt_with(0)
    assert handover.mailbox.want == 4


@pytest.mark.parametrize("lists", [0, 2])
def test_only_what_a_mailbox_has_no_room_for_is_excess(lists: int) -> None:
    mailbox = Mailbox(lists)
    for count in (1, 2, 4, 8):
        mailbox.put([batch_of(B, 1, [b"."] * count)])
    assert mailbox.excess()[0] == (14 if lists == 0 else 12)
    mailbox.take(0)
    assert mailbox.excess()[0] == (12 if lists == 0 else 8)


def test_what_the_program_did_is_told_before_what_arrived_is_brought() -> None:
    """What arrived may need the room."""
    office = Office()
    office.handover.wait(reading=True)
    office.stack.log.clear()
    office.turn.run(2, [(B, [Say(b"x")])])
    assert office.stack.log == ["told: waits", "b: x"]
