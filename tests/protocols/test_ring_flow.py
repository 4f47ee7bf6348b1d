"""Flow control of the ring (`docs/flow-control.md`): programs that wait in `send`, never read, or stop."""

from collections.abc import Callable
from random import Random

import msgspec
import pytest
from tests.protocols.flowlab import LISTS, FlowLab, Plan, formula, tight, under_way
from tests.protocols.ringlab import RingLab

from semcast.core import Frame
from semcast.core.handover import Handover
from semcast.core.heldback import HeldBack
from semcast.core.ids import MILLISECOND
from semcast.core.outgoing import Outgoing
from semcast.protocols.ring import Ring, RingSettings, SlowPolicy, State
from semcast.protocols.ring.flow import Flow
from semcast.protocols.ring.frames import Token
from semcast.protocols.ring.settings import OVERHEAD
from semcast.sim.mutants import MUTANTS

BOTH = Plan(publishes=60, answers=1)
Script = Callable[[type[Ring]], FlowLab]


def run(plans: dict[str, Plan], settings: RingSettings, kind: type[Ring] = Ring, ms: int = 8_000) -> FlowLab:
    lab = FlowLab(plans, settings, kind)
    lab.start()
    lab.run_for(ms)
    return lab


def kind_of(mutant: str) -> type[Ring]:
    kind = MUTANTS["ring"][mutant].stack
    assert kind is not None
    assert issubclass(kind, Ring)
    return kind


# Programs that answer from their handlers


@pytest.mark.parametrize(
    ("names", "window", "queue", "send"), [("pq", 1, 1, 1), ("pqr", 1, 3, 2), ("pqr", 8, 1, 3)]
)
@pytest.mark.parametrize("reserve", [0, 1, None])
def test_members_that_answer_from_their_handlers_do_not_stop_the_ring(
    names: str, window: int, queue: int, send: int, reserve: int | None
) -> None:
    size = len(names)
    enough = formula(names, queue=queue, send=send, window=window)
    settings = tight(
        names, reserve=enough if reserve is None else reserve, queue=queue, send=send, window=window
    )
    lab = run(dict.fromkeys(names, BOTH), settings)
    assert not lab.stuck()
    heard = [program.heard for program in lab.programs.values()]
    assert len(heard[0]) == 60 * size**2 - lab.errors, "each message, and an answer of everybody else"
    assert all(each == heard[0] for each in heard)
    if reserve is None:
        assert not lab.errors


def burdened(lab: FlowLab, rng: Random, steps: int) -> None:
    """Programs read in fits and starts."""
    for _ in range(steps):
        for name, program in lab.programs.items():
            if len(program.heard) < program.plan.reads:
                lab.seats[name].reads = rng.random() < 0.5
        lab.run_for(rng.choice((1, 1, 3, 10)))


def drawn(seed: int, kind: type[Ring] = Ring) -> tuple[FlowLab, int]:
    """A ring of drawn programs, which breaks again and again; and the reserve, in messages."""
    rng = Random(seed)
    names = "pqrs"[: rng.choice((2, 3, 4))]
    queue, send, window = rng.choice((1, 1, 2, 4)), rng.choice((1, 1, 2, 4)), rng.choice((1, 1, 2, 8))
    answers = rng.choice((1, 2, 3))
    kinds = (
        Plan(answers=answers),
        Plan(answers=answers),
        Plan(publishes=600, answers=answers),
        Plan(publishes=600),
        Plan(publishes=rng.choice((0, 600)), reads=0),
    )
    enough = formula(names, queue=queue, send=send, window=window, answers=answers)
    reserve = rng.choice((0, 1, enough))
    plans = {name: rng.choice(kinds) for name in names}
    lab = FlowLab(plans, tight(names, reserve=reserve, queue=queue, send=send, window=window), kind)
    for name in names[:-1]:
        lab.seats[name].start()
    lab.run_for(400)
    lab.seats[names[-1]].start()
    burdened(lab, rng, 20)
    for _ in range(rng.randrange(1, 5)):
        lab.cut_off(rng.choice(names))
        burdened(lab, rng, rng.choice((100, 200)))
        lab.heal()
        burdened(lab, rng, rng.choice((5, 20, 60)))
    if len(names) > 2:
        lab.crash(rng.choice(names))
    for name, program in lab.programs.items():
        lab.seats[name].reads = len(program.heard) < program.plan.reads
    lab.run_for(15_000)
    return lab, reserve


@pytest.mark.parametrize("seed", range(12))
def test_nobody_is_stuck_through_changes_a_joiner_and_a_crash(seed: int) -> None:
    lab, reserve = drawn(seed)
    settings = lab.rings["p"].settings
    assert lab.stuck() == set()
    most = settings.queue_messages + reserve + 1.5 * under_way(settings, len(lab.rings))
    assert all(lab.flow_seat(name).peak <= most for name in lab.seats)
    if reserve > 1:
        assert not lab.errors


def test_answers_that_are_answered_end_with_an_error_and_not_in_silence() -> None:
    names = "pq"
    settings = tight(names, reserve=5, send=2)
    lab = FlowLab(dict.fromkeys(names, Plan(publishes=20, answers=3, to_answers=True)), settings)
    lab.start()
    lab.run_for(1_500)
    assert lab.errors
    assert all(lab.flow_seat(name).peak <= 1 + 5 + 1.5 * under_way(settings, 2) for name in names)
    before = [len(program.heard) for program in lab.programs.values()]
    lab.run_for(100)
    assert [len(program.heard) for program in lab.programs.values()] > before


# Programs that never read, or only publish


def test_a_program_that_never_reads_stops_nobody() -> None:
    lab = run({"p": Plan(publishes=200, reads=0), "q": BOTH, "r": BOTH}, tight("pqr", reserve=69))
    assert not lab.stuck()
    assert not lab.errors
    assert lab.programs["q"].heard == lab.programs["r"].heard
    assert sum(sender == "p" for sender, _ in lab.programs["q"].heard) == 200


def test_a_program_that_only_publishes_alone_never_stops() -> None:
    lab = run({"p": Plan(publishes=5_000, reads=0)}, tight("p", reserve=0))
    assert not lab.stuck()
    assert lab.rings["p"].stats.sent == 5_000
    assert lab.rings["p"].queued() <= 1


@pytest.mark.parametrize("reads", [0, 1])
def test_a_program_that_does_not_read_does_not_fall_mute_when_views_change(reads: int) -> None:
    """It sends in a configuration once it was given that, not once it has read on."""
    lab = FlowLab({"p": Plan(reads=reads), "q": Plan(), "r": Plan()}, tight("pqr", reserve=0, queue=20))
    lab.start()
    lab.run_for(1000)
    lab.seats["p"].reads = False
    for number in range(4):
        lab.cut_off("r")
        lab.run_for(1500)
        lab.heal()
        lab.run_for(1500)
        assert len(lab.rings["p"].view().members) == 3
        lab.multicast("p", b"?%d" % number)
        lab.run_for(500)
        assert lab.programs["q"].heard[-1] == ("p", b"?%d" % number)


# Programs that read, and stop


def stopped(policy: SlowPolicy, *, items: int = 0, kind: type[Ring] = Ring) -> FlowLab:
    """p reads three messages, and then none."""
    plans = {"p": Plan(reads=3, policy=policy), "q": Plan(publishes=50, items=items), "r": Plan()}
    return run(plans, tight("pqr", reserve=formula("pqr"), queue=2), kind)


@pytest.mark.parametrize(("policy", "items"), [(SlowPolicy.BLOCK, 1), (SlowPolicy.PURGE, 0)])
def test_who_stops_reading_holds_the_others_back_and_they_know(policy: SlowPolicy, items: int) -> None:
    lab = stopped(policy, items=items)
    assert lab.stuck() == {"q"}
    held = lab.rings["q"].held_back()
    assert held is not None
    assert held.by == lab.ids["p"]
    assert lab.flow_seat("p").peak == 2, "the reserve is for programs that wait"
    lab.programs["p"].plan = Plan(policy=policy)
    lab.seats["p"].reads = True
    lab.run_for(5000)
    assert not lab.stuck()
    assert len(lab.programs["p"].heard) == 50
    assert lab.rings["q"].held_back() is None


def test_who_stops_reading_holds_nobody_back_as_long_as_something_is_obsolete() -> None:
    lab = stopped(SlowPolicy.PURGE, items=2)
    assert not lab.stuck()
    assert len(lab.programs["r"].heard) == 50


def test_who_stops_reading_leaves_if_that_was_set() -> None:
    lab = stopped(SlowPolicy.LEAVE)
    assert not lab.stuck()
    assert lab.rings["p"].state is State.LEFT
    assert len(lab.programs["r"].heard) == 50


def test_the_others_go_on_without_who_stopped_and_has_no_room_for_a_change() -> None:
    """What a change of configuration hands over exceeds queue and reserve: no part in the next."""
    lab = FlowLab(
        {"p": Plan(reads=1), "q": Plan(publishes=200), "r": Plan()},
        tight("pqr", reserve=0, window=8, send=20),
    )
    lab.start()
    lab.run_for(2000)
    assert lab.stuck() == {"q"}
    lab.cut_off("r")
    lab.run_for(2000)
    assert lab.rings["p"].operation.overfull
    lab.heal()
    lab.run_for(5000)
    assert not lab.stuck()
    assert len(lab.rings["q"].view().members) == 2
    lab.programs["p"].plan = Plan()
    lab.seats["p"].reads = True
    lab.run_for(5000)
    assert len(lab.rings["q"].view().members) == 3


# Large messages


def large(kind: type[Ring] = Ring, *, policy: SlowPolicy = SlowPolicy.PURGE, items: int = 0) -> FlowLab:
    """p reads three messages of 500 bytes and stops; its queue has room for many, but not for their bytes."""
    plans = {
        "p": Plan(reads=3, policy=policy),
        "q": Plan(publishes=50, padding=500, items=items),
        "r": Plan(),
    }
    settings = msgspec.structs.replace(tight("pqr", reserve=0, queue=1000), queue_bytes=1100)
    return run(plans, settings, kind)


def bytes_are_bounded(kind: type[Ring]) -> bool:
    lab = large(kind)
    return lab.flow_seat("p").peak <= 3 and lab.stuck() == {"q"}


def test_who_reads_again_gets_all_that_was_too_large_for_its_queue() -> None:
    lab = large()
    assert lab.flow_seat("p").peak == 3, "the last one exceeds the bound"
    lab.programs["p"].plan = Plan()
    lab.seats["p"].reads = True
    lab.run_for(5000)
    assert not lab.stuck()
    assert len(lab.programs["p"].heard) == 50


def test_what_is_obsolete_and_as_large_holds_nobody_back() -> None:
    lab = large(items=2)
    assert not lab.stuck()
    assert lab.flow_seat("p").peak <= 3


def test_who_is_too_slow_for_bytes_leaves_if_that_was_set() -> None:
    lab = large(policy=SlowPolicy.LEAVE)
    assert not lab.stuck()
    assert lab.rings["p"].state is State.LEFT


@pytest.mark.parametrize("reserve", [0, 1, 1 << 20])
def test_messages_larger_than_any_bound_go_through(reserve: int) -> None:
    """Also where all answer, and nobody has room for one of them."""
    settings = msgspec.structs.replace(tight("pqr", reserve=0, queue=9), queue_bytes=1, reserve_bytes=reserve)
    lab = run(dict.fromkeys("pqr", Plan(publishes=5, answers=1, padding=300)), settings)
    assert not lab.stuck()
    heard = [program.heard for program in lab.programs.values()]
    assert len(heard[0]) == 5 * 3 * 3 - lab.errors
    assert all(each == heard[0] for each in heard)
    assert not (reserve > 1 and lab.errors)


def test_who_never_iterated_is_skipped_once_bytes_fill_its_queue() -> None:
    settings = msgspec.structs.replace(tight("pqr", reserve=0, queue=1000), queue_bytes=1000)
    lab = run({"p": Plan(reads=0), "q": Plan(publishes=50, padding=500), "r": Plan()}, settings)
    assert not lab.stuck()
    assert lab.seats["p"].handover.reading.skipping


# What a member tells its driver, and the others


def heaping(names: str, settings: RingSettings) -> FlowLab:
    """The program of p takes only what the test takes for it."""
    lab = FlowLab(dict.fromkeys(names, Plan()), settings)
    lab.start()
    lab.run_for(1000)
    lab.seats["p"].reads = False
    return lab


def test_a_stop_is_said_above_the_queue_and_taken_back_at_it() -> None:
    lab = heaping("pq", tight("pq", reserve=9, queue=2, send=9, window=9))
    tokens: list[Token] = []

    def carries(_source: str, _dest: str, frame: Frame) -> bool:
        if isinstance(frame, Token):
            tokens.append(frame)
        return True

    lab.carries = carries
    p, q = lab.rings["p"], lab.rings["q"]
    for number in range(LISTS + 2):
        lab.multicast("q", b"?%d" % number)
        lab.run_for(100)
    assert p.queued() == 2
    assert {token.stop for token in tokens} == {-1}, "the queue is full, no more"
    lab.seats["p"].handover.wait(reading=True)
    lab.multicast("q", b"one more")
    lab.run_for(100)
    assert p.queued() == 3
    assert tokens[-1].stop == p.order.rank
    lab.multicast("q", b"new")
    lab.run_for(1000)
    assert q.pending() == 1
    assert q.held_back() == HeldBack(lab.ids["p"], "its program does not keep up")
    lab.seats["p"].read(1)
    lab.run_for(100)
    assert tokens[-1].stop == -1
    assert q.pending() == 0
    assert q.held_back() is None


def test_who_waits_or_closes_sends_during_a_stop_what_it_has_pending() -> None:
    lab = heaping("pqr", tight("pqr", reserve=9, send=9, window=9))
    lab.seats["p"].handover.wait(reading=True)
    for number in range(LISTS + 2):
        lab.multicast("q", b"?%d" % number)
    lab.run_for(100)
    lab.multicast("q", b"pending")
    lab.multicast("r", b"pending")
    lab.multicast("p", b"answer")
    lab.run_for(1000)
    assert lab.programs["q"].heard[-1] == ("p", b"answer"), "p waits"
    assert [lab.rings[name].pending() for name in "pqr"] == [0, 1, 1]
    lab.seats["q"].handover.leave()
    lab.run_for(1000)
    assert lab.programs["r"].heard[-1] == ("q", b"pending"), "q closes"
    assert lab.rings["q"].state is State.LEFT
    assert lab.rings["r"].pending() == 1


def test_the_reserve_is_counted_in_bytes_and_fills_to_the_last() -> None:
    lab = heaping("pq", tight("pq", reserve=0, queue=2, send=99, window=9))
    settings = msgspec.structs.replace(lab.rings["p"].settings, reserve_bytes=3 * (OVERHEAD + 6))
    lab = heaping("pq", settings)
    ring = lab.rings["p"]
    for name in "pq":  # so that q goes on sending
        lab.seats[name].handover.wait(reading=True)
    for number in range(40):
        assert ring.overflowing() == (ring.queued() >= 5)
        lab.multicast("q", b"%6d" % number)
        lab.run_for(20)
    assert ring.queued() == 5
    assert ring.overflowing()


def test_a_member_is_behind_until_its_program_was_given_the_configuration() -> None:
    lab = RingLab("pq", RingSettings())
    lab.seats["p"].reads = False
    ring = lab.rings["p"]
    assert not ring.behind(), "nothing to take"
    lab.start()
    lab.run_for(1000)
    assert [len(each.order.members) for each in lab.rings.values()] == [2, 2]
    assert ring.behind()
    assert ring.held_back() is None, "nothing to send"
    lab.seats["p"].read(1)
    assert not ring.behind()


def test_who_has_left_is_not_behind() -> None:
    lab = RingLab("p", RingSettings())
    lab.seats["p"].reads = False
    lab.start()
    lab.seats["p"].call(lambda stack, now: stack.leave(now))
    assert lab.rings["p"].state is State.LEFT
    assert lab.rings["p"].deliverable()
    assert not lab.rings["p"].behind()


def test_a_full_queue_closes_the_window_after_half_of_it() -> None:
    lab = heaping("pq", tight("pq", reserve=0, queue=2, send=40, window=8))
    for number in range(30):
        lab.multicast("q", b"message %d" % number)
    lab.run_for(1000)
    most = LISTS + 2 + 1 + 4 + 8  # mailbox, queue, one that rests, 4 + 8
    assert lab.rings["p"].order.highest_seq == most - 1, "one packet is left to others"
    assert lab.rings["q"].held_back() == HeldBack(lab.ids["p"], "it lacks messages, or has no room for them")


# Each rule is needed


def questions(kind: type[Ring]) -> FlowLab:
    """One publishes, two answer each message three times."""
    plans = {"p": Plan(publishes=60), "q": Plan(answers=3), "r": Plan(answers=3)}
    return run(plans, tight("pqr", reserve=formula("pqr", answers=3)), kind)


def changes_meanwhile(kind: type[Ring]) -> FlowLab:
    """p answers each message three times, and r comes and goes."""
    plans = {"p": Plan(answers=3), "q": Plan(publishes=400), "r": Plan()}
    lab = FlowLab(plans, tight("pqr", reserve=formula("pqr", answers=3, window=4), window=4), kind)
    lab.start()
    lab.run_for(500)
    for turn in range(6):
        lab.cut_off("r")
        lab.run_for(600 + 17 * turn)
        lab.heal()
        lab.run_for(150 + 13 * turn)
    lab.run_for(15_000)
    return lab


def growth(kind: type[Ring]) -> int:
    """q stopped reading, and has more than its queue; how much does each change of configuration add?"""
    plans = {"p": Plan(publishes=1000), "q": Plan(reads=1), "r": Plan()}
    lab = FlowLab(plans, tight("pqr", reserve=300, window=8, send=20), kind)
    lab.start()
    lab.run_for(2000)
    sizes = []
    for _ in range(4):
        lab.cut_off("r")
        lab.run_for(1000)
        lab.heal()
        lab.run_for(1000)
        sizes.append(lab.rings["q"].queued())
    assert sizes[0] > lab.rings["q"].settings.queue_messages
    return sizes[-1] - sizes[0]


def heaped(handover: type[Handover]) -> int:
    """q reads no more, and sends in every configuration: how much waits for it in the end?

    What comes before a configuration is put into the mailbox, full or not, so that q can send there.
    """
    plans = {"p": Plan(publishes=1000), "q": Plan(reads=1), "r": Plan()}
    lab = FlowLab(plans, tight("pqr", reserve=300, window=8, send=20), handover=handover)
    lab.start()
    lab.run_for(2000)
    for _ in range(6):
        lab.cut_off("r")
        lab.run_for(1000)
        lab.seats["q"].send_or_wait(Outgoing([b"!"]))
        lab.heal()
        lab.run_for(2000)
    return lab.seats["q"].handover.mailbox.held + len(lab.rings["q"].operation.outlet)


def test_what_the_mailbox_holds_beyond_its_bound_counts() -> None:
    counted = heaped(Handover)
    assert counted <= 1 + LISTS + 1.5 * under_way(tight("pqr", reserve=0, window=8), 3)
    mutant = MUTANTS["ring"]["excess-uncounted"].handover
    assert heaped(mutant) > 2 * counted


def waits_for_long(kind: type[Ring]) -> FlowLab:
    """p waits in `send` with a full queue, for longer than it would put up with a program that stopped."""
    settings = msgspec.structs.replace(tight("pqr", reserve=300), leave_after=300 * MILLISECOND)
    plans = {
        "p": Plan(answers=3, policy=SlowPolicy.LEAVE),
        "q": Plan(publishes=100),
        "r": Plan(reads=20),
    }
    lab = FlowLab(plans, settings, kind)
    lab.start()
    lab.run_for(5000)
    return lab


def crowd(kind: type[Ring]) -> FlowLab:
    """More members than the window, and all of them send."""
    names = "pqrstuvwxyz"
    settings = RingSettings(window=8, visit=8, packet_bytes=10)
    lab = FlowLab(dict.fromkeys(names, Plan(publishes=500)), settings, kind)
    lab.start()
    lab.run_for(800)
    return lab


def rotations(kind: type[Flow], size: int, begins: int) -> list[list[int]]:
    """What each member sends in each rotation: the first has no end of it, and one begins later.

    The token shows who wants to send (`pressing`), and what had reached everybody one rotation ago.
    """
    limits = RingSettings(visit=32, window=32, adaptive=False)
    flows = [kind(limits, size) for _ in range(size)]
    sent: list[list[int]] = []
    fcc = seq = aru = 0
    pressing = -1
    for rotation in range(begins + 20):
        sent.append([0] * size)
        for me in range(size):
            wants = me == 0 or (me == size // 2 and rotation >= begins)
            shared = pressing not in (-1, me)
            room = flows[me].allowance(seq, aru, fcc, shared=shared) if wants else 0
            fcc = flows[me].account(seq, fcc, room, seq + room, lost=False)
            seq += room
            sent[-1][me] = room
            pressing = me if wants else -1 if pressing == me else pressing
        aru = seq - sum(sent[-1])
    return sent


def whoever_begins_sends_at_once(kind: type[Ring]) -> bool:
    flow = kind.operation_kind.rotation_kind.flow_kind
    return all(
        rotations(flow, size, begins)[begins][size // 2] > 0 for size in (3, 24) for begins in range(9, 13)
    )


def never_stuck(script: Script) -> Callable[[type[Ring]], bool]:
    return lambda kind: not script(kind).stuck()


SOUND: dict[str, Callable[[type[Ring]], bool]] = {
    "no-reserve": never_stuck(questions),
    "nobody-exempt": never_stuck(questions),
    "nobody-says-stop": lambda kind: not questions(kind).errors,
    "stop-at-full-queue": lambda kind: not stopped(SlowPolicy.PURGE, items=2, kind=kind).stuck(),
    "stop-forgotten": lambda kind: growth(kind) == 0,
    "view-seen-by-reader-only": never_stuck(changes_meanwhile),
    "change-only-below-queue": never_stuck(changes_meanwhile),
    "bytes-uncounted": bytes_are_bounded,
    "leave-clock-runs-in-send": lambda kind: waits_for_long(kind).rings["p"].state is State.OPERATIONAL,
    "window-for-oneself": whoever_begins_sends_at_once,
    "window-below-members": lambda kind: min(r.stats.sent for r in crowd(kind).rings.values()) > 20,
}
"""By mutant: what the ring does, and the mutant does not."""


@pytest.mark.parametrize("mutant", SOUND)
def test_each_rule_is_needed(mutant: str) -> None:
    holds = SOUND[mutant]
    assert holds(Ring)
    assert not holds(kind_of(mutant))


@pytest.mark.parametrize("size", [3, 24])
def test_who_sends_alone_has_the_window_until_somebody_else_wants_to_send(size: int) -> None:
    sent = rotations(Flow, size, 20)
    alone = [each[0] for each in sent[2:20]]
    assert sum(alone) >= len(alone) * 30 // 2, "all but two packets, each under way for two rotations"
    together = [sum(each[who] for each in sent[24:]) for who in (0, size // 2)]
    assert max(together) <= 3 * min(together)


def test_every_active_sender_has_a_turn_in_every_rotation() -> None:
    sent = [ring.stats.sent for ring in crowd(Ring).rings.values()]
    assert max(sent) - min(sent) <= 5
