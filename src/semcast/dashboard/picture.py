"""What a page is shown of one group: its members, their views, rates and queues, and what changed.

Only names and numbers are in it: no payloads, no keys, no addresses.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from semcast.core.ids import MemberId

Side = tuple[int, str]
"""A view: its number, and who formed it, since two sides of a partition may count alike. 0: no view yet."""
MEMORY = 600
"""Samples that are kept for charts: of the last minutes."""
_CHANGES = 200
RATES = ("sent", "delivered", "purged", "retransmitted")
GAUGES = ("buffered", "unread", "unsent")


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one member at one moment."""

    member: MemberId
    phase: str
    view: int
    representative: str
    """Who formed its view; empty where nobody does."""
    size: int
    """How many members its view has, as it says."""
    rates: Mapping[str, float | None]
    """By what is counted (`RATES`), a second; None where it is not known yet."""
    purged: int
    """In all."""
    retransmitted: int
    buffered: int
    unread: int
    """Messages that its program has not read."""
    unsent: int
    """Messages that flow control holds back."""
    uptime: float
    held_by: str = ""
    """Which member holds it back, if one does."""
    held_why: str = ""
    held_for: float = 0.0

    @property
    def side(self) -> Side:
        """Its view."""
        return self.view, self.representative


class Picture:
    """Of one group, over time.

    Args:
        group: its name.
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self.progress: float | None = None
        """How much of a recorded run was shown, from 0 to 1."""
        self._before: dict[str, Seen] = {}
        self._now: dict[str, Seen] = {}
        self._changes: deque[dict[str, Any]] = deque(maxlen=_CHANGES)
        self._samples: deque[dict[str, Any]] = deque(maxlen=MEMORY)
        self._at = 0.0
        self._problem = ""

    def update(self, at: float, seen: Sequence[Seen], problem: str = "") -> None:
        """This is what is seen now. `at` is the time of day in seconds."""
        self._at, self._problem = at, problem
        self._before, self._now = self._now, _named(seen)
        self._note_changes(at)
        if self._now:
            self._samples.append(
                {"at": round(at, 3), "members": {name: _sample(each) for name, each in self._now.items()}}
            )

    def _note_changes(self, at: float) -> None:
        before, now = self._before, self._now
        for side, names in _sides({name: now[name] for name in sorted(now.keys() - before.keys())}).items():
            where = f"in view {_view(side)}" if side[0] else "without a view"
            self._note(at, "joined", f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} here, {where}")
        for name in sorted(before.keys() - now.keys()):
            self._note(at, "gone", f"{name} is gone: it left, crashed, or is out of reach")
        for side, names in _sides(now).items():
            came = [name for name in names if name in before and before[name].side != side]
            if came and side[0]:
                self._note(at, "view", self._told(side, names, came))
        split, was = (len([side for side in _sides(seen) if side[0]]) for seen in (now, before))
        if split > 1 >= was and was:
            why = "it is partitioned, or about to change its view"
            self._note(at, "split", f"the group is in {split} views: {why}")
        elif split == 1 < was:
            self._note(at, "merge", "all members are in one view again")
        for name in sorted(now.keys() & before.keys()):
            if now[name].held_why and not before[name].held_why:
                by = f" by {now[name].held_by}" if now[name].held_by else ""
                self._note(at, "held", f"{name} is held back{by}: {now[name].held_why}")

    def _told(self, side: Side, names: Sequence[str], came: Sequence[str]) -> str:
        """A new view, and why: who came into it, and who of the views before is not in it."""
        former = {self._before[name].side for name in came if self._before[name].view}
        was = {name for name, each in self._before.items() if each.side in former}
        gone = sorted(was - set(names))
        merged = f"; merges {len(former)} views" if len(former) > 1 else ""
        new = sorted(set(names) - was)
        why = f"; without {', '.join(gone)}" if gone else ""
        why += f"; with {', '.join(new)}" if new and former else ""
        return f"view {_view(side)}: {', '.join(names)}{merged}{why}"

    def _note(self, at: float, kind: str, text: str) -> None:
        self._changes.append({"at": round(at, 3), "kind": kind, "text": text})

    def snapshot(self, *, history: bool = False) -> dict[str, Any]:
        """For the page; with the last minutes, if it has just come."""
        sides = _sides(self._now)
        shown: dict[str, Any] = {
            "group": self.group,
            "at": round(self._at, 3),
            "problem": self._problem,
            "progress": self.progress,
            "views": [
                {"id": number, "by": by, "name": _view((number, by)), "members": names}
                for (number, by), names in sorted(sides.items())
            ],
            "members": [_shown(name, each) for name, each in self._now.items()],
            "changes": list(self._changes) if history else list(self._changes)[-20:],
        }
        if history:
            shown["history"] = list(self._samples)
        return shown


def _named(seen: Sequence[Seen]) -> dict[str, Seen]:
    """By the names that people know; with the incarnation only where two have one name."""
    often: dict[str, int] = {}
    for each in seen:
        often[each.member.name] = often.get(each.member.name, 0) + 1
    named = [(each.member.name if often[each.member.name] == 1 else str(each.member), each) for each in seen]
    return dict(sorted(named))


def _sides(seen: Mapping[str, Seen]) -> dict[Side, list[str]]:
    found: dict[Side, list[str]] = {}
    for name, each in seen.items():
        found.setdefault(each.side, []).append(name)
    return found


def _view(side: Side) -> str:
    number, by = side
    return f"{number} ({by})" if by else str(number)


def _sample(each: Seen) -> list[float | None]:
    """As little as charts need: the rates, then what waits."""
    return [*(_round(each.rates.get(name)) for name in RATES), *(getattr(each, name) for name in GAUGES)]


def _round(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)


def _shown(name: str, each: Seen) -> dict[str, Any]:
    found = msgspec.structs.asdict(each)
    del found["member"], found["representative"]
    rates = {rate: _round(each.rates.get(rate)) for rate in RATES}
    reading = rates["delivered"]
    behind = round(each.unread / reading, 1) if reading and each.unread else 0.0
    return found | {
        "name": name,
        "rates": rates,
        "by": each.representative,
        "uptime": round(each.uptime, 1),
        "held_for": round(each.held_for, 1),
        "behind": behind,
    }
