"""What members did about calls, read once from the rows of a history."""

from weakref import WeakKeyDictionary

import msgspec

from semcast.core.annotations import Item
from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.specs.calls.kinds import (
    ASKED,
    CAME,
    DELIVERED,
    DEPARTED,
    HEARD,
    MADE,
    RETURNED,
    RUN,
    SAID,
    VIEW,
)

Key = tuple[MemberId, int]


class _Together(msgspec.Struct):
    together: tuple[str, ...]


class Call:
    """One call, as its caller saw it."""

    def __init__(self, made: Event) -> None:
        self.made = made
        self.wanted = made.level or "all"
        self.whom = text_of(made)
        self.asked: Event | None = None
        """The caller's own delivery of the request."""
        self.expected: tuple[MemberId, ...] = ()
        """The members of the view in which that was, as the caller had been told of it."""
        self.delivered: Event | None = None
        """What the caller says of that."""
        self.came: list[Event] = []
        self.heard: list[Event] = []
        self.departed: list[Event] = []
        self.returned: Event | None = None

    @property
    def key(self) -> Key:
        """What names it."""
        return self.made.process, self.made.seq


class CallMember:
    """One member's rows, in order."""

    def __init__(self, rows: list[Event]) -> None:
        self.rows = rows
        self.calls: dict[int, Call] = {}
        self.asked: dict[Key, Event] = {}
        self.runs: dict[Key, list[Event]] = {}
        self.said: dict[Key, list[Event]] = {}
        self.views: list[Event] = []
        for row in rows:
            self._read(row)

    def _read(self, row: Event) -> None:
        kind = row.kind
        if kind is VIEW:
            self.views.append(row)
        elif kind is MADE:
            self.calls[row.seq] = Call(row)
        elif kind in (DELIVERED, CAME, HEARD, DEPARTED, RETURNED):
            call = self.calls.get(row.seq)
            if call is not None:
                _note(call, row)
        elif row.sender is not None and kind in (ASKED, RUN, SAID):
            key = row.sender, row.seq
            if kind is ASKED:
                self.asked.setdefault(key, row)
                own = self.calls.get(row.seq) if row.sender == row.process else None
                if own is not None and own.returned is None and self.views:
                    own.asked, own.expected = row, self._members()
            else:
                (self.runs if kind is RUN else self.said).setdefault(key, []).append(row)

    def _members(self) -> tuple[MemberId, ...]:
        return next((view.members or () for view in reversed(self.views) if view.level == "view"), ())

    def parted(self, after: Event, before: Event) -> set[str]:
        """Whom this member was told to be apart from, between two of its rows."""
        members = next(
            (v.members or () for v in reversed(self.views) if v.index < after.index and v.level == "view"), ()
        )
        ever = {str(member) for member in members}
        here = set(ever)
        for view in self.views:
            if view.index < before.index and (view.index > after.index or _ends(view, after, self.views)):
                here &= set(together(view))
        return ever - here


def _ends(view: Event, after: Event, views: list[Event]) -> bool:
    """Whether a transitional view was told of before `after`, of the view that `after` is in."""
    if view.level != "transitional" or view.index > after.index:
        return False
    return not any(v.level == "view" and view.index < v.index < after.index for v in views)


def _note(call: Call, row: Event) -> None:
    if row.kind is DELIVERED:
        call.delivered = row
    elif row.kind is CAME:
        call.came.append(row)
    elif row.kind is HEARD:
        call.heard.append(row)
    elif row.kind is DEPARTED:
        call.departed.append(row)
    elif call.returned is None:
        call.returned = row


def text_of(event: Event) -> str:
    """The text of a row."""
    return event.annotation.item if isinstance(event.annotation, Item) else ""


def together(view: Event) -> tuple[str, ...]:
    """Who came along, by the row about a view."""
    return msgspec.json.decode(text_of(view) or '{"together":[]}', type=_Together).together


def whom(event: Event) -> MemberId:
    """The one member that a row is about."""
    assert event.members is not None
    return event.members[0]


class CallStory:
    """All of a history."""

    def __init__(self, history: History) -> None:
        self.members = {process: CallMember(list(history.of(process))) for process in history.processes}
        self.alive = set(history.correct) | (set(history.processes) - set(history.gone))
        self.alive -= set(history.info.cut_off)
        seen = {who for each in self.members.values() for view in each.views for who in view.members or ()}
        self.unknown = set(history.info.cut_off) | (
            seen - {who for who in self.members if self.members[who].rows}
        )
        """Of whom it is not known what they said: programs of other languages record nothing."""


_STORIES: "WeakKeyDictionary[History, CallStory]" = WeakKeyDictionary()


def story_of(history: History) -> CallStory:
    """The story of a history; it is told once."""
    found = _STORIES.get(history)
    if found is None:
        found = _STORIES[history] = CallStory(history)
    return found
