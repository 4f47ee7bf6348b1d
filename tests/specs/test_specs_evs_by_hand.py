"""EVS histories written by hand: the example of Amir 1995, 4.2, and one for everything that can be broken.

A history is a line per process. `V3=pqr` delivers regular configuration 3 with those members, formed by
the first of them (`V3=pqr/q`: by q), `T=qr` the transitional one after it (`T9=qr`: after number 9). `m3`
sends message 3, `!3` sends it as a safe one, `m3-5` a run, `m3@9` in configuration 9, `m3:x` an update of
item x; `q4` delivers the fourth of q, `q4-6` a run; `-q4<q5` is a receipt for q4 purged by q5, `+3` says that
three configurations were merged, and `crash` is the end. `p#1` is p restarted.
"""

import re
from collections.abc import Callable

import msgspec
import pytest

from semcast.core import Item, MemberId, MessageId
from semcast.history import Event, GroupInfo, History, Kind, RunInfo
from semcast.specs import EVS, PROPERTIES, Status, Verdict, check, properties_for

STEP = re.compile(
    r"(?P<crash>crash)|\+(?P<merged>\d+)|V(?P<view>\d+)=(?P<members>[a-z]+)(/(?P<by>[a-z]))?"
    r"|T(?P<after>\d+)?=(?P<leaving>[a-z]+)"
    r"|-(?P<old>[a-z]\d+)<(?P<new>[a-z]\d+)?"
    r"|(?P<who>[a-z!])(?P<first>\d+)(-(?P<last>\d+))?(@(?P<number>\d+))?(:(?P<item>.+))?"
)


def ring(script: str, *, quiesced: bool = True) -> History:
    lines = [line.split(":", 1) for line in script.strip().splitlines()]
    events = [event for name, steps in lines for event in Scribe(member(name.strip())).write(steps.split())]
    processes = tuple(dict.fromkeys(event.process for event in events))
    info = RunInfo.one("run", "g", "ring", None, processes, None, uniform=False, quiesced=quiesced)
    return History(info, events)


def member(name: str) -> MemberId:
    letter, _, incarnation = name.partition("#")
    return MemberId(letter, int(incarnation or 0))


def message(text: str) -> MessageId:
    return MessageId(MemberId(text[0]), int(text[1:]))


class Scribe:
    """Writes down what one process does."""

    def __init__(self, process: MemberId) -> None:
        self.process = process
        self.view: int | None = None
        self.formed_by: MemberId | None = None
        self.rows: list[Event] = []

    def write(self, steps: list[str]) -> list[Event]:
        for step in steps:
            match = STEP.fullmatch(step)
            assert match is not None, step
            self.step(match)
        return self.rows

    def add(self, kind: Kind, sender: MemberId | None = None, seq: int = 0, count: int = 0) -> None:
        self.rows.append(Event(self.process, len(self.rows), len(self.rows), kind, "g", sender, seq, count))

    def note(self, **fields: object) -> None:
        self.rows[-1] = msgspec.structs.replace(self.rows[-1], **fields)

    def members(self, letters: str) -> tuple[MemberId, ...]:
        """A process is the latest of its name for itself, and everybody else is the first."""
        return tuple(self.process if letter == self.process.name else MemberId(letter) for letter in letters)

    def step(self, match: re.Match[str]) -> None:
        if match["crash"]:
            self.add(Kind.CRASH)
        elif match["merged"]:
            self.add(Kind.MERGED, count=int(match["merged"]))
        elif match["view"]:
            members = self.members(match["members"])
            self.view, self.formed_by = int(match["view"]), member(match["by"]) if match["by"] else members[0]
            self.add(Kind.VIEW, self.formed_by)
            self.note(view=self.view, members=members)
        elif match["leaving"]:
            self.add(Kind.TRANSITIONAL, self.formed_by)
            after = int(match["after"]) if match["after"] else self.view
            self.note(view=after, members=self.members(match["leaving"]))
        elif match["old"]:
            old = message(match["old"])
            self.add(Kind.PURGE, old.sender, old.seq, 1)
            self.note(by=message(match["new"]) if match["new"] else None)
        else:
            self.messages(match)

    def messages(self, match: re.Match[str]) -> None:
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if match["who"] not in "m!":
            self.add(Kind.DELIVER, MemberId(match["who"]), first, last - first + 1)
            return
        self.add(Kind.MULTICAST, self.process, first, last - first + 1)
        self.note(
            view=int(match["number"]) if match["number"] else self.view,
            level="safe" if match["who"] == "!" else None,
            annotation=Item(match["item"]) if match["item"] else None,
        )


def violated(history: History) -> dict[str, Verdict]:
    return {verdict.property: verdict for verdict in check(history) if verdict.status is Status.VIOLATED}


FIGURE_4_8 = """
    p: V1=p T=p V5=pqr !1 p1 !2 !3 q1 T=p p2 r1 p3 V6=p
    q: V2=q T=q V5=pqr p1 !1 T=qr q1 r1 V7=qrst
    r: V3=r T=r V5=pqr p1 !1 T=qr q1 r1 V7=qrst
    s: V4=st !1 s1 T=st V7=qrst
    t: V4=st s1 T=st V7=qrst
"""

MERGED = """
    p: V1=pqr m1 p1 T=pq +2 V4=pqr q1
    q: V1=pqr p1 T=pq V2=pq T=q V3=q T=q V4=pqr m1 q1
    r: V1=pqr p1 T=r V2=r/r T=r V4=pqr q1
"""
"""The program of p was not told of two configurations that came and went."""

SOUND: dict[str, Callable[[], History]] = {
    "configurations that were merged": lambda: ring(MERGED),
    "merged, and left behind by who was in one of them": lambda: ring("""
        p: V1=pqr T=pqr +1 V3=pqr
        q: V1=pqr T=pqr V2=pqr m1 q1 T=qr V3=pqr
        r: V1=pqr T=pqr V2=pqr q1 T=qr V3=pqr
    """),
    "Amir 1995, figure 4.8": lambda: ring(FIGURE_4_8),
    "nothing happens": lambda: ring("p: V1=p"),
    "together, and then apart": lambda: ring("""
        p: V1=pq m1-3 p1-3 q1 T=p V2=p m4 p4
        q: V1=pq m1 p1 p2-3 q1 T=q V3=q
    """),
    "what one side cannot deliver for want of a message": lambda: ring("""
        p: V1=pq m1-2 p1-2 T=p V2=p
        q: V1=pq T=q V3=q
    """),
    "the last token is lost: one goes on, the other one without it": lambda: ring("""
        p: V1=pq T=pq V2=pq crash
        q: V1=pq T=q V3=q
    """),
    "an update skipped for a later one": lambda: ring("""
        p: V1=pq !1:x !2:x p1-2 T=pq V2=pq
        q: V1=pq -p1<p2 p2 T=pq V2=pq
    """),
    "skipped before the application has seen where it belongs": lambda: ring("""
        p: V1=p T=p V2=pq m1:x m2:x p1-2
        q: V9=q -p1<p2 T=q V2=pq p2
    """),
    "a crash excuses who had not come to it": lambda: ring("""
        p: V1=p T=p V2=pq !1 p1 T=p V3=p
        q: V1=q crash
    """),
    "a crash excuses what was about to be replaced": lambda: ring("""
        p: V1=pq !1:x !2:y !3:x p1-3 T=p V2=p
        q: V1=pq -p1<p3 p2 crash
    """),
    "a restart is another process": lambda: ring(
        """
        p: V1=pq m1 p1 T=p V2=p
        q: V1=pq p1 crash
        q#1: V3=q m1
    """,
        quiesced=False,
    ),
    "who crashes owes nothing": lambda: ring("""
        p: V1=pq !1 p1 T=p V2=p
        q: V1=pq m1-2 crash
    """),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound(name: str) -> None:
    assert [str(verdict) for verdict in violated(SOUND[name]()).values()] == []


# What is broken, the property to catch it with its count, and which others cannot but see it, too.
BROKEN: dict[str, tuple[str, str, int, set[str]]] = {
    "messages that were delivered before they were sent": (
        """
        p: V1=pq q1 m1 p1
        q: V1=pq p1 m1 q1
        """,
        "evs_1_1_precedence",
        4,
        {"evs_6_1_order_respects_precedence", "evs_6_2_same_moment", "evs_6_3_agreed"},
    ),
    "sent in an earlier configuration": (
        """
        p: V1=pq m1 p1 T=pq V2=pq
        q: V1=pq T=pq V2=pq p1
        """,
        "evs_1_3_sent_before_in_same_configuration",
        1,
        {
            "evs_4_failure_atomicity",
            "evs_6_1_order_respects_precedence",
            "evs_6_2_same_moment",
            "pair_transitional",
        },
    ),
    "merged without a word": (
        """
        p: V1=pqr T=pqr V4=pq
        q: V1=pqr T=pqr V2=pqr T=pq V4=pq
        r: V1=pqr T=pqr V2=pqr T=r V5=r
        """,
        "pair_transitional_then_regular",
        1,
        set(),
    ),
    "merged with a message in it": (
        """
        p: V1=pq T=pq q1 +1 V3=pq
        q: V1=pq T=pq V2=pq m1 q1 T=pq V3=pq
        """,
        "evs_1_3_sent_before_in_same_configuration",
        1,
        set(),
    ),
    "sent by a stranger": (
        """
        p: V1=p q1
        q: V1=q m1 q1
        """,
        "evs_1_3_sent_before_in_same_configuration",
        1,
        set(),
    ),
    "sent by one who has a configuration that it is not in": (
        """
        p: V1=p q1
        q: V1=p m1 q1
        """,
        "evs_1_3_sent_before_in_same_configuration",
        2,
        {"evs_2_2_inside_configuration"},
    ),
    "sent again": (
        "p: V1=p m1-2 p1-2 m2",
        "evs_1_4_once",
        1,
        set(),
    ),
    "sent in a transitional configuration": (
        "p: V1=p T=p m1 p1 V2=p",
        "evs_1_4_once",
        1,
        {"evs_1_3_sent_before_in_same_configuration"},
    ),
    "delivered in two configurations": (
        "p: V1=p m1-2 p1-2 T=p p2 V2=p",
        "evs_1_4_once",
        1,
        {"integrity"},
    ),
    "somebody is left behind": (
        """
        p: V1=pq T=pq V2=pq
        q: V1=pq
        """,
        "evs_2_1_installed_by_all",
        2,
        set(),
    ),
    "nobody notices a crash": (
        """
        p: V1=pqr
        q: V1=pqr
        r: V1=pqr crash
        """,
        "evs_2_1_installed_by_all",
        2,
        set(),
    ),
    "before the first configuration": (
        "p: m1-3@1 V1=p p1-3",
        "evs_2_2_inside_configuration",
        3,
        {"evs_1_3_sent_before_in_same_configuration"},
    ),
    "after a crash": (
        "p: V1=p m1-2 p1 crash p2",
        "evs_2_2_inside_configuration",
        1,
        set(),
    ),
    "sent with another number": (
        "p: V1=p m1-2@2 p1-2",
        "evs_2_2_inside_configuration",
        2,
        set(),
    ),
    "not a member": (
        """
        p: V1=pq
        q: V1=pq T=p V2=q
        """,
        "evs_2_2_inside_configuration",
        1,
        {"evs_2_1_installed_by_all", "pair_transitional_then_regular"},
    ),
    "a transitional configuration of another one": (
        "p: V1=p T=p V2=p T1=p V3=p",
        "evs_2_2_inside_configuration",
        1,
        {"evs_2_4_cut_before", "evs_6_1_order_respects_precedence", "evs_6_2_same_moment"},
    ),
    "two transitional configurations in a row": (
        """
        p: V1=pq T=pq T=p V2=p
        q: V3=q
        """,
        "evs_2_2_inside_configuration",
        1,
        set(),
    ),
    "a configuration that reaches one after what was sent in it": (
        """
        p: V1=p T=p V3=pq m1 p1
        q: V2=q p1 T=q V3=pq
        """,
        "evs_2_3_cut_after",
        1,
        {
            "evs_1_3_sent_before_in_same_configuration",
            "evs_2_4_cut_before",
            "evs_6_1_order_respects_precedence",
            "evs_6_2_same_moment",
        },
    ),
    "configurations in different orders": (
        """
        p: V1=pq V2=pq
        q: V2=pq V1=pq
        """,
        "evs_2_4_cut_before",
        2,
        {"evs_2_1_installed_by_all", "evs_6_1_order_respects_precedence", "evs_6_2_same_moment"},
    ),
    "a configuration twice": (
        "p: V1=p T=p V1=p",
        "evs_2_4_cut_before",
        2,
        {"evs_6_1_order_respects_precedence", "evs_6_2_same_moment"},
    ),
    "its own last message lost": (
        "p: V1=p m1-3 p1 T=p V2=p",
        "evs_3_self_delivery",
        2,
        set(),
    ),
    "its own last message lost at the end": (
        "p: V1=p m1-3 p1",
        "evs_3_self_delivery",
        2,
        set(),
    ),
    "one lost a message, and they go on together": (
        """
        p: V1=pq m1-2 p1-2 T=pq V2=pq
        q: V1=pq p1 T=pq V2=pq
        """,
        "evs_4_failure_atomicity",
        1,
        {"pair_transitional"},
    ),
    "replaced, but in the next configuration": (
        """
        p: V1=pq m1:x p1 m2:x T=pq p2 V2=pq
        q: V1=pq -p1<p2 T=pq p2 V2=pq
        """,
        "evs_4_failure_atomicity",
        1,
        {"pair_transitional"},
    ),
    "an answer without the question": (
        """
        p: V1=pqr m1 p1 q1 T=p V2=p
        q: V1=pqr p1 m1 q1 T=q V3=q
        r: V1=pqr T=r q1 V4=r
        """,
        "evs_5_causal",
        1,
        set(),
    ),
    "an answer before the question": (
        """
        p: V1=pqr m1 p1 q1
        q: V1=pqr p1 m1 q1
        r: V1=pqr q1 p1
        """,
        "evs_5_causal",
        1,
        {"evs_6_1_order_respects_precedence", "evs_6_2_same_moment", "evs_6_3_agreed"},
    ),
    "figure 4.8, and q delivers m5": (
        FIGURE_4_8.replace("q1 r1 V7", "q1 r1 p3 V7"),
        "evs_5_causal",
        2,
        set(),
    ),
    "sends in the way of an order": (
        """
        p: V1=pqr q1 r1 T=p V2=p
        q: V1=pqr r1 m1 crash
        r: V1=pqr m1 r1 crash
        """,
        "evs_6_1_order_respects_precedence",
        4,
        {"evs_5_causal", "evs_6_3_agreed"},
    ),
    "different orders": (
        """
        p: V1=pq m1 p1 q1
        q: V1=pq m1 q1 p1
        """,
        "evs_6_2_same_moment",
        2,
        {"evs_6_1_order_respects_precedence", "evs_6_3_agreed"},
    ),
    "figure 4.8, and no transitional configuration": (
        FIGURE_4_8.replace("!1 T=qr q1", "!1 q1"),
        "evs_6_3_agreed",
        2,
        set(),
    ),
    "a hole that the sender could have filled": (
        """
        p: V1=pqr m1 p1 q1 T=p V2=p
        q: V1=pqr m1 p1 q1 T=q V3=q
        r: V1=pqr T=pr q1 crash
        """,
        "evs_6_3_agreed",
        1,
        set(),
    ),
    "safe too early": (
        """
        p: V1=pq !1 p1 T=p V2=p
        q: V1=pq T=q V3=q
        """,
        "evs_7_1_safe",
        1,
        set(),
    ),
    "safe in a transitional configuration, and not everybody had it": (
        """
        p: V1=pqr !1-2 T=pq p1-2 V2=pq
        q: V1=pqr p1 T=q V3=q
        r: V1=pqr crash
        """,
        "evs_7_1_safe",
        1,
        {"evs_2_1_installed_by_all"},
    ),
    "safe in a configuration that one never saw": (
        """
        p: V1=p T=p V3=pq !1-2 p1-2 T=p V4=p
        q: V2=q T=q V5=q
        """,
        "evs_7_2_safe_configuration_installed",
        2,
        {"evs_7_1_safe"},
    ),
    "safe in a configuration that one passed by and then crashed": (
        """
        p: V1=p T=p V3=pq !1-2 p1-2 T=p V4=p
        q: V2=q T=q V3=q crash
        """,
        "evs_7_2_safe_configuration_installed",
        2,
        {"evs_7_1_safe"},
    ),
    "two lists of members": (
        """
        p: V1=pq
        q: V1=q/p
        """,
        "pair_same_members",
        1,
        set(),
    ),
    "the same number again after a restart": (
        """
        p: V1=p crash
        q: V1=pq/p T=q V2=q
        """,
        "pair_same_members",
        1,
        set(),
    ),
    "both count on the other one, differently": (
        """
        p: V1=pqr T=pq V2=pq crash
        q: V1=pqr T=pqr V3=pqr crash
        r: V1=pqr T=r V4=r
        """,
        "pair_transitional",
        1,
        set(),
    ),
    "not the same in the transitional configuration": (
        """
        p: V1=pqr T=pq r1 V2=pq
        q: V1=pqr T=pq V2=pq
        r: V1=pqr m1 crash
        """,
        "pair_transitional_then_regular",
        1,
        {"evs_4_failure_atomicity"},
    ),
    "one without the transitional configuration": (
        """
        p: V1=pq T=pq V2=pq
        q: V1=pq V2=pq
        """,
        "pair_transitional_then_regular",
        1,
        set(),
    ),
    "not on with those it said": (
        """
        p: V1=pq T=pq V2=p
        q: V1=pq T=q V3=q
        """,
        "pair_transitional_then_regular",
        1,
        set(),
    ),
    "purged for a message of another configuration": (
        """
        p: V1=pq m1:x p1 T=pq V2=pq m2:x p2
        q: V1=pq -p1<p2 T=pq V2=pq p2
        """,
        "evs_purge_within_configuration",
        1,
        {"evs_4_failure_atomicity", "pair_transitional"},
    ),
    "purged for a message that never comes": (
        """
        p: V1=pq m1-2 p1-2 T=p V2=p
        q: V1=pq -p1<p2 T=q V3=q
        """,
        "evs_purge_within_configuration",
        1,
        set(),
    ),
    "purged for nothing": (
        """
        p: V1=pq m1:x m2:x p1-2
        q: V1=pq -p1< p2
        """,
        "evs_purge_within_configuration",
        1,
        set(),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken(name: str) -> None:
    script, culprit, count, others = BROKEN[name]
    found = violated(ring(script))
    assert set(found) == {culprit, *others}
    assert found[culprit].count == count


def test_two_events_with_one_number() -> None:
    sound = ring("p: V1=p m1-2 p1-2")
    *before, last = sound.events
    broken = History(sound.info, [*before, msgspec.structs.replace(last, index=1)])
    found = violated(broken)
    assert {name: verdict.count for name, verdict in found.items()} == {"evs_1_2_local_order": 2}


def test_every_property_has_a_history_that_breaks_it() -> None:
    assert {culprit for _, culprit, _, _ in BROKEN.values()} | {"evs_1_2_local_order"} == set(EVS)


def test_a_ring_promises_all_of_it() -> None:
    info = GroupInfo("", "ring")
    always = {"relation_is_order", "integrity", "fifo_delivery", "buffer_bound", "ring_certificate"}
    assert properties_for(info) == [name for name in PROPERTIES if name in always | EVS.keys()]


def test_verdicts_read_well() -> None:
    """Figure 4.8 again, where q and r deliver m5 without m3."""
    script, *_ = BROKEN["figure 4.8, and q delivers m5"]
    assert str(violated(ring(script))["evs_5_causal"]) == (
        "evs_5_causal: violated, 2 cases: q delivered (p,3) without (p,2) before it; "
        "r delivered (p,3) without (p,2) before it\n"
        "    p[5] at 5 ns: multicast (p,2)\n"
        "    q[8] at 8 ns: deliver (p,3)\n"
        "    r[8] at 8 ns: deliver (p,3)"
    )


UNFINISHED = {
    "its own message may still come": "p: V1=p m1-2 p1",
    "so may the others'": """
        p: V1=pq !1-2 p1-2
        q: V1=pq p1
    """,
    "what replaces it may still come": """
        p: V1=pq m1:x m2 m3:x p1-3
        q: V1=pq -p1<p3 p2
    """,
    "a configuration may still come": """
        p: V1=p T=p V2=pq !1 p1
        q: V1=q
    """,
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_what_is_not_owed_yet(name: str) -> None:
    assert violated(ring(UNFINISHED[name], quiesced=False)) == {}
    assert violated(ring(UNFINISHED[name], quiesced=True)) != {}


def test_a_run_that_was_not_over_does_not_say_where_it_ends() -> None:
    (verdict,) = check(ring("p: V1=pq", quiesced=False), ["evs_2_1_installed_by_all"])
    assert str(verdict) == "evs_2_1_installed_by_all: unknown: the run was not over"


@pytest.mark.parametrize("name", ["evs_2_3_cut_after", "evs_2_4_cut_before", "evs_5_causal"])
def test_without_precedence_nothing_can_be_said_about_cuts_and_causes(name: str) -> None:
    script, *_ = BROKEN["messages that were delivered before they were sent"]
    (verdict,) = check(ring(script), [name])
    assert str(verdict) == f"{name}: unknown: precedence runs in a circle"


@pytest.mark.parametrize("name", EVS)
def test_no_verdict_without_configurations(name: str) -> None:
    (verdict,) = check(ring("p: m1@1 p1"), [name])
    assert str(verdict) == f"{name}: unknown: no configuration was recorded"


def test_long_runs_cost_nothing() -> None:
    history = ring(f"""
        p: V1=pq m1-{10**12} p1-{10**12} T=p V2=p
        q: V1=pq p1-500 p501-{10**11} T=q V3=q
    """)
    assert violated(history) == {}
    lost = violated(ring(f"p: V1=p !1-{10**12} p1-500 T=p V2=p"))
    assert lost["evs_3_self_delivery"].count == 10**12 - 500
