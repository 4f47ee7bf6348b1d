"""Broken rings that chance rarely meets, each in a situation made for it.

The same script runs the ring, which withstands it, and the mutant, which a checker must catch by name.
"""

from collections.abc import Callable
from unittest.mock import patch

import pytest
from tests.protocols.ringlab import RecordingLab
from tests.protocols.test_ring_flow import SOUND

from semcast.core import Frame
from semcast.core.outgoing import Outgoing
from semcast.history import Kind
from semcast.protocols.ring import Cause, Ring, RingSettings, State
from semcast.protocols.ring.frames import FormToken, Packet, Token
from semcast.sim.mutants import MUTANTS

SETTINGS = RingSettings(packet_bytes=10, visit=4, visit_least=4, window=16)
Script = Callable[[type[Ring]], RecordingLab]


def formed(names: str, kind: type[Ring]) -> RecordingLab:
    lab = RecordingLab(names, SETTINGS, kind)
    lab.start()
    lab.run_for(1000)
    assert all(len(ring.order.members) == len(names) for ring in lab.rings.values())
    return lab


def split(lab: RecordingLab, *sides: str) -> None:
    """From now on only those hear each other who are on the same side."""
    lab.carries = lambda source, dest, _frame: any({source, dest} <= {*side} for side in sides)


def healed(lab: RecordingLab) -> RecordingLab:
    """All find each other again, and nothing is owed any more."""
    lab.carries = lambda *_: True
    lab.run_for(5000)
    assert {ring.state for ring in lab.rings.values()} == {State.OPERATIONAL}
    assert len({ring.order.conf for ring in lab.rings.values()}) == 1
    return lab


def until(lab: RecordingLab, name: str, state: State) -> None:
    for _ in range(1000):
        if lab.rings[name].state is state:
            return
        lab.run_for(1)
    raise AssertionError(f"{name} is in {lab.rings[name].state}, not in {state}")


def given(lab: RecordingLab, name: str, source: str, frame: Frame) -> None:
    """A frame that was long under way arrives."""
    lab.seats[name].hear(lab.ids[source], frame)


def late_packet(kind: type[Ring]) -> RecordingLab:
    """The last packet of r comes to p when p has said what it knows, and to q never."""
    lab = formed("pqr", kind)
    late: list[Frame] = []

    def carries(source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, Packet) and dest == "p":
            late.append(frame)
        if isinstance(frame, FormToken) and (source, dest) == ("p", "q") and late:
            assert lab.rings["p"].state is State.FORM
            lab.seats["p"].hear(lab.ids["r"], late.pop())
        return "r" not in (source, dest) or (isinstance(frame, Token) and not late)

    lab.carries = carries
    lab.multicast("r", b"late")
    lab.run_for(1000)
    assert not late
    assert "regular {p q}" in lab.story["q"]
    return healed(lab)


def late_hole(kind: type[Ring]) -> RecordingLab:
    """Of two packets of r both others get the second; the first comes to p when p has said what it lacks."""
    lab = formed("pqr", kind)
    packets: list[Packet] = []
    late: list[Packet] = []

    def carries(source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, Packet) and source == "r":
            packets.append(frame)
            if frame.seq > packets[0].seq:
                return True
            late.extend([frame] if dest == "p" else [])
        if isinstance(frame, FormToken) and (source, dest) == ("p", "q") and late:
            lab.seats["p"].hear(lab.ids["r"], late.pop())
        return "r" not in (source, dest) or (isinstance(frame, Token) and not packets)

    lab.carries = carries
    lab.multicast("r", b"the first")
    lab.multicast("r", b"the second")
    lab.run_for(1000)
    assert len({packet.seq for packet in packets}) == 2
    assert not late
    assert "regular {p q}" in lab.story["q"]
    return healed(lab)


def cut_in_the_middle_of_a_message(kind: type[Ring]) -> RecordingLab:
    """Some fragments of p have left when r is cut off; the ring of p and q gets the rest."""
    lab = formed("pqr", kind)
    packets = 0

    def carries(source: str, dest: str, frame: Frame) -> bool:
        nonlocal packets
        packets += isinstance(frame, Packet)
        return "r" not in (source, dest) or packets < 4

    lab.carries = carries
    lab.multicast("p", b"a message in several fragments, as it is larger than a packet")
    lab.run_for(1000)
    assert lab.rings["q"].view().members == (lab.ids["p"], lab.ids["q"])
    return healed(lab)


def torn_after_a_promise(kind: type[Ring]) -> RecordingLab:
    """The end of the example of section 4.2: r installs because q promised, and q does not get that far.

    A packet of p is lost to both, and a safe message of r comes after that hole: q owes it.
    """
    lab = formed("pqr", kind)
    lab.carries = lambda source, _dest, frame: source != "p" or not isinstance(frame, Packet)
    lab.multicast("p", b"lost")
    lab.multicast("r", b"owed", safe=True)
    lab.run_for(200)
    torn = False

    def carries(source: str, dest: str, frame: Frame) -> bool:
        nonlocal torn
        torn = torn or (isinstance(frame, Token) and frame.conf.representative == lab.ids["q"])
        return "p" not in (source, dest) and not torn

    lab.carries = carries
    lab.run_for(1500)
    assert "transitional {q r} owed regular {q r}" in " ".join(lab.story["r"])
    assert "regular {q r}" not in lab.story["q"]
    return healed(lab)


def moved_on(kind: type[Ring]) -> RecordingLab:
    """p lists q in a Form token that reaches q when it has already formed a ring of its own.

    s, for whom p forms it, knows of later configurations, so the token has a number that q has not seen.
    """
    lab = RecordingLab("pqs", SETTINGS, kind)
    split(lab, "pq", "s")
    lab.rings["s"].formation.forming.highest = 10
    lab.start()
    lab.run_for(1000)
    split(lab, "ps", "q")
    until(lab, "p", State.FORM)
    assert lab.story["q"][-1] == "regular {p q}"
    lab.rings["q"].formation.on_token_loss(lab.now)  # before p gives up to pass it the Form token
    lab.seats["q"].run()
    until(lab, "q", State.OPERATIONAL)
    assert lab.story["q"][-1] == "regular {q}"
    assert lab.rings["p"].state is State.FORM
    split(lab, "pq", "ps", "qs")
    lab.run_for(1000)
    return healed(lab)


def an_earlier_attempt_comes_back(kind: type[Ring]) -> RecordingLab:
    """q follows p's Form token, gives up, follows that of a, gives up; then a copy of p's token arrives.

    p is still waiting for the second round of its own. By what q put in, q lacks a packet of x that it has
    delivered in the meantime.
    """
    lab = RecordingLab("apqx", SETTINGS, kind)
    split(lab, "a", "pqx")
    lab.start()
    lab.run_for(1000)
    p, q, x = (lab.rings[name] for name in "pqx")
    assert p.order.conf == q.order.conf == x.order.conf
    late: list[Frame] = []
    copies: list[Frame] = []
    links = {"pq", "qp"}

    def carries(source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, Packet) and dest == "p":
            late.append(frame)
        if "x" in (source, dest):
            return isinstance(frame, Token) and not late
        if isinstance(frame, FormToken) and (source, dest) == ("p", "q"):
            copies.append(frame)
            return frame.rotation == 1
        if isinstance(frame, FormToken) and (source, dest) == ("q", "a"):
            return False
        return source + dest in links

    lab.carries = carries
    for payload in (b"1", b"2", b"3", b"4"):
        lab.seats["x"].handover.send(Outgoing([payload], safe=payload == b"2"))  # four packets
    lab.seats["x"].run()
    until(lab, "p", State.EVS)
    assert q.state is State.FORM
    links.clear()
    links.update({"aq", "qa"})
    lab.run_for(200)
    given(lab, "p", "x", late[1])  # a sign of life: p goes on waiting
    until(lab, "q", State.GATHER)
    given(lab, "p", "x", late[2])
    given(lab, "q", "x", late[0])
    until(lab, "q", State.FORM)
    assert q.formation.forming.form_id is not None
    assert q.formation.forming.form_id.representative == lab.ids["a"]
    links.clear()
    lab.run_for(100)
    given(lab, "p", "x", late[3])
    lab.rings["q"].formation.on_token_loss(lab.now)
    until(lab, "q", State.GATHER)
    assert p.state is State.EVS
    lab.carries = lambda source, dest, _frame: source + dest in ("pq", "qp")
    given(lab, "q", "p", copies[0])
    lab.run_for(100)
    return healed(lab)


def form_token_never_arrives(kind: type[Ring]) -> RecordingLab:
    """A link on which Form tokens are lost on their second rotation, for good: p and q go on without r."""
    lab = RecordingLab("pqr", SETTINGS, kind)
    lab.carries = lambda _, dest, frame: (
        dest != "r" or not isinstance(frame, FormToken) or frame.rotation == 1
    )
    lab.start()
    lab.run_for(5000)
    return lab


def lost_on_the_way_to_one(kind: type[Ring]) -> RecordingLab:
    """r never gets the message of p, of which p wants to know when all have it; then r is cut off."""
    lab = formed("pqr", kind)
    lab.carries = lambda _source, dest, frame: dest != "r" or not isinstance(frame, Packet)
    assert lab.seats["p"].offer(Outgoing([b"x"], confirm=(1, True))) == 1
    lab.run_for(3)
    split(lab, "pq", "r")
    lab.run_for(2000)
    return healed(lab)


FEW = 4


@patch("semcast.protocols.ring.delivery.CHANGES", FEW)
def quiet_changes(kind: type[Ring]) -> RecordingLab:
    """The program of p stops reading, and the ring changes again and again; sometimes q sends."""
    lab = formed("pqr", kind)
    lab.seats["p"].reads = False
    for turn in range(16):
        split(lab, "pq", "r")
        lab.run_for(800)
        if turn % 4 == 3:
            lab.multicast("q", b"%d" % turn)
            lab.run_for(100)
        split(lab, "pqr")
        lab.run_for(1500)
    lab.seats["p"].reads = True
    lab.run_for(100)
    return healed(lab)


CAUGHT: list[tuple[str, Script, set[str]]] = [
    ("late-packets-delivered", late_packet, {"evs_4_failure_atomicity"}),
    ("holes-not-agreed", late_hole, {"evs_4_failure_atomicity"}),
    ("half-sent-goes-on", cut_in_the_middle_of_a_message, {"contents"}),
    ("fragments-kept", cut_in_the_middle_of_a_message, {"contents"}),
    ("obligation-set-forgotten", torn_after_a_promise, {"evs_7_1_safe"}),
    ("form-token-of-another-configuration", moved_on, {"evs_2_2_inside_configuration"}),
    ("safe-when-delivered", lost_on_the_way_to_one, {"confirmed"}),
    ("form-tokens-in-any-order", an_earlier_attempt_comes_back, {"evs_4_failure_atomicity"}),
    ("merged-with-messages", quiet_changes, {"evs_1_3_sent_before_in_same_configuration"}),
]


def test_every_mutant_that_chance_misses_is_here() -> None:
    rings = {name: mutant for name, mutant in MUTANTS["ring"].items() if mutant.stack is not None}
    missed = {name for name, mutant in rings.items() if not mutant.by_chance}
    elsewhere = {  # test_ring_pieces, test_sim_ring_forming, test_ring_flow, test_ring_namesakes
        "namesakes-let-in",
        "namesakes-put-out",
        "piece-taken-for-the-whole",
        "pieces-mixed",
        "backoff-without-cap",
        "terms-ignored",
    }
    assert missed == {name for name, _, _ in CAUGHT} | {"nobody-fails"} | {*SOUND} | elsewhere


@pytest.mark.parametrize("script", dict.fromkeys(script for _, script, _ in CAUGHT))
def test_the_ring_withstands(script: Script) -> None:
    assert script(Ring).broken() == set()


def kind_of(mutant: str) -> type[Ring]:
    kind = MUTANTS["ring"][mutant].stack
    assert kind is not None
    assert issubclass(kind, Ring)
    return kind


@pytest.mark.parametrize(("mutant", "script", "names"), CAUGHT)
def test_a_mutant_is_caught_by_name(mutant: str, script: Script, names: set[str]) -> None:
    assert script(kind_of(mutant)).broken() >= names


def test_each_attempt_that_fails_goes_on_without_somebody() -> None:
    """Termination (5.2.2). The swarm heals its networks, and so never asks for it."""
    lab = form_token_never_arrives(Ring)
    assert lab.story["p"][-1] == "regular {p q}"
    assert lab.rings["p"].standing.moves[State.EVS, Cause.TOKEN_LOST] <= 4
    stuck = form_token_never_arrives(kind_of("nobody-fails"))
    assert stuck.rings["p"].standing.moves[State.EVS, Cause.TOKEN_LOST] > 5


def test_configurations_without_messages_are_merged_where_too_many_wait() -> None:
    lab = quiet_changes(Ring)
    assert lab.broken() == set()
    merged = [event for event in lab.history.events if event.kind is Kind.MERGED]
    assert {event.process.name for event in merged} == {"p"}
    views = {name: sum(story.startswith("regular") for story in lab.story[name]) for name in "pq"}
    assert sum(event.count for event in merged) == views["q"] - views["p"] > 2 * FEW
    assert lab.story["p"][-1] == "regular {p q r}"
    sent = [each for each in lab.story["q"] if each.isdigit()]
    assert [each for each in lab.story["p"] if each.isdigit()] == sent
