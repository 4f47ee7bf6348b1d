"""What is dropped from the queue of a slow client, and what never is."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from semcast.core import MemberId
from semcast.protocols.lightweight.events import (
    Cause,
    ClientEvent,
    Delivered,
    GroupView,
    LeftGroup,
    Placed,
    Replaced,
)
from semcast.protocols.lightweight.ids import Epoch, Position, ViewId
from semcast.protocols.lightweight.purging import Pass

A, B = MemberId("a@d", 1), MemberId("b@d", 1)
EPOCH = Epoch(1, False, MemberId("d"))


def purge(events: list[ClientEvent]) -> tuple[list[ClientEvent], int]:
    """What is left of a queue, and how many messages were dropped."""
    look = Pass()
    return look.over(events), look.dropped


def run(sender: MemberId, first: int, items: str, *groups: str) -> Delivered:
    """Messages about items, each one letter; a dot for none."""
    names = ["" if item == "." else item for item in items]
    payloads = [b"%d" % seq for seq in range(first, first + len(items))]
    position = Position(EPOCH, 100 + first)
    return Delivered(sender, first, groups or ("g",), position, payloads, sum(map(len, payloads)), names)


def view(group: str, change: int) -> GroupView:
    return GroupView(group, ViewId(EPOCH, change), (A, B), (), (), (), Cause.JOIN, False)


def seqs(events: list[ClientEvent]) -> list[int]:
    return [
        event.first + place
        for event in events
        if isinstance(event, Delivered)
        for place in range(len(event.payloads))
    ]


def test_a_newer_message_about_an_item_replaces_older_ones() -> None:
    kept, dropped = purge([run(A, 1, "xyx"), run(A, 4, "x."), run(A, 6, "y")])
    assert seqs(kept) == [4, 5, 6]
    assert dropped == 3
    assert Replaced(A, ("g",), 1, 3, 3, 6) in kept
    assert kept.index(Replaced(A, ("g",), 1, 3, 3, 6)) == 0


def test_messages_keep_their_places() -> None:
    kept, _ = purge([run(A, 1, "x.x.x")])
    runs = [event for event in kept if isinstance(event, Delivered)]
    assert [(event.first, event.payloads) for event in runs] == [(2, [b"2"]), (4, [b"4", b"5"])]
    assert [event.position.index for event in runs if event.position is not None] == [102, 104]


def test_nothing_is_replaced_across_a_view_of_its_group() -> None:
    events: list[ClientEvent] = [run(A, 1, "x"), view("g", 2), run(A, 2, "x")]
    assert purge(events) == (events, 0)
    events = [run(A, 1, "x", "g", "h"), view("h", 2), run(A, 2, "x", "g", "h")]
    assert purge(events) == (events, 0)
    events = [run(A, 1, "x"), LeftGroup("g"), view("g", 3), run(A, 2, "x")]
    assert purge(events) == (events, 0)
    assert purge([run(A, 1, "x"), view("other", 2), run(A, 2, "x")])[1] == 1


def test_nothing_is_replaced_by_others_or_in_other_groups() -> None:
    events: list[ClientEvent] = [
        run(A, 1, "x"),
        run(B, 1, "x"),
        run(A, 2, "x", "h"),
        run(A, 3, "x", "g", "h"),
        run(A, 4, "."),
    ]
    assert purge(events) == (events, 0)


def test_receipts_do_not_pile_up() -> None:
    """However long a client is stopped: one for each sender, groups and view."""
    queue: list[ClientEvent] = []
    for seq in range(1, 500):
        queue = purge([*queue, run(A, seq, "x"), run(B, seq, "x"), Placed(seq)])[0]
    rest = [event for event in queue if not isinstance(event, Placed)]
    assert len(rest) == 4
    assert Replaced(A, ("g",), 1, 498, 498, 499) in rest


@given(st.integers(0, 10_000))
def test_what_is_dropped_has_a_later_one_in_the_same_view(seed: int) -> None:
    rng = Random(seed)
    events: list[ClientEvent] = []
    last = {A: 0, B: 0}
    for change in range(rng.randint(1, 30)):
        if rng.random() < 0.2:
            events.append(view(rng.choice("gh"), change))
            continue
        sender, count = rng.choice((A, B)), rng.randint(1, 4)
        groups = rng.choice((("g",), ("h",), ("g", "h")))
        events.append(run(sender, last[sender] + 1, "".join(rng.choices("xy.", k=count)), *groups))
        last[sender] += count
    kept, dropped = purge(events)
    again, more = purge(kept)
    assert (again, more) == (kept, 0)
    assert dropped == sum(event.count for event in kept if isinstance(event, Replaced))
    for sender in (A, B):
        here = set(seqs([event for event in kept if getattr(event, "sender", None) == sender]))
        for place, event in enumerate(events):
            if isinstance(event, Delivered) and event.sender == sender and event.items is not None:
                for offset, item in enumerate(event.items):
                    if event.first + offset not in here:
                        assert item
                        assert _replaced(events[place:], event, event.first + offset, item, here)


def _replaced(events: list[ClientEvent], victim: Delivered, seq: int, item: str, kept: set[int]) -> bool:
    for event in events:
        if isinstance(event, GroupView) and event.group in victim.groups:
            return False
        if isinstance(event, Delivered) and (event.sender, event.groups) == (victim.sender, victim.groups):
            for offset, other in enumerate(event.items or ()):
                if other == item and event.first + offset > seq and event.first + offset in kept:
                    return True
    return False
