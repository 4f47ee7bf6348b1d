"""Sound and broken histories written by hand: each broken one is caught by the right property alone.

A history is a line per process. `m3` multicasts message 3, `m3-5` a run, `m3:x` an update of item x,
`m3:{a1,b2}` a message that replaces those two; `b4` delivers the fourth of b, `b4-6` a run; `buf=9`
is a high-water mark, `a=one` says that the state of a is now "one", and `crash` is the end.
"""

import re
from collections.abc import Callable

import pytest

from semcast.core import Annotation, Enumeration, Item, MemberId, MessageId
from semcast.core.messages import Batch, batch_of
from semcast.history import Event, GroupInfo, History, Kind, Recorder, RunInfo
from semcast.specs import (
    CALLS,
    CERTIFICATES,
    DOMAINS,
    EVS,
    GOSSIP,
    GOSSIP_BATCHES,
    GOSSIP_LOGS,
    GOSSIP_READERS,
    LIGHTWEIGHT,
    PROPERTIES,
    REPLICATION,
    VSYNC,
    Status,
    Verdict,
    check,
    properties_for,
)

A, B, C = MEMBERS = MemberId("a"), MemberId("b"), MemberId("c")

STEP = re.compile(
    r"(?P<crash>crash)|buf=(?P<buffer>\d+)|(?P<owner>[abc])=(?P<state>\w+)"
    r"|(?P<who>[abcm])(?P<first>\d+)(-(?P<last>\d+))?(:(?P<note>.+))?"
)


def run(
    a: str = "",
    b: str = "",
    c: str = "",
    *,
    stack: str = "s-rm",
    quiesced: bool = True,
    uniform: bool = False,
    limit: int | None = 10,
) -> History:
    recorder = Recorder(
        RunInfo.one("run", "g", stack, None, MEMBERS, limit, uniform=uniform, quiesced=quiesced)
    )
    for process, script in zip(MEMBERS, (a, b, c), strict=True):
        for at, step in enumerate(script.split()):
            record(recorder, at, process, step)
    return recorder.close(quiesced=quiesced)


def record(recorder: Recorder, at: int, process: MemberId, step: str) -> None:
    match = STEP.fullmatch(step)
    assert match is not None, step
    if match["crash"]:
        recorder.crash(at, process)
    elif match["buffer"]:
        recorder.buffer(at, process, int(match["buffer"]))
    elif match["state"]:
        recorder.apply(at, process, MemberId(match["owner"]), match["state"])
    elif match["who"] == "m":
        recorder.multicast(at, process, batch(process, match))
    else:
        recorder.deliver(at, process, batch(MemberId(match["who"]), match))


def batch(sender: MemberId, match: re.Match[str]) -> Batch:
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return batch_of(sender, first, [b""] * (last - first + 1), annotation(match["note"]))


def annotation(note: str | None) -> Annotation | None:
    if note is None:
        return None
    if not note.startswith("{"):
        return Item(note)
    names = note.strip("{}").split(",")
    return Enumeration(tuple(MessageId(MemberId(name[0]), int(name[1:])) for name in names))


def violated(history: History) -> dict[str, Verdict]:
    return {verdict.property: verdict for verdict in check(history) if verdict.status is Status.VIOLATED}


SOUND: dict[str, Callable[[], History]] = {
    "everything everywhere": lambda: run("m1-3 a1-3 b1", "m1 b1 a1-3", "a1-3 b1"),
    "runs cut by each as it likes": lambda: run("m1-2 m3-6 a1-6", "a1 a2-5 a6", "a1-3 a4-6"),
    "an update skipped for a later one": lambda: run("m1:x m2:x a1 a2", "a2", "a1 a2"),
    "replaced through one that is skipped as well": lambda: run(
        "m1 m2:{a9} m3:{a2} m4:{a3} a1-4", "a1 a4", "a1-4"
    ),
    "everybody skips": lambda: run("m1:x m2:y m3:x a2-3", "a2-3", "a2-3"),
    "a replacement by another sender": lambda: run("m1:x a1 b1", "a1 m1:{a1} b1", "b1"),
    "a crashed process owes nothing": lambda: run("m1-2 a1-2", "a1 crash", "a1-2"),
    "the last words of a crashed process reach nobody": lambda: run("m1-2 a1-2 crash", "a1", "a1"),
    "marks at the limit": lambda: run("m1 a1 buf=10", "a1 buf=9", "a1"),
    "states that meet": lambda: run("m1 a1 a=one a=two", "a1 a=two", "a1 a=one crash"),
    "nobody multicasts": lambda: run("buf=1", "", ""),
}


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("stack", ["s-srm", "s-rm", "reliable"])
def test_sound(name: str, stack: str) -> None:
    history = SOUND[name]()
    names = properties_for(GroupInfo("", stack))
    assert [str(verdict) for verdict in check(history, names) if verdict.status is Status.VIOLATED] == []


BROKEN: dict[str, tuple[Callable[[], History], str, int, list[str]]] = {
    "delivered twice": (
        lambda: run("m1-2 a1-2", "a1-2 a2", "a1-2"),
        "integrity",
        1,
        ["b[1] at 1 ns: deliver (a,2)"],
    ),
    "runs that overlap": (
        lambda: run("m1-9 a1-9", "a1-6 a6-9", "a1-9"),
        "integrity",
        1,
        ["b[1] at 1 ns: deliver (a,6)"],
    ),
    "out of thin air": (
        lambda: run("m1 a1-2", "a1-2", "a1-2"),
        "integrity",
        3,
        ["a[1] at 1 ns: deliver (a,2)", "b[0] at 0 ns: deliver (a,2)", "c[0] at 0 ns: deliver (a,2)"],
    ),
    "out of order": (
        lambda: run("m1-3 a1-3", "a2 a1 a3", "a1-3"),
        "fifo_delivery",
        1,
        ["b[0] at 0 ns: deliver (a,2)", "b[1] at 1 ns: deliver (a,1)"],
    ),
    "runs out of order": (
        lambda: run("m1-5 a1-5", "a4-5 a1-3", "a1-5"),
        "fifo_delivery",
        3,
        [
            "b[0] at 0 ns: deliver (a,5)",
            "b[1] at 1 ns: deliver (a,1)",
            "b[1] at 1 ns: deliver (a,2)",
            "b[1] at 1 ns: deliver (a,3)",
        ],
    ),
    "the last message lost by everybody": (
        lambda: run("m1-2 a1", "a1", "a1"),
        "semantic_validity",
        1,
        ["a[0] at 0 ns: multicast (a,2)"],
    ),
    "the last message lost by one": (
        lambda: run("m1-3 a1-3", "a1-3", "a1"),
        "semantic_agreement",
        2,
        ["a[1] at 1 ns: deliver (a,2)", "a[1] at 1 ns: deliver (a,3)"],
    ),
    "without the replacement that another got": (
        lambda: run("m1:x m2:x m3 crash", "a1-2", "a1"),
        "semantic_agreement",
        1,
        ["b[0] at 0 ns: deliver (a,2)"],
    ),
    "a process that recorded nothing": (
        lambda: run("m1 a1", "a1", ""),
        "semantic_agreement",
        1,
        ["a[1] at 1 ns: deliver (a,1)"],
    ),
    "a replacement in the other direction": (
        lambda: run("m1:x m2:x a1-2", "a2", "a1"),
        "semantic_agreement",
        1,
        ["a[2] at 2 ns: deliver (a,2)"],
    ),
    "without annotation nothing is replaced": (
        lambda: run("m1 a1 b1", "a1 m1:{a1} b1", "b1"),
        "semantic_agreement",
        1,
        ["a[1] at 1 ns: deliver (a,1)"],
    ),
    "delivered by one that crashed": (
        lambda: run("m1 a1 crash", "", "", uniform=True),
        "semantic_uniform_agreement",
        2,
        ["a[1] at 1 ns: deliver (a,1)"],
    ),
    # Pereira 2002, 4.3.1: of m1, m2, m3 with m1 replaced by m3 only m2 arrives.
    "a state that never was": (
        lambda: run("m1:x m2:y m3:x crash", "a2", "a2"),
        "semantic_fifo_completeness",
        2,
        ["a[0] at 0 ns: multicast (a,1)", "b[0] at 0 ns: deliver (a,2)", "c[0] at 0 ns: deliver (a,2)"],
    ),
    "a gap without reason": (
        lambda: run("m1-5 crash", "a1-2 a5", "a1-2 a5"),
        "semantic_fifo_completeness",
        4,
        [
            "a[0] at 0 ns: multicast (a,3)",
            "b[1] at 1 ns: deliver (a,5)",
            "a[0] at 0 ns: multicast (a,4)",
            "c[1] at 1 ns: deliver (a,5)",
        ],
    ),
    "a correct sender that does not reach one": (
        lambda: run("m1 a1", "a1", "", stack="s-srm"),
        "semantic_sender_reliability",
        1,
        ["a[0] at 0 ns: multicast (a,1)"],
    ),
    "one that goes on after its crash": (
        lambda: run("m1-2 a1 crash a2 m3", "a1-2", "a1-2"),
        "nothing_after_crash",
        2,
        ["a[2] at 2 ns: crash", "a[3] at 3 ns: deliver (a,2)", "a[4] at 4 ns: multicast (a,3)"],
    ),
    "above the limit": (
        lambda: run("m1 a1 buf=10 buf=11 buf=12", "a1", "a1"),
        "buffer_bound",
        2,
        ["a[3] at 3 ns: buffer of 11 messages", "a[4] at 4 ns: buffer of 12 messages"],
    ),
    "different states": (
        lambda: run("m1 a1 a=one", "a1 a=two", "a1 a=one"),
        "same_state",
        1,
        ["a[2] at 2 ns: apply to the state of a: one", "b[1] at 1 ns: apply to the state of a: two"],
    ),
    "different states, and the sender did not crash": (
        lambda: run("m1 a1 a=one", "a1 a=two", "a1", stack="s-srm"),
        "same_state_of_correct_senders",
        1,
        ["a[2] at 2 ns: apply to the state of a: one", "b[1] at 1 ns: apply to the state of a: two"],
    ),
    "replacing each other": (
        lambda: run("m1:{b1} m2:{b1} a1 b1", "m1:{a2} a1 b1", "a1 b1"),
        "relation_is_order",
        2,
        ["a[1] at 1 ns: multicast (a,2)", "b[0] at 0 ns: multicast (b,1)"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken(name: str) -> None:
    build, culprit, count, events = BROKEN[name]
    found = violated(build())
    assert list(found) == [culprit]
    verdict = found[culprit]
    assert (verdict.count, [str(event) for event in verdict.offending]) == (count, events)


def test_every_property_has_a_history_that_breaks_it() -> None:
    assert {culprit for _, culprit, _, _ in BROKEN.values()} == set(OWN)


def test_nothing_is_owed_to_a_restarted_process_but_it_keeps_the_rules() -> None:
    again = MemberId("c", 1)
    sound = run("m1-2 a1-2", "a1-2", "crash", uniform=True)
    quiet = History(sound.info, [*sound.events, Event(again, 0, 9, Kind.RECOVER, "g")])
    assert violated(quiet) == {}
    wild = [Event(again, index + 1, 9, Kind.DELIVER, "g", A, seq, 1) for index, seq in enumerate([2, 1, 3])]
    loud = History(sound.info, [*quiet.events, *wild])
    assert {name: verdict.count for name, verdict in violated(loud).items()} == {
        "integrity": 1,
        "fifo_delivery": 1,
        "semantic_uniform_agreement": 2,
    }


def test_verdicts_read_well() -> None:
    history = run("m1-5 a1-5", "a1-5", "a1")
    assert [str(verdict) for verdict in check(history, ["integrity", "semantic_agreement"])] == [
        "integrity: holds (contents not compared: 1)",
        "semantic_agreement: violated, 4 cases: c has neither (a,2) nor a replacement; "
        "c has neither (a,3) nor a replacement; c has neither (a,4) nor a replacement; and 1 more\n"
        "    a[1] at 1 ns: deliver (a,2)\n"
        "    a[1] at 1 ns: deliver (a,3)\n"
        "    a[1] at 1 ns: deliver (a,4)\n"
        "    a[1] at 1 ns: deliver (a,5)",
    ]


def test_ten_events_are_enough() -> None:
    lost = violated(run("m1-99 a1-99", "a1-99", ""))["semantic_agreement"]
    assert (lost.count, len(lost.offending)) == (99, 10)
    swapped = violated(run("m1-9 a1-9", "a9 a1-8", "a9 a1-8"))["fifo_delivery"]
    assert (swapped.count, len(swapped.offending)) == (16, 10)


OWN = [
    name
    for name in PROPERTIES
    if name
    not in CERTIFICATES
    | EVS
    | VSYNC
    | REPLICATION
    | GOSSIP
    | GOSSIP_BATCHES
    | GOSSIP_LOGS
    | GOSSIP_READERS
    | LIGHTWEIGHT
    | CALLS
    | DOMAINS
]
LIVENESS = [name for name in OWN if name.startswith(("semantic_", "same_state"))]


@pytest.mark.parametrize("name", LIVENESS)
def test_a_run_that_was_not_over_tells_nothing_about_what_was_owed(name: str) -> None:
    history = run("m1-2 a=one", "a2 a=two", "", quiesced=False)
    (verdict,) = check(history, [name])
    assert str(verdict) == f"{name}: unknown: the run was not over"


@pytest.mark.parametrize(
    ("name", "history"),
    [
        ("integrity", run("", "a1", quiesced=False)),
        ("fifo_delivery", run("m1-2", "a2 a1", quiesced=False)),
        ("buffer_bound", run("buf=11", quiesced=False)),
        ("relation_is_order", run("m1:{b1}", "m1:{a1}", quiesced=False)),
    ],
)
def test_what_is_broken_already_is_broken_before_the_end(name: str, history: History) -> None:
    assert list(violated(history)) == [name]


@pytest.mark.parametrize("name", [name for name in LIVENESS if name.startswith("semantic_")])
def test_without_an_order_nothing_can_be_said_about_replacements(name: str) -> None:
    (verdict,) = check(run("m1:{b1} a1", "m1:{a1}"), [name])
    assert str(verdict) == f"{name}: unknown: the obsolescence relation is not an order"


@pytest.mark.parametrize(
    ("name", "history", "why"),
    [
        ("buffer_bound", run("buf=11", limit=None), "the run had no limit"),
        ("buffer_bound", run("m1 a1"), "no occupancy was recorded"),
        ("same_state", run("m1 a1"), "no state was recorded"),
        ("same_state_of_correct_senders", run("crash", "a=one", "a=two"), "no state was recorded"),
    ],
)
def test_no_verdict_without_evidence(name: str, history: History, why: str) -> None:
    (verdict,) = check(history, [name])
    assert str(verdict) == f"{name}: unknown: {why}"


def test_a_circle_is_named_once_and_bounded() -> None:
    around = " ".join(f"m{seq}:{{a{seq % 30 + 1}}}" for seq in range(1, 31))
    verdict = violated(run(around))["relation_is_order"]
    assert (verdict.count, len(verdict.offending)) == (30, 10)


def test_what_each_stack_promises() -> None:
    def promised(stack: str, *, uniform: bool) -> list[str]:
        return properties_for(GroupInfo("", stack, uniform=uniform))

    always = ["relation_is_order", "integrity", "fifo_delivery", "nothing_after_crash"]
    assert promised("s-srm", uniform=True) == [
        *always,
        "semantic_sender_reliability",
        "buffer_bound",
        "same_state_of_correct_senders",
    ]
    for stack in ("s-rm", "reliable"):
        plain = promised(stack, uniform=False)
        assert plain == [
            *always,
            "semantic_validity",
            "semantic_agreement",
            "semantic_fifo_completeness",
            "buffer_bound",
            "same_state",
        ]
        assert set(promised(stack, uniform=True)) - set(plain) == {"semantic_uniform_agreement"}
    with pytest.raises(ValueError, match="nothing is known of what stack 'other' promises"):
        promised("other", uniform=False)


def test_unknown_properties_are_named() -> None:
    with pytest.raises(ValueError, match="no such property: colour; choose from relation_is_order, "):
        check(run(), ["integrity", "colour"])
