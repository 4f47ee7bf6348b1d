"""When virtual synchrony is judged, what is unknown, what is promised, and what is recorded for it."""

from pathlib import Path

import msgspec
import pytest
from tests.specs.vsync_scripts import group, violated

from semcast.core import KEnumeration, MemberId, MessageId, View
from semcast.core.events import Purged, Sent
from semcast.core.messages import batch_of
from semcast.history import GroupInfo, History, Recorder, RunInfo, read_history, write_history
from semcast.history.journal import AppliedRow, DeliveredRow, JournalWriter, ViewRow
from semcast.history.versions import RunInfo1
from semcast.specs import PROPERTIES, VSYNC, Status, check, properties_for

A, B = MemberId("a"), MemberId("b")


def cut(history: History, *names: str) -> History:
    cut_off = tuple(map(MemberId, names))
    return History(msgspec.structs.replace(history.info, cut_off=cut_off), history.events)


def status(history: History, name: str) -> Status:
    (verdict,) = check(history, [name])
    return verdict.status


# --- when -----------------------------------------------------------------------------------------

UNFINISHED = {
    "its own message may still come": "p: V1=p m1-2 p1",
    "so may another's": """
        p: V1=pq m1-2 p1-2
        q: V1=pq p1
    """,
    "who is ahead of the order may still crash": """
        p: V1=pq m1 p1 q1
        q: V1=pq m1 q1 p1
    """,
    "who is behind may be leaving": """
        p: V1=pqr V2=p
        q: V1=pqr
        r: V1=pqr
    """,
    "a view may be missing between them": """
        p: V1=pq
        q: V3=q
    """,
    "the rest of a state may still come": """
        p: V1=pq p=one q=one
        q: V1=pq p=one
    """,
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_what_is_not_owed_yet(name: str) -> None:
    unpromised = {"uniform_total_order"} if "order" in name else set()
    assert violated(group(UNFINISHED[name], quiesced=False)).keys() == unpromised
    assert violated(group(UNFINISHED[name], quiesced=True)).keys() > unpromised


def test_who_is_left_in_an_earlier_view_owes_nothing() -> None:
    assert violated(group("p: V1=pqr V2=pq\nq: V1=pqr V2=pq\nr: V1=pqr m1-3 r3")).keys() == {
        "vs_semantic_uniform_agreement"
    }


@pytest.mark.parametrize("end", ["crash", ""])
def test_the_end_counts_only_if_all_members_are_there(end: str) -> None:
    """Without a majority nothing moves on, whatever was delivered by who is gone."""
    lost = "p: V1=pqr m1\nq: V1=pqr p1 {end}\nr: V1=pqr"
    assert ("vs_semantic_validity" in violated(group(lost.format(end=end)))) == (not end)


def test_a_view_change_without_anybody_of_the_view_before() -> None:
    """Nobody may be leaving without a successor: also in a run that was not over."""
    assert violated(group("p: V1=p\nq: V2=q", quiesced=False)).keys() == {"vs_primary_partition"}
    assert violated(group("p: V1=p crash\nq: V2=q", quiesced=False)) == {}


# --- what is not known ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", VSYNC)
def test_no_verdict_without_views(name: str) -> None:
    (verdict,) = check(group("p: m1@1 p1"), [name])
    assert str(verdict) == f"{name}: unknown: no view was recorded"


@pytest.mark.parametrize("name", [name for name in VSYNC if "semantic" in name])
def test_no_verdict_without_an_order_of_replacements(name: str) -> None:
    (verdict,) = check(group("p: V1=p m1:{p2} m2:{p1} p1-2 V2=p"), [name])
    assert str(verdict) == f"{name}: unknown: the obsolescence relation is not an order"


def test_without_precedence_nothing_can_be_said_about_causes() -> None:
    (verdict,) = check(group("p: V1=p p1 m1"), ["semantic_causal_completeness"])
    assert str(verdict) == "semantic_causal_completeness: unknown: precedence runs in a circle"


def test_without_states_nothing_can_be_said_about_them() -> None:
    (verdict,) = check(group("p: V1=p"), ["vs_state_transfer"])
    assert str(verdict) == "vs_state_transfer: unknown: no state was recorded at the beginning of a view"


def test_who_is_cut_off_owes_nothing_more() -> None:
    history = group("p: V1=pq m1 p1\nq: V1=pq")
    assert "vs_semantic_view_synchrony" in violated(history)
    assert violated(cut(history, "q")) == {}
    history = group("p: V1=pq m1 p1 V2=pq\nq: V1=pq V2=pq")
    assert "vs_semantic_view_synchrony" in violated(cut(history, "q"))


def test_lost_messages_may_be_what_is_missing() -> None:
    history = group("p: V1=pq m1:x p1 V2=pq\nq: V1=pq p4 V2=pq")
    assert {"integrity", "vs_semantic_view_synchrony"} <= violated(history).keys()
    history = cut(history, "p")
    assert violated(history).keys() == {"vs_view_synchrony"}
    for name in VSYNC:
        told = name.startswith(("vs_view", "vs_primary")) or "total" in name
        if name != "vs_view_synchrony":
            assert status(history, name) is (Status.HOLDS if told else Status.UNKNOWN)


def test_a_majority_of_which_nothing_is_known() -> None:
    history = group("p: V1=pqr V2=p\nq: V1=pqr\nr: V1=pqr")
    assert violated(cut(history, "q")) == {}
    history = group("p: V1=pqr V3=p\nq: V1=pqr\nr: V1=pqr\ns: V1=pqr")
    assert "vs_primary_partition" in violated(history)
    assert "vs_primary_partition" not in violated(cut(history, "s"))


# --- what is said ---------------------------------------------------------------------------------


def test_verdicts_read_well() -> None:
    script = "p: V1=pq m1:x m2:y p1-2 V2=pq\nq: V1=pq p1 V2=pq"
    assert str(violated(group(script))["vs_semantic_view_synchrony"]) == (
        "vs_semantic_view_synchrony: violated: q has neither (p,2) nor a replacement in view 1\n"
        "    p[3] at 3 ns: deliver (p,2)"
    )
    script = "p: V1=pqr V2=p\nq: V1=pqr V3=qr\nr: V1=pqr V3=qr"
    assert str(violated(group(script))["vs_primary_partition"]) == (
        "vs_primary_partition: violated, 4 cases: q passed over view 2; r passed over view 2; "
        "view 2 has no quorum of view 1; and 1 more\n"
        "    q[0] at 0 ns: view 1 of p, q, r\n"
        "    p[1] at 1 ns: view 2 of p\n"
        "    q[1] at 1 ns: view 3 of q, r\n"
        "    r[0] at 0 ns: view 1 of p, q, r\n"
        "    r[1] at 1 ns: view 3 of q, r\n"
        "    p[0] at 0 ns: view 1 of p, q, r"
    )
    script = "p: V1=p p=one V2=pq p=two\nq: V2=pq p=one"
    assert str(violated(group(script))["vs_state_transfer"]) == (
        "vs_state_transfer: violated: p and q differ in the state of p at view 2\n"
        "    p[3] at 3 ns: apply to the state of p at view 2: two\n"
        "    q[1] at 1 ns: apply to the state of p at view 2: one"
    )


def test_long_runs_cost_nothing() -> None:
    many = 10**12
    history = group(f"""
        p: V1=pq m1-{many} p1-{many}^1 q1^{many + 1} V2=pq
        q: V1=pq m1 p1-500^1 p501-{many}^501 q1^{many + 1} V2=pq
    """)
    assert violated(history) == {}
    lost = violated(group(f"p: V1=pq m1-{many} p1-{many} V2=pq\nq: V1=pq p1-500 V2=pq"))
    assert lost["vs_semantic_view_synchrony"].count == many - 500


# --- what is promised -----------------------------------------------------------------------------


def promised(order: str, *, uniform: bool = False) -> set[str]:
    info = GroupInfo("", "vsync", uniform=uniform, order=order)
    names = properties_for(info)
    assert names == [name for name in PROPERTIES if name in names]
    return set(names)


def test_what_is_promised_depends_on_what_was_asked_for() -> None:
    fifo, causal, total = (promised(order) for order in ("fifo", "causal", "total"))
    assert {"fifo_delivery", "vs_primary_partition", "vs_state_transfer"} < fifo
    assert "vs_view_synchrony" not in fifo | causal | total
    assert causal - fifo == {"causal_delivery", "semantic_causal_completeness", "vector_certificate"}
    assert total - causal == {"total_order"}
    assert causal - total == {"vector_certificate"}
    assert promised("fifo", uniform=True) - fifo == {"vs_semantic_uniform_agreement"}
    assert promised("total", uniform=True) - total == {"vs_semantic_uniform_agreement", "uniform_total_order"}


def test_an_order_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match="nothing is known of order 'random', only of fifo, causal, total"):
        promised("random")


# --- what is recorded -----------------------------------------------------------------------------


def test_states_and_positions_are_kept(tmp_path: Path) -> None:
    info = RunInfo.one("r", "g", "vsync", None, (), None, uniform=True, quiesced=False, order="total")
    recorder = Recorder(info)
    view = View(1, (A, B))
    recorder.view(0, A, view)
    recorder.apply(0, A, B, "none", view=1)
    recorder.sent(1, A, Sent(batch_of(A, 1, [b"", b""]), 1))
    recorder.sent(1, A, Sent(batch_of(A, 3, [b""], KEnumeration(8, 1, total=True)), 1))
    recorder.deliver(2, A, batch_of(A, 1, [b""]), 5)
    recorder.deliver(2, A, batch_of(A, 2, [b""]), 6)
    recorder.deliver(2, A, batch_of(A, 3, [b""]), 8)
    recorder.purge(2, A, Purged(MessageId(B, 4), MessageId(A, 3)), 7)
    recorder.apply(3, A, A, "end")
    history = recorder.close(quiesced=True)
    rows = [(event.kind.value, event.seq, event.count, event.view, event.order) for event in history.events]
    assert rows == [
        ("view", 0, 0, 1, None),
        ("apply", 0, 0, 1, None),
        ("multicast", 1, 2, 1, None),
        ("multicast", 3, 1, 1, None),
        ("deliver", 1, 2, None, 5),
        ("deliver", 3, 1, None, 8),
        ("purge", 4, 1, None, 7),
        ("apply", 0, 0, None, None),
    ]
    write_history(history, tmp_path / "r.parquet")
    found = read_history(tmp_path / "r.parquet")
    assert (found.info, found.events) == (history.info, history.events)


def test_recordings_from_before_there_were_orders_are_fifo() -> None:
    old = msgspec.json.decode(
        msgspec.json.encode({"run": "r", "group": "g", "stack": "ring", "seed": None, "members": []})[:-1]
        + b',"buffer_limit":null,"uniform":false,"quiesced":true}',
        type=RunInfo1,
    )
    assert old.today().only.order == "fifo"


def test_journals_keep_states_and_positions(tmp_path: Path) -> None:
    info = RunInfo.one("r", "g", "vsync", None, (), None, uniform=False, quiesced=False, order="total")
    journal = JournalWriter(tmp_path, A, info)
    journal.append(1, [ViewRow(View(1, (A,)), transitional=False), AppliedRow(B, "one", 1)])
    journal.append(2, [DeliveredRow(B, 1, 2, 0, 7), DeliveredRow(B, 3, 1, 0)])
    journal.close(3)
    _, state, *delivered, _ = read_history(tmp_path).events
    assert (state.sender, state.digest, state.view) == (B, "one", 1)
    assert [event.order for event in delivered] == [7, None]


def test_states_at_views_are_not_those_at_the_end() -> None:
    history = group("p: V1=pq p=one V2=p\nq: V1=pq p=two")
    assert status(history, "same_state") is Status.UNKNOWN
