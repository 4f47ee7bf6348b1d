"""What chaos says about a run: crash rows for the killed, verdicts, and one line."""

from pathlib import Path

import msgspec
import pytest

from semcast.chaos.judge import ChaosOutcome, Finding, Judgement, journals_of, judge, note_crash
from semcast.chaos.ledger import SharedLedger, letter
from semcast.chaos.roster import RosterEntry
from semcast.core import MemberId, Message, MessageId, View
from semcast.core.events import Note
from semcast.history import Kind, RunInfo, read_history
from semcast.history.journal import DeliveredRow, FamilyRow, JournalWriter, SentRow, ViewRow

A, B = MemberId("a", 1), MemberId("b", 5)
INFO = RunInfo.one(
    run="chaos",
    group="g",
    stack="ring",
    seed=None,
    members=(),
    buffer_limit=None,
    uniform=False,
    quiesced=False,
)


def journal(folder: Path, member: MemberId) -> JournalWriter:
    writer = JournalWriter(folder, member, INFO)
    writer.append(1, [ViewRow(View(1, (A, B)), False), SentRow(1, 3, 30, 1, False, None)])
    return writer


def outcome(**given: object) -> ChaosOutcome:
    found: dict[str, object] = {
        "stack": "ring",
        "members": 2,
        "seconds": 60.0,
        "seed": 4,
        "network": "loopback",
        "faults": {"kill": 2},
        "stuck": (),
        "died": (),
        "healed_after": 1.25,
        "judgement": Judgement(3, 10, 20, 2, (Finding("integrity", "holds"),)),
        "folder": "x",
    }
    return ChaosOutcome(**{**found, **given})  # type: ignore[arg-type]


def test_a_killed_process_gets_a_crash_row_in_the_journal_it_began(tmp_path: Path) -> None:
    journal(tmp_path, A).close(2)
    before = journals_of(tmp_path, "a")
    journal(tmp_path, MemberId("a", 2))
    journal(tmp_path, B).close(3)
    note_crash(tmp_path, "a", before)
    history = read_history(tmp_path)
    assert [event.process for event in history.events if event.kind is Kind.CRASH] == [MemberId("a", 2)]
    assert history.info.cut_off == ()
    judged = judge(tmp_path)
    assert (judged.views, judged.messages, judged.crashes) == (1, 9, 1)
    assert judged.findings


def test_a_process_that_had_no_time_to_begin_a_journal_leaves_none(tmp_path: Path) -> None:
    journal(tmp_path, A).close(2)
    before = journals_of(tmp_path, "a")
    note_crash(tmp_path, "a", before)
    (tmp_path / "a-2.journal").touch()
    note_crash(tmp_path, "a", before)
    journal(tmp_path, B).close(3)
    assert journals_of(tmp_path, "a") == before
    history = read_history(tmp_path)
    assert not [event for event in history.events if event.kind is Kind.CRASH]


def test_the_line_says_everything() -> None:
    line = outcome().line()
    assert "\n" not in line
    for words in ("3 views, 10 messages", "2 kill", "holds: integrity", "healed in 1.2 s", "stuck: none"):
        assert words in line
    bad = Judgement(findings=(Finding("agreement", "violated", 2, "why"), Finding("x", "unknown", 0, "cut")))
    assert "violated: agreement (2: why)" in outcome(judgement=bad).line()
    assert "unknown: x (cut)" in outcome(judgement=bad).line()


@pytest.mark.parametrize(
    ("given", "good"),
    [
        ({}, True),
        ({"judgement": Judgement(findings=(Finding("x", "unknown", 0, "cut"),))}, True),
        ({"judgement": Judgement(findings=(Finding("x", "violated", 1, "why"),))}, False),
        ({"stuck": ("a",)}, False),
        ({"died": ("a",)}, False),
    ],
)
def test_it_is_good_only_if_nothing_is_violated_and_nobody_stuck_or_dead(
    given: dict[str, object], good: bool
) -> None:
    assert outcome(**given).good is good


def test_states_that_differ_in_the_end_are_a_violation(tmp_path: Path) -> None:
    journal(tmp_path, A).close(2)
    same = {each.property: each for each in judge(tmp_path, {"a": "7 messages", "b": "7 messages"}).findings}
    assert same["equal_states"].status == "holds"
    other = {each.property: each for each in judge(tmp_path, {"a": "7 messages", "b": ""}).findings}
    assert other["equal_states"].status == "violated"
    assert other["equal_states"].why == "a has 7 messages; b has said nothing"
    assert "equal_states" not in {each.property for each in judge(tmp_path).findings}


def test_a_ledger_is_handed_over_and_the_same_whatever_was_purged() -> None:
    """Of an item only the last message counts, of the others all."""
    one, two, three = SharedLedger(), SharedLedger(), SharedLedger()
    payloads = [letter(b"?", item, b"%d" % n) for n, item in enumerate(["x", "", "x", "y", ""])]
    for seq, payload in enumerate(payloads, 1):
        one.apply(Message(MessageId(A, seq), payload))
        if seq != 1:
            two.apply(Message(MessageId(A, seq), payload))
    assert one.summary() == two.summary()
    three.restore(one.export())
    assert three.summary() == one.summary()
    three.apply(Message(MessageId(B, 1), letter(b"?", "", b"more")))
    assert three.summary() != one.summary()


def test_a_folder_without_a_recording_is_not_good(tmp_path: Path) -> None:
    assert not outcome(judgement=judge(tmp_path)).good


def test_what_a_member_says_is_remembered_until_another_process_begins() -> None:
    member = RosterEntry("a", "talks", reads=True)
    for line in (
        {"event": "begun", "incarnation": 3},
        {"event": "view", "number": 2, "members": [["a", 3], ["b", 1]]},
        {"event": "mark", "text": "x"},
        {"event": "report", "waits": 2.5, "phase": "operational", "unsent": 7},
    ):
        member.hear(line)
    assert (member.begun, member.view, member.marks) == (True, (2, (("a", 3), ("b", 1))), {"x"})
    member.hear({"event": "rejoining"})
    assert (member.begun, member.view) == (True, None)
    member.forget()
    assert (member.begun, member.marks, member.report) == (False, set(), {})


def test_what_is_owed_at_rest_is_judged_as_of_then(tmp_path: Path) -> None:
    for member in (A, B):
        journal(tmp_path, member).close(9)
    owed = "evs_2_1_installed_by_all"
    unjudged = {each.property: each.status for each in judge(tmp_path).findings}
    assert unjudged[owed] == "unknown", "they left, and nobody said that they were at rest before"
    judged = {each.property: each.status for each in judge(tmp_path, rest=5).findings}
    assert judged[owed] == "holds"


def test_what_holds_of_the_whole_may_be_wrong_at_rest(tmp_path: Path) -> None:
    """A daemon took a message of a client and never did anything with it: only at rest that is wrong."""
    client = MemberId("client@a", 1)
    groups = tuple(msgspec.structs.replace(group, stack="lightweight") for group in INFO.groups)
    writer = JournalWriter(tmp_path, A, msgspec.structs.replace(INFO, groups=groups))
    notes = (
        Note("lw-conf", A, view=1, level="regular", members=(A,)),
        Note("lw-session", client, level="came"),
        Note("lw-ask", client, 1, 3, level="cast", digest='{"groups": ["x"]}'),
    )
    writer.append(1, [ViewRow(View(1, (A,)), False), *map(FamilyRow, notes)])
    writer.close(9)
    judged = judge(tmp_path)
    assert (judged.messages, judged.deliveries) == (3, 0)
    assert {each.property: each.status for each in judged.findings}["lw_settled"] == "holds"
    found = {each.property: each for each in judge(tmp_path, rest=5).findings}["lw_settled"]
    assert (found.status, found.count) == ("violated", 1)
    assert "nothing came of it" in found.why


def test_groups_are_named_only_where_something_is_wrong(tmp_path: Path) -> None:
    for group, delivered in (("g", 3), ("h", 4)):
        info = msgspec.structs.replace(INFO, groups=(msgspec.structs.replace(INFO.only, name=group),))
        writer = JournalWriter(tmp_path, A, info)
        sent, told = SentRow(1, 3, 30, 1, False, None), DeliveredRow(A, 1, delivered, 30)
        writer.append(1, [ViewRow(View(1, (A,)), False), sent, told])
        writer.close(3)
    by_name = {each.property: each for each in judge(tmp_path).findings}
    assert by_name["integrity"].status == "violated"
    assert by_name["integrity"].why.startswith("h: ")
    assert by_name["buffer_bound"].why == "the run had no limit"
