"""What daemons and clients did, read once from the rows of a history."""

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import msgspec

from semcast.core.annotations import Item
from semcast.core.ids import MemberId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.lightweight.kinds import (
    ASK,
    CONF,
    DELIVER,
    HEARD,
    LEFT,
    ORDERED,
    PLACED,
    PRIVATE,
    SESSION,
    TRANSITIONAL,
    VIEW,
)

Epoch = tuple[int, int, str]
ViewId = tuple[int, int, str, int]
Place = tuple[Epoch, int]
Message = tuple[MemberId, int]
"""A run of messages, by its first one."""


class Text(msgspec.Struct, frozen=True):
    """What stands in the text of a row; each kind has some of it."""

    group: str = ""
    groups: tuple[str, ...] = ()
    id: ViewId = (0, 0, "", 0)
    view: ViewId | None = None
    sent: ViewId | None = None
    epoch: Epoch = (0, 0, "")
    views: dict[str, ViewId | None] = {}
    vs: bool = False
    along: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    by: str = ""


_decoder = msgspec.json.Decoder(Text)
_NO_TEXT = Text()


class Row(msgspec.Struct, frozen=True):
    """An event, with its text."""

    event: Event
    text: Text

    @property
    def kind(self) -> Kind:
        """What happened."""
        return self.event.kind

    @property
    def client(self) -> MemberId:
        """Who is told something, or asks for it."""
        event = self.event
        who = event.members[0] if event.kind in (DELIVER, PRIVATE) and event.members else event.sender
        assert who is not None
        return who

    @property
    def message(self) -> Message:
        """What it is about."""
        assert self.event.sender is not None
        return self.event.sender, self.event.seq

    @property
    def place(self) -> Place:
        """Where that is in the order of the daemons."""
        return self.text.epoch, self.event.order or 0

    @property
    def members(self) -> tuple[MemberId, ...]:
        """Who is in a view, or in a configuration."""
        return self.event.members or ()


_OURS = frozenset((CONF, SESSION, ASK, ORDERED, VIEW, TRANSITIONAL, DELIVER, PRIVATE, LEFT, PLACED, HEARD))
_HEARD = frozenset((VIEW, TRANSITIONAL, DELIVER, PRIVATE, LEFT))


class LightStory:
    """All of a run."""

    def __init__(self, history: History) -> None:
        self.daemons: dict[MemberId, list[Row]] = {}
        """What each did, in order."""
        self.heard: dict[MemberId, list[Row]] = {}
        """What each client was told, in order."""
        self.vs: set[str] = set()
        """Groups with sending view delivery."""
        self.home: dict[MemberId, MemberId] = {}
        """The daemon of each client."""
        self.programs: dict[MemberId, list[Row]] = {}
        """What programs heard that recorded it themselves, in order."""
        for process in history.processes:
            rows = [row_of(event) for event in history.of(process) if event.kind in _OURS]
            if rows and all(row.kind is HEARD for row in rows):
                self.programs[process] = rows
                continue
            self.daemons[process] = rows
            for row in rows:
                if row.kind in _HEARD:
                    self.heard.setdefault(row.client, []).append(row)
                if row.kind is VIEW and row.text.vs:
                    self.vs.add(row.text.group)
                elif row.kind is SESSION:
                    self.home[row.client] = process
        self.alive = [process for process in self.daemons if process not in history.gone]
        """Daemons that were there at the end."""

    def rows(self, *kinds: Kind) -> Iterator[Row]:
        """All rows of some kinds, process by process."""
        for rows in (*self.daemons.values(), *self.programs.values()):
            yield from (row for row in rows if row.kind in kinds)


def row_of(event: Event) -> Row:
    """An event of ours, with its text."""
    note = event.annotation
    return Row(event, _decoder.decode(note.item) if isinstance(note, Item) else _NO_TEXT)


_stories: WeakKeyDictionary[History, LightStory] = WeakKeyDictionary()


def story_of(history: History) -> LightStory:
    """The story of a history, read at the first call."""
    story = _stories.get(history)
    if story is None:
        story = _stories[history] = LightStory(history)
    return story


class ClientsStanding:
    """Where the local clients of a daemon stand, as its rows go by."""

    def __init__(self) -> None:
        self.views: dict[MemberId, dict[str, ViewId]] = {}
        """Of each client that is connected, the view that it was told of last of each of its groups."""

    def take(self, row: Row) -> None:
        """The next row of the daemon."""
        if row.kind is SESSION:
            if row.event.level == "came":
                self.views[row.client] = {}
            else:
                self.views.pop(row.client, None)
        elif row.client in self.views:
            if row.kind is VIEW:
                self.views[row.client][row.text.group] = row.text.id
            elif row.kind is LEFT:
                self.views[row.client].pop(row.text.group, None)
