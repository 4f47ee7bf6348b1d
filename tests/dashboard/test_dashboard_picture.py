"""What the page is told: who is in which view, what changed and why, and nothing else."""

from typing import Any

import msgspec
import pytest

from semcast.core import MemberId
from semcast.dashboard.picture import Picture, Seen


def seen(name: str, view: int, by: str, incarnation: int = 1, **more: Any) -> Seen:
    given: dict[str, Any] = {
        "member": MemberId(name, incarnation),
        "phase": "operational",
        "view": view,
        "representative": by,
        "size": 3,
        "rates": {"sent": 1.0, "delivered": 10.0, "purged": 0.0, "retransmitted": None},
        "purged": 0,
        "retransmitted": 0,
        "buffered": 0,
        "unread": 0,
        "unsent": 0,
        "uptime": 1.0,
    }
    return Seen(**{**given, **more})


@pytest.fixture
def picture() -> Picture:
    made = Picture("prices")
    made.update(100.0, [seen(name, 3, "a") for name in "abc"])
    return made


def told(picture: Picture) -> list[tuple[str, str]]:
    return [(each["kind"], each["text"]) for each in picture.snapshot()["changes"]]


def test_a_partition_and_its_end_are_told_with_their_causes(picture: Picture) -> None:
    assert [kind for kind, _ in told(picture)] == ["joined"]
    picture.update(101.0, [seen("a", 4, "a"), seen("b", 5, "b"), seen("c", 5, "b")])
    assert [view["members"] for view in picture.snapshot()["views"]] == [["a"], ["b", "c"]]
    assert told(picture)[1:] == [
        ("view", "view 4 (a): a; without b, c"),
        ("view", "view 5 (b): b, c; without a"),
        ("split", "the group is in 2 views: it is partitioned, or about to change its view"),
    ]
    picture.update(102.0, [seen(name, 6, "a") for name in "abc"])
    assert told(picture)[4:] == [
        ("view", "view 6 (a): a, b, c; merges 2 views"),
        ("merge", "all members are in one view again"),
    ]


def test_who_goes_comes_or_is_held_back_is_told(picture: Picture) -> None:
    picture.update(101.0, [seen("a", 4, "a", held_by="b", held_why="reads slowly"), seen("b", 4, "a")])
    assert told(picture)[1:] == [
        ("gone", "c is gone: it left, crashed, or is out of reach"),
        ("view", "view 4 (a): a, b; without c"),
        ("held", "a is held back by b: reads slowly"),
    ]
    picture.update(102.0, [seen(name, 5, "a") for name in "abd"])
    assert ("view", "view 5 (a): a, b, d; with d") in told(picture)


def test_members_without_a_view_are_no_partition() -> None:
    picture = Picture("g")
    picture.update(1.0, [seen("a", 0, ""), seen("b", 0, "")])
    picture.update(2.0, [seen("a", 1, "a"), seen("b", 0, "")])
    picture.update(3.0, [seen("a", 2, "a"), seen("b", 2, "a")])
    assert told(picture) == [
        ("joined", "a, b are here, without a view"),
        ("view", "view 1 (a): a"),
        ("view", "view 2 (a): a, b; with b"),
    ]


def test_two_of_one_name_are_told_apart() -> None:
    picture = Picture("g")
    picture.update(1.0, [seen("a", 1, "a", 7), seen("a", 1, "a", 8), seen("b", 1, "a")])
    assert [each["name"] for each in picture.snapshot()["members"]] == ["a#7", "a#8", "b"]


def test_how_far_behind_a_program_is() -> None:
    picture = Picture("g")
    picture.update(1.0, [seen("a", 1, "a", unread=25)])
    [member] = picture.snapshot()["members"]
    assert member["behind"] == 2.5


def test_only_names_and_numbers_are_in_it(picture: Picture) -> None:
    text = msgspec.json.encode(picture.snapshot(history=True)).decode()
    assert "address" not in text
    assert "key" not in text
    assert "payload" not in text
