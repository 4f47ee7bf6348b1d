"""Mistakes that chance seldom finds: each has a script in which it shows, and nothing is wrong without it.

A script takes a group to where the mistake matters; what then happens is judged by the checkers.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.protocols.vsync.test_vsync_flow_mutants import CASES as FLOW_CASES
from tests.protocols.vsync.vsynclab import MS
from tests.protocols.vsync.watchedlab import WatchedLab

from semcast.core import Frame, MemberId
from semcast.core.ids import SECOND
from semcast.obsolescence import Purging
from semcast.protocols.semantic.frames import Data
from semcast.protocols.vsync import Engine, Order, VirtualSynchrony
from semcast.protocols.vsync.consensus_frames import ConsensusFrame, Decision
from semcast.protocols.vsync.frames import Accept, Init, InView, Pred, StateChunk, Welcome
from semcast.sim.mutants import MUTANTS, swarmed
from semcast.sim.mutants.vsync import CausesNotAwaited
from semcast.sim.mutants.vsync_ends import LeaverDeafAtOnce

A = MemberId("a")
LONG = 3 * SECOND


def orders(frame: Frame) -> bool:
    """Whether a frame is about the order of consensus."""
    return isinstance(frame, ConsensusFrame) and frame.instance.number > 0


def changes(frame: Frame) -> bool:
    """Whether a frame is about the next view."""
    return isinstance(frame, Init | Pred) or (isinstance(frame, ConsensusFrame) and not frame.instance.number)


def carries(frame: Frame, rank: int) -> bool:
    """Whether a frame has messages of the member of a rank."""
    return isinstance(frame, InView) and isinstance(frame.frame, Data) and frame.frame.sender == rank


def nothing(_source: str, _dest: str, _frame: Frame) -> bool:
    return False


def acknowledged_after_pred(lab: WatchedLab) -> None:
    """What a proposes comes to b after it has frozen; a delivers if b adopts it, and is gone."""
    a, b = lab["a"], lab["b"]
    proposed: list[Frame] = []
    silent = held = False

    def lose(source: str, dest: str, frame: Frame) -> bool:
        if source == "a" and dest == "b" and orders(frame):
            proposed.append(frame)
        if source == "a":
            return silent or orders(frame)
        return changes(frame) and (held or dest == "a")

    lab.lost = lose
    b.multicast(b"first")
    lab.run(2 * MS)
    a.multicast(b"second")
    lab.run(5 * MS)
    silent = held = True
    while b.stack.phase() == "operational":
        lab.run(MS)
    proposed.clear()
    for _ in range(50):
        while proposed:
            b.hear(A, proposed.pop(0))
        lab.run(2 * MS)
    a.crash()
    held = False
    lab.run(LONG)
    assert lab["c"].views[-1] == ["b", "c"]


def round_ignored_in_reports(lab: WatchedLab) -> None:
    """In round 1 only a adopts a value; b decides on another in round 2, and only c knows of that."""
    a, b = lab["a"], lab["b"]

    def lose(source: str, dest: str, frame: Frame) -> bool:
        return orders(frame) and ("a" in (source, dest) or isinstance(frame, Decision))

    lab.lost = lose
    a.multicast(b"second")
    b.multicast(b"first")
    while not b.messages:
        lab.run(MS // 2)
    b.crash()
    lab.run(LONG)
    assert lab["c"].views[-1] == ["a", "c"]


def old_chunk_accepted(lab: WatchedLab) -> None:
    """The state at the beginning of view 2 comes to d when it waits for that of view 3."""
    lab["a"].multicast(b"in view 1")
    lab.run(100 * MS)
    chunks: list[Frame] = []

    def lose(_source: str, dest: str, frame: Frame) -> bool:
        if dest == "d" and isinstance(frame, StateChunk):
            chunks.append(frame)
            return True
        return False

    lab.lost = lose
    d = lab.join("d")
    while not chunks:
        lab.run(MS)
    lab["a"].multicast(b"in view 2")
    lab.run(20 * MS)
    lab["c"].leave()
    while d.stack.view().id < 3:
        lab.run(MS)
    d.hear(A, chunks[0])
    lab.lost = nothing
    lab.run(LONG)
    assert d.views == [["a", "b", "d"]]


def stamp_lost_with_run(lab: WatchedLab) -> None:
    """A run of b comes after a message of a. When c asks for it, b has taken it apart."""
    a, b, c = lab["a"], lab["b"], lab["c"]
    lab.lost = lambda _source, dest, frame: dest == "c" and (carries(frame, 0) or carries(frame, 1))
    a.multicast(b"cause")
    lab.run(5 * MS)
    b.update("u", "v", "w", "x", "y", "z")
    lab.run(100 * MS)
    lab.lost = lambda _source, dest, frame: dest == "c" and carries(frame, 0)
    lab.run(100 * MS)
    assert not c.views[1:]
    lab.lost = nothing
    lab.run(LONG)
    assert len(c.messages) == 7


def sets_order_not_safe(lab: WatchedLab) -> None:
    """What a says about the order stays with a, though the messages are everywhere."""
    lab.lost = lambda _source, _dest, frame: carries(frame, 0)
    lab["c"].multicast(b"first")
    lab.run(20 * MS)
    lab["b"].multicast(b"second")
    lab.run(20 * MS)
    lab["a"].crash()
    lab.run(LONG)
    assert lab["c"].views[-1] == ["b", "c"]


def safe_with_f_votes(lab: WatchedLab) -> None:
    """A message that its sender alone has is not safe."""
    lab.lost = lambda _source, _dest, frame: carries(frame, 0)
    lab["a"].multicast(b"lost")
    lab.run(50 * MS)
    lab["a"].crash()
    lab.run(LONG)
    assert lab["c"].views[-1] == ["b", "c"]


def leaver_not_in_cut(lab: WatchedLab) -> None:
    """A message of b is safe, since c has it, too. Then b crashes, and c leaves."""
    lab.lost = lambda _source, dest, frame: dest == "a" and carries(frame, 1)
    b, c = lab["b"], lab["c"]
    b.multicast(b"safe")
    while not b.messages:
        lab.run(MS)
    b.crash()
    c.leave()
    lab.run(5 * MS)
    assert lab["a"].stack.phase() == "flushing"
    lab.lost = nothing
    lab.run(LONG)
    assert lab["a"].views[-1] == ["a"]


def skipped_before_causes(lab: WatchedLab) -> None:
    """A message of b that comes after one of a is purged before c gets either."""
    a, b, c = lab["a"], lab["b"], lab["c"]
    lab.lost = lambda _source, dest, frame: dest == "c" and (carries(frame, 0) or carries(frame, 1))
    a.multicast(b"cause")
    lab.run(5 * MS)
    for _ in range(2):
        b.update("x")
        lab.run(50 * MS)
    assert b.stack.stats.purged_retransmission == 1
    lab.lost = lambda _source, dest, frame: dest == "c" and carries(frame, 0)
    lab.run(100 * MS)
    assert not c.views[1:]
    lab.lost = nothing
    lab.run(LONG)
    assert len(c.messages) == 2


CAUSAL: dict[str, Any] = {"order": Order.CAUSAL}
TOKEN: dict[str, Any] = {"order": Order.TOTAL, "engine": Engine.TOKEN, "uniform": True}
BATCHES: dict[str, Any] = {"order": Order.TOTAL, "engine": Engine.CONSENSUS, "uniform": True}

Script = Callable[[WatchedLab], None]


def promise_not_synced(lab: WatchedLab) -> None:
    """b crashes before its disk has what it promised a; then it founds the group with c, without a."""
    a, b = lab.join("a", 2), lab.join("b", 2)
    b.seat.sync_after = None
    lab.run(SECOND)
    b.crash()
    lab.lost = lambda source, dest, _frame: "a" in (source, dest)
    b, c = lab.join("b", 2, incarnation=1), lab.join("c", 2)
    lab.run(SECOND)
    assert b.views == c.views == [["b#1", "c"]]
    if not a.views:  # else nobody can help it
        lab.lost = nothing
        lab.run(LONG)
        assert a.views[-1] == ["b#1", "c", "a"]


def acceptance_not_synced(lab: WatchedLab) -> None:
    """b crashes after its disk has what it promised a, and before it has what it accepted."""
    lab.join("a", 2)
    b = lab.join("b", 2)
    b.seat.sync_after = None
    accepts: list[Frame] = []

    def note(source: str, dest: str, frame: Frame) -> bool:
        if (source, dest) == ("a", "b") and isinstance(frame, Accept):
            accepts.append(frame)
        return False

    lab.lost = note
    while not accepts:
        if lab.disks["b"].syncing:
            b.seat.finish_sync()
        lab.run(MS)
    lab.run(SECOND)
    _go_on_without_a(lab)
    assert lab["b"].views == lab["c"].views == [["b#1", "c"]]


def tail_ignored(lab: WatchedLab) -> None:
    """The last that the disk of b has is what it accepted. With that, a has founded the group."""
    a, b = lab.join("a", 2), lab.join("b", 2)
    lab.lost = lambda _source, _dest, frame: isinstance(frame, Welcome)
    while not a.views:
        lab.run(MS)
    assert not b.views
    _go_on_without_a(lab)
    lab.lost = nothing
    lab.run(LONG)


def _go_on_without_a(lab: WatchedLab) -> None:
    """b crashes, and comes back to c, where nobody hears of a."""
    lab["b"].crash()
    lab.lost = lambda source, dest, _frame: "a" in (source, dest)
    lab.join("b", 2, incarnation=1)
    lab.join("c", 2)
    lab.run(SECOND)


def last_view_not_written(lab: WatchedLab) -> None:
    """Two who have joined at once crash, and come back where nobody hears of the others."""
    for name in "de":
        lab.join(name, 2)
    lab.run(SECOND)
    assert lab["d"].views == lab["e"].views == [[*"abcde"]]
    lab.lost = lambda source, dest, _frame: (source in "abc") != (dest in "abc")
    for name in "de":
        lab[name].crash()
    for name in "de":
        lab.join(name, 2, incarnation=1)
    lab.run(LONG)
    lab.lost = nothing
    lab.run(LONG)


def old_state_handed_over(lab: WatchedLab) -> None:
    """a gives its state away twice, and has got messages in between."""
    for name in "de":
        lab["a"].update(name)
        lab.run(100 * MS)
        lab.join(name)
        lab.run(SECOND)
    assert lab["e"].views[-1] == [*"abcde"]


def founded_beside_a_view(lab: WatchedLab) -> None:
    """Two of three restart; the third is there all the time, and takes a while to let them in."""
    lab.lost = lambda _source, _dest, frame: isinstance(frame, Welcome) and frame.view > 1
    for name in "bc":
        lab[name].crash()
        lab.join(name, 2, incarnation=1)
    lab.run(SECOND)
    lab.lost = nothing
    lab.run(LONG)


def reformed_without_accounting(lab: WatchedLab) -> None:
    """a is cut off, and the others are not dead."""
    lab.lost = lambda source, dest, _frame: "a" in (source, dest)
    lab.run(LONG)
    assert lab["b"].views[-1] == ["b", "c"]


def reformed_with_older_state(lab: WatchedLab) -> None:
    """Two survive: d has a message that e lacks."""
    lab.join("d")
    lab.run(SECOND)
    lab.join("e")
    lab.run(SECOND)
    lab.lost = lambda _source, dest, frame: dest == "e" and isinstance(frame, InView)
    lab["d"].multicast(b"late")
    lab.run(3 * MS)
    for name in "abc":
        lab[name].crash()
    lab.run(SECOND)
    lab.lost = nothing
    for name in "abc":
        lab.join(name, 2, incarnation=1)
    lab.run(LONG)
    assert len(lab["d"].views[-1]) == 5


def causes_not_awaited(lab: WatchedLab) -> None:
    """What a sends, and says about the order, comes to b alone; all have what b answers. Both crash."""
    lab.lost = lambda _source, dest, frame: dest in "cde" and carries(frame, 0)
    lab["d"].multicast(b"first")
    lab["a"].multicast(b"second")
    while len(lab["b"].messages) < 2:
        lab.run(MS)
    lab["b"].multicast(b"answer")
    lab.run(20 * MS)
    for name in "ab":
        lab[name].crash()
    lab.run(LONG)
    assert lab["e"].views[-1] == ["c", "d", "e"]


CASES: dict[str, tuple[Script, dict[str, Any], str]] = {
    "acknowledged-after-pred": (
        acknowledged_after_pred,
        {**BATCHES, "resend": 20 * MS},
        "uniform_total_order",
    ),
    "round-ignored-in-reports": (round_ignored_in_reports, BATCHES, "uniform_total_order"),
    "old-chunk-accepted": (old_chunk_accepted, {"state": True}, "vs_state_transfer"),
    "stamp-lost-with-run": (
        stamp_lost_with_run,
        {**CAUSAL, "purging": Purging.LAZY, "buffer_messages": 10},
        "causal_delivery",
    ),
    "sets-order-not-safe": (sets_order_not_safe, TOKEN, "uniform_total_order"),
    "causes-not-awaited": (causes_not_awaited, {**TOKEN, "uniform": False}, "semantic_causal_completeness"),
    "safe-with-f-votes": (safe_with_f_votes, {"uniform": True}, "vs_semantic_uniform_agreement"),
    "leaver-not-in-cut": (leaver_not_in_cut, {"uniform": True}, "vs_semantic_uniform_agreement"),
    "skipped-before-causes": (skipped_before_causes, CAUSAL, "causal_delivery"),
    "promise-not-synced": (promise_not_synced, {"disks": True}, "vs_primary_partition"),
    "acceptance-not-synced": (acceptance_not_synced, {"disks": True}, "vs_primary_partition"),
    "tail-ignored": (tail_ignored, {"disks": True}, "vs_primary_partition"),
    "last-view-not-written": (last_view_not_written, {"disks": True}, "vs_primary_partition"),
    "old-state-handed-over": (old_state_handed_over, {"state": True}, "vs_state_transfer"),
    "founded-beside-a-view": (founded_beside_a_view, {}, "vs_primary_partition"),
    "reformed-without-accounting": (reformed_without_accounting, {}, "vs_primary_partition"),
    "reformed-with-older-state": (reformed_with_older_state, {}, "vs_semantic_view_synchrony"),
}
"""By mutant: a script, the settings it needs, and the property that does not hold."""


def _founders(name: str) -> str:
    """Who has founded the group before a script begins."""
    if name == "causes-not-awaited":
        return "abcde"
    return "" if name in ("promise-not-synced", "acceptance-not-synced", "tail-ignored") else "abc"


ELSEWHERE = {
    "leaver-deaf-at-once",
    "terms-ignored",
    "flapping-let-in",
    "held-off-for-ever",
    "never-in-pieces",
}
"""Of these no history tells: something does not happen, or somebody is let in, or held off.

See `test_vsync_terms.py`, `test_sim_vsync_dead_links.py` and `test_sim_vsync_narrow.py`.
"""


def test_a_leaver_that_is_deaf_at_once_leaves_the_others_stuck() -> None:
    for kind, phase in ((VirtualSynchrony, "operational"), (LeaverDeafAtOnce, "minority")):
        lab = WatchedLab(kind, "abc")
        lost: list[Frame] = []

        def lose(_source: str, dest: str, frame: Frame, lost: list[Frame] = lost) -> bool:
            if isinstance(frame, Decision) and dest == "c" and len(lost) < 2:
                lost.append(frame)
                return True
            return False

        lab.lost = lose
        for name in "ab":
            lab[name].leave()
        lab.run(LONG)
        assert lab.phases()["c"] == phase


@pytest.mark.parametrize("name", CASES)
def test_the_protocol_is_right_where_it_matters(name: str) -> None:
    script, given, _ = CASES[name]
    lab = WatchedLab(VirtualSynchrony, _founders(name), **given)
    script(lab)
    assert lab.broken() == []


@pytest.mark.parametrize("name", CASES)
def test_the_mistake_is_caught_by_name(name: str) -> None:
    script, given, caught_by = CASES[name]
    kind = MUTANTS["vsync"][name].stack
    assert kind is not None
    assert issubclass(kind, VirtualSynchrony)
    lab = WatchedLab(kind, _founders(name), **given)
    script(lab)
    assert caught_by in lab.broken()


def test_without_its_causes_a_message_comes_before_them() -> None:
    """What is left when a view ends is lined up sender by sender: the answer of b before what d asked."""
    script, given, _ = CASES["causes-not-awaited"]
    for kind, right in ((VirtualSynchrony, True), (CausesNotAwaited, False)):
        lab = WatchedLab(kind, "abcde", **given)
        script(lab)
        assert ("causal_delivery" not in lab.broken()) is right


def test_no_mutant_is_without_a_test() -> None:
    broken = {name for name, mutant in MUTANTS["vsync"].items() if mutant.stack is not None}
    assert broken - set(swarmed("vsync")) <= {*CASES, *FLOW_CASES, *ELSEWHERE}
