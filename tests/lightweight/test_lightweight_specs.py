"""The checkers of lightweight groups, by hand: each lets a sound history pass, and catches a broken one.

Four of them have a twin that compares everything with everything, on histories in which rows were moved,
lost, doubled or changed at random.
"""

from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any

import msgspec
import pytest
from tests.lightweight.world import wander

from semcast.core import Item, MemberId
from semcast.history import Event, History, RunInfo
from semcast.history.schema import kind_named
from semcast.history.wellformed import problem
from semcast.protocols.lightweight import Machine
from semcast.sim.mutants import MUTANTS
from semcast.specs import LIGHTWEIGHT, Status
from semcast.specs.lightweight.kinds import DELIVER, LEFT, ORDERED, PRIVATE, TRANSITIONAL, VIEW
from semcast.specs.lightweight.story import Row, story_of

P, Q = MemberId("p"), MemberId("q")
A, B, C = MemberId("a@p", 1), MemberId("b@q", 1), MemberId("c@q", 1)
HOME = {A: P, B: Q, C: Q}
CONF = [5, 0, "p"]


class Script:
    """Rows of two daemons, each later than the one before."""

    def __init__(self) -> None:
        self._at = count(1)
        self.rows: list[Event] = []

    def row(self, process: MemberId, kind: str, text: object = None, **columns: object) -> "Script":
        index = sum(1 for row in self.rows if row.process == process)
        event = Event(process, index, next(self._at), kind_named(kind), "g")
        note = None if text is None else Item(msgspec.json.encode(text).decode())
        event = msgspec.structs.replace(event, annotation=note, **columns)
        assert problem(event) is None, problem(event)
        self.rows.append(event)
        return self

    def conf(
        self, process: MemberId, number: int = 5, level: str = "regular", *members: MemberId
    ) -> "Script":
        who = members or (P, Q)
        return self.row(process, "lw-conf", sender=P, view=number, level=level, members=who)

    def session(self, client: MemberId, level: str = "came") -> "Script":
        return self.row(HOME[client], "lw-session", sender=client, level=level)

    def ask(self, client: MemberId, seq: int, level: str, group: str = "e", **more: object) -> "Script":
        text = {"groups": [group], "view": more.pop("view", None)}
        return self.row(HOME[client], "lw-ask", text, sender=client, seq=seq, count=1, level=level, **more)

    def ordered(
        self, process: MemberId, index: int, client: MemberId, seq: int, level: str, group: str = "e"
    ) -> "Script":
        text = {"epoch": CONF, "groups": [group]}
        numbers = {"seq": seq, "count": 1 if seq else 0}
        return self.row(process, "lw-ordered", text, sender=client, level=level, order=index, **numbers)

    def view(
        self, client: MemberId, change: int, *members: MemberId, cause: str = "join", **more: object
    ) -> "Script":
        text = {"group": "e", "id": [*CONF, change], "vs": False, "along": [], **more}
        return self.row(HOME[client], "lw-view", text, sender=client, level=cause, members=members)

    def transitional(self, client: MemberId, *members: MemberId) -> "Script":
        text = {"group": "e", "id": [*CONF, 2]}
        return self.row(HOME[client], "lw-transitional", text, sender=client, members=members)

    def deliver(
        self, client: MemberId, index: int, sender: MemberId, seq: int, change: int = 2, **more: object
    ) -> "Script":
        text = {"epoch": CONF, "views": {"e": [*CONF, change]}, "sent": None, **more}
        columns = {"sender": sender, "seq": seq, "count": 1, "order": index, "members": (client,)}
        return self.row(HOME[client], "lw-deliver", text, **columns)

    def private(self, client: MemberId, index: int, level: str, sender: MemberId, seq: int) -> "Script":
        columns = {"sender": sender, "seq": seq, "count": 1, "order": index, "members": (client,)}
        return self.row(HOME[client], "lw-private", {"epoch": CONF}, level=level, **columns)

    def placed(self, client: MemberId, seq: int, *have: MemberId) -> "Script":
        return self.row(HOME[client], "lw-placed", sender=client, seq=seq, count=1, members=have)

    def history(self, *, quiesced: bool = True) -> History:
        info = RunInfo.one("r", "g", "lightweight", 1, (P, Q), None, uniform=False, quiesced=quiesced)
        return History(info, self.rows)

    def broken(self) -> set[str]:
        history = self.history()
        return {name for name, checker in LIGHTWEIGHT.items() if checker(history).status is Status.VIOLATED}


def joined(**more: Any) -> Script:
    """A and B, on two daemons, are in a group."""
    script = Script().conf(P).conf(Q).session(A).session(B).ask(A, 1, "join").ask(B, 1, "join")
    for process in (P, Q):
        script.ordered(process, 1, A, 0, "came").ordered(process, 2, B, 0, "came")
        script.ordered(process, 3, A, 1, "join")
        if process == P:
            script.view(A, 1, A, **more)
        script.ordered(process, 4, B, 1, "join")
        script.view(A if process == P else B, 2, A, B, **more)
    return script


def cast(script: Script, index: int, seq: int, *clients: MemberId, **more: Any) -> Script:
    """A sends to all, and these clients are given it."""
    script.ask(A, seq, "cast", view=more.get("sent"))
    for process in (P, Q):
        script.ordered(process, index, A, seq, "cast")
        for client in clients:
            if HOME[client] == process:
                script.deliver(client, index, A, seq, **more)
    return script


def test_a_sound_history_passes() -> None:
    script = cast(joined(), 5, 2, A, B).placed(A, 2, P, Q)
    script.ask(A, 3, "private", members=(B,))
    for process in (P, Q):
        script.ordered(process, 6, A, 3, "private")
    assert script.private(B, 6, "delivered", A, 3).broken() == set()


def test_who_is_out_does_nothing_more_as_the_same() -> None:
    assert joined().session(B, "out").broken() <= {"lw_gone"}  # at rest it has to be gone from the group
    assert "one_fate" in joined().session(B, "out").ask(B, 2, "cast").broken()
    assert "one_fate" in joined().session(B, "gone").view(B, 3, A, B).broken()
    assert "one_fate" in cast(joined().session(B, "out"), 5, 2, A, B).broken()
    assert "one_fate" in joined().session(B, "out").placed(B, 1, P, Q).broken()
    assert "one_fate" in joined().session(B, "out").session(B, "came").broken()


def test_who_has_heard_that_it_is_out_hears_nothing_more() -> None:
    def hears(*levels: str) -> Script:
        script = joined()
        for level in levels:
            script.row(B, "lw-heard", {}, sender=B, level=level)
        return script

    assert hears("opened", "out").broken() == set()
    assert "one_fate" in hears("opened", "out", "deliver").broken()


def test_two_lists_for_one_view() -> None:
    assert "lw_view_agreement" in joined().view(A, 3, A, B).view(B, 3, B, A).broken()


def test_views_that_do_not_grow() -> None:
    assert "lw_view_agreement" in joined().view(A, 1, A).broken()


def test_a_message_before_the_first_view() -> None:
    script = Script().conf(P).session(A)
    assert "lw_view_agreement" in cast(script, 1, 1, A).broken()


def test_a_message_in_two_views() -> None:
    script = joined().ask(A, 2, "cast").view(A, 3, A, B)
    script.ordered(P, 5, A, 2, "cast").deliver(A, 5, A, 2, change=3)
    assert "lw_same_view" in script.ordered(Q, 5, A, 2, "cast").deliver(B, 5, A, 2, change=2).broken()


def test_different_messages_before_the_same_view() -> None:
    script = cast(joined(), 5, 2, A)
    assert "lw_atomicity" in script.view(A, 3, A, B).view(B, 3, A, B).broken()


def test_who_was_apart_may_have_different_messages_before_the_same_view() -> None:
    """Their daemons parted, and met again before the one side had agreed on another view."""
    script = cast(joined(), 5, 2, A)
    script.transitional(A, A).transitional(B, B)
    assert "lw_atomicity" not in script.view(A, 3, A, B).view(B, 3, A, B).broken()
    script = cast(joined(), 5, 2, A)
    script.transitional(A, A, B).transitional(B, A, B)
    assert "lw_atomicity" in script.view(A, 3, A, B).view(B, 3, A, B).broken()


def test_two_messages_at_one_position() -> None:
    script = joined().ask(A, 2, "cast").ask(B, 2, "cast")
    script.ordered(P, 5, A, 2, "cast").deliver(A, 5, A, 2)
    assert "lw_order" in script.ordered(Q, 5, B, 2, "cast").deliver(B, 5, B, 2).broken()


def test_delivered_twice() -> None:
    assert "lw_order" in cast(joined(), 5, 2, A, A, B).broken()


def test_out_of_order() -> None:
    script = joined().ask(A, 2, "cast").ask(A, 3, "cast")
    script.ordered(P, 6, A, 3, "cast").deliver(A, 6, A, 3)
    assert "lw_order" in script.ordered(P, 5, A, 2, "cast").deliver(A, 5, A, 2).broken()


def test_no_common_order() -> None:
    """Each daemon has positions of its own, and each is fine in itself."""
    script = joined()
    script.ordered(P, 5, A, 0, "x").ordered(P, 6, B, 0, "y")
    text = {"epoch": [5, 1, "q"], "groups": []}
    script.row(Q, "lw-ordered", text, sender=B, level="y", order=5)
    script.row(Q, "lw-ordered", text, sender=A, level="x", order=6)
    assert "lw_order" in script.broken()


def test_a_member_is_not_given_a_message_from_outside() -> None:
    script = joined().session(C).ask(C, 1, "cast")
    for process in (P, Q):
        script.ordered(process, 5, C, 1, "cast")
    script.deliver(B, 5, C, 1)
    assert script.broken() == {"lw_open"}


def test_who_is_no_member_is_given_a_message() -> None:
    script = joined().session(C)
    assert "lw_open" in cast(script, 5, 2, A, B, C).broken()


def test_another_view_than_it_was_sent_in() -> None:
    script = cast(joined(vs=True), 5, 2, A, B, sent=[*CONF, 2])
    assert script.broken() == set()
    script = cast(joined(vs=True).view(A, 3, A, B), 5, 2, A, sent=[*CONF, 3], change=2)
    assert "lw_sending_view" in script.broken()


def test_the_view_of_a_sender_is_over() -> None:
    assert "lw_sending_view" in cast(joined(vs=True), 5, 2, B, sent=[*CONF, 2]).broken()


def test_a_gap_in_a_view() -> None:
    script = cast(joined(vs=True), 5, 2, A, sent=[*CONF, 2])
    assert "lw_sending_view" in cast(script, 6, 3, A, B, sent=[*CONF, 2]).broken()


@pytest.mark.parametrize("to", [A, C])
def test_a_private_message_for_somebody_else(to: MemberId) -> None:
    script = joined().session(C).ask(A, 2, "private", members=(to,))
    for process in (P, Q):
        script.ordered(process, 5, A, 2, "private")
    assert "lw_private" in script.private(B, 5, "delivered", A, 2).broken()


def test_a_private_message_without_an_outcome_or_with_two() -> None:
    script = joined().ask(A, 2, "private", members=(B,))
    for process in (P, Q):
        script.ordered(process, 5, A, 2, "private")
    assert script.broken() == {"lw_private"}
    script.private(B, 5, "delivered", A, 2).private(A, 5, "undeliverable", A, 2)
    assert script.broken() == {"lw_private"}


def test_a_ghost() -> None:
    script = joined().session(B, "gone")
    for process in (P, Q):
        script.ordered(process, 5, B, 0, "gone")
    assert script.broken() == {"lw_gone"}
    assert "lw_gone" in script.view(A, 3, A, B).broken()


def test_told_twice_of_one_change() -> None:
    script = joined().conf(P, 6).view(A, 3, A, B, cause="configuration")
    assert "lw_one_event" in script.view(A, 4, A, B, cause="configuration").broken()
    script = joined().conf(P, 5, "rest", P).transitional(A, A)
    assert "lw_one_event" not in script.broken()
    assert "lw_one_event" in script.transitional(A, A).broken()


def test_lost_without_a_warning() -> None:
    script = joined().conf(P, 5, "rest", P).conf(P, 6, "regular", P)
    assert "lw_one_event" in script.view(A, 3, A, cause="configuration").broken()


def test_a_place_that_is_not_there() -> None:
    assert "lw_settled" in joined().ask(A, 2, "cast").placed(A, 2, P, Q).broken()


def test_done_twice() -> None:
    script = cast(joined(), 5, 2, A, B)
    assert "lw_settled" in script.ordered(P, 6, A, 2, "cast").broken()


def test_placed_and_lost() -> None:
    script = joined().ask(A, 2, "leave")
    script.ordered(P, 5, A, 2, "leave").placed(A, 2, P, Q).row(P, "crash")
    assert "lw_settled" in script.broken()


# Twins


def _deliveries(history: History) -> list[Row]:
    return list(story_of(history).rows(DELIVER))


def agreement(history: History) -> bool:
    told = list(story_of(history).rows(VIEW))
    if any(row.client not in row.members for row in told):
        return False
    for one in told:
        for other in told:
            same = (one.text.group, one.text.id) == (other.text.group, other.text.id)
            if same and one.members != other.members:
                return False
    for rows in story_of(history).heard.values():
        for at, row in enumerate(rows):
            before = [each for each in rows[:at] if each.kind in (VIEW, LEFT)]
            for group in [*row.text.views, row.text.group] if row.kind is not LEFT else ():
                about = [each for each in before if each.text.group == group]
                if row.kind is VIEW:
                    if any(each.kind is VIEW and each.text.id >= row.text.id for each in about):
                        return False
                elif group and (not about or about[-1].kind is LEFT):
                    return False
    return True


def same_view(history: History) -> bool:
    vs = story_of(history).vs
    rows = _deliveries(history)
    return not any(
        one.message == other.message
        and one.text.epoch == other.text.epoch
        and view != other.text.views[group]
        for one in rows
        for other in rows
        for group, view in one.text.views.items()
        if group in other.text.views
        and not (group in vs and (one.text.sent is None or other.text.sent is None))
    )


def _stays(history: History) -> Iterator[tuple[object, list[object]]]:
    for client, rows in story_of(history).heard.items():
        for at, row in enumerate(rows):
            if row.kind is not VIEW or (row.text.vs and str(client) not in row.text.along):
                continue
            group = row.text.group
            bounds = [
                place
                for place, each in enumerate(rows[:at])
                if each.kind in (VIEW, LEFT) and each.text.group == group
            ]
            if bounds and rows[bounds[-1]].kind is VIEW:
                given = rows[bounds[-1] : at]
                parts = [
                    each.members for each in given if each.kind is TRANSITIONAL and each.text.group == group
                ]
                parts.append(given[0].members)
                along = row.text.along if row.text.vs else frozenset.intersection(*map(frozenset, parts))
                key = group, rows[bounds[-1]].text.id, row.text.id, along
                yield key, [each.message for each in given if group in each.text.views]


def atomicity(history: History) -> bool:
    stays = list(_stays(history))
    return not any(key == other and a != b for key, a in stays for other, b in stays)


def order(history: History) -> bool:
    story = story_of(history)
    for rows in story.heard.values():
        given = [row for row in rows if row.kind in (DELIVER, PRIVATE)]
        for at, one in enumerate(given):
            for other in given[at + 1 :]:
                if one.place >= other.place:
                    return False
                if one.message[0] == other.message[0] and one.event.last >= other.message[1]:
                    return False
    rows = list(story.rows(ORDERED, DELIVER, PRIVATE))
    steps = [(row, (row.message[0], row.message[1] or row.event.level)) for row in rows]
    for row, step in steps:
        for other, another in steps:
            if (row.place == other.place) and step != another:
                return False
            if step == another and not _may_both_be(row, other):
                return False
    return True


def _may_both_be(one: Row, other: Row) -> bool:
    first, second = one.text.epoch, other.text.epoch
    if first == second:
        return one.place == other.place
    return first[0] == second[0] and (first[1] == 1 or second[1] == 1)


TWINS: dict[str, Callable[[History], bool]] = {
    "lw_view_agreement": agreement,
    "lw_same_view": same_view,
    "lw_atomicity": atomicity,
    "lw_order": order,
}


def spoilt(history: History, rng: Random) -> History:
    """The same with a few rows moved, lost, doubled or changed."""
    rows = {process: list(history.of(process)) for process in history.processes}
    for _ in range(rng.choice((0, 1, 2))):
        events = rows[rng.choice([process for process in rows if rows[process]])]
        at = rng.randrange(len(events))
        event = events[at]
        what = rng.choice(("lose", "double", "move", "change"))
        if what == "lose":
            del events[at]
        elif what == "double":
            events.insert(rng.randrange(at, len(events)), event)
        elif what == "move":
            events.insert(rng.randrange(len(events)), events.pop(at))
        elif event.members and event.kind is VIEW:
            events[at] = msgspec.structs.replace(event, members=event.members[1:] or event.members)
        elif event.order is not None:
            events[at] = msgspec.structs.replace(event, order=event.order + 1)
    return History(history.info, [event for events in rows.values() for event in events])


@pytest.mark.parametrize("mutant", ["", "join-at-request", "operations-untagged", "delivered-once-per-group"])
def test_the_twins_agree(mutant: str) -> None:
    """Also on what broken daemons did."""
    machine = MUTANTS["lightweight"][mutant].daemon if mutant else Machine
    for seed in range(20):
        world = wander(seed, machine)
        history = spoilt(world.history(), Random(seed))
        for name, twin in TWINS.items():
            holds = LIGHTWEIGHT[name](history).status is Status.HOLDS
            if name != "lw_order" or holds or not twin(history):  # it looks for a common order, too
                assert holds == twin(history), f"{name}, seed {seed}"
