"""What the processes of a domain did, read once from the rows of a history.

As in `specs.evs.parts`, messages that no row tells apart are taken together as a part. A `Stay` is what one
process does from one view of a group to the next one there.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.domains.kinds import BEGAN, GIVEN, KINDS, LEFT, OUT, SENT, VIEW, Text, text_of
from semcast.specs.relation import Relation
from semcast.specs.verdict import Findings, Status, Verdict, unknown, untold

NOTHING_RECORDED = "no view of a group of a domain was recorded"

Place = tuple[str, int]
"""A view: the name of its group, and its number."""


class Stream(NamedTuple):
    """Messages that are numbered together."""

    group: str
    sender: MemberId
    direct: bool


class Row(NamedTuple):
    """An event with its text."""

    event: Event
    text: Text

    @property
    def kind(self) -> Kind:
        """What happened."""
        return self.event.kind

    @property
    def stream(self) -> Stream:
        """Which messages it is about."""
        assert self.event.sender is not None
        return Stream(self.text.group, self.event.sender, self.text.direct)


@dataclass(slots=True, eq=False)
class Stay:
    """The time that one process spends in one view of a group."""

    slot: int
    process: MemberId
    place: Place
    event: Event
    after: "Stay | None" = None
    """The next of this process in the group, if it did not leave in between."""

    open: bool = True
    """Whether the process was there when its rows end."""

    given: dict[int, Nanos] = field(default_factory=dict)
    """Parts in the order in which the program was given them here, and when."""


class Sending(NamedTuple):
    """How a part was sent."""

    row: Row
    number: int
    """Which of all the parts that its sender sent in the domain it is, from 1."""

    @property
    def place(self) -> Place:
        """The view in which it left."""
        assert self.event.view is not None
        return self.row.text.group, self.event.view

    @property
    def event(self) -> Event:
        """The row."""
        return self.row.event


class Failures:
    """Who failed, and how many failures causes have to survive."""

    def __init__(self, gone: set[MemberId]) -> None:
        self._gone = gone
        self._out: set[MemberId] = set()
        self._resilience: int | None = None

    def take(self, row: Row) -> None:
        """The next row."""
        if row.kind is OUT:
            self._out.add(row.event.process)
        elif row.kind is BEGAN and row.text.resilience is not None:
            least = self._resilience
            self._resilience = row.text.resilience if least is None else min(least, row.text.resilience)

    def beyond(self) -> str:
        """That more failed than causes have to survive; empty if it is not so."""
        failed = len(self._gone | self._out)
        if self._resilience is None or failed <= self._resilience:
            return ""
        return f"{failed} processes failed, and causes survive {self._resilience}"


Step = tuple[Kind, int]
"""Something sent, or given for the first time: a part."""


class Story:
    """All of a run."""

    def __init__(self, history: History) -> None:
        self.info = history.info
        self.rows: dict[MemberId, list[Row]] = {
            process: [Row(event, text_of(event)) for event in history.of(process) if event.kind in KINDS]
            for process in history.processes
        }
        self.gone = {*history.gone, *history.info.cut_off}
        self.failures = Failures(self.gone)
        for rows in self.rows.values():
            for row in rows:
                self.failures.take(row)
        self.parts = _Parts(row for rows in self.rows.values() for row in rows)
        self.steps: dict[MemberId, list[Step]] = {process: [] for process in self.rows}
        self.stays: dict[Place, list[Stay]] = {}
        self.sent: dict[int, Sending] = {}
        self.shown: dict[tuple[MemberId, int], Event] = {}
        """By whom and what, the row of the first delivery."""

        self._slots = 0
        for rows in self.rows.values():
            self._read_sends(rows)
        for process, rows in self.rows.items():
            self._read(process, rows)

    def closed(self, stay: Stay) -> bool:
        """Whether what the process has not done in the view by now it has failed to do."""
        if stay.after is not None:
            return True
        return self.info.quiesced and stay.open and stay.place in self._settled

    @cached_property
    def sends(self) -> "dict[Place, dict[MemberId, _Sends]]":
        """By view and sender what members multicast, in the order of sending; direct messages apart."""
        found: dict[Place, dict[MemberId, _Sends]] = {}
        for part, sending in self.sent.items():
            if not sending.row.text.direct and not sending.row.text.client:
                of = found.setdefault(sending.place, {}).setdefault(sending.event.process, _Sends())
                of.numbers.append(sending.number)
                of.parts.append(part)
        return found

    @cached_property
    def direct(self) -> list[int]:
        """Direct messages, in the order of sending of each."""
        return [part for part, sending in self.sent.items() if sending.row.text.direct]

    def lacking(self, stay: Stay, owed: Iterable[int]) -> list[int]:
        """What of `owed` was not given in a stay, and no replacement either."""
        missing = sorted(part for part in owed if part not in stay.given)
        return [part for part in missing if not self.replaced(stay, part)]

    def replaced(self, stay: Stay, part: int) -> bool:
        """Whether a replacement of a part, sent in the same view, was given in a stay."""
        replacing = self.replacing(stay.place)
        return replacing is not None and replacing.given_in(stay, part)

    def replacing(self, place: Place) -> "_Replacing | None":
        """What replaces what in a view; None where nothing does."""
        if place not in self._replacing:
            notes = self._annotated.get(place)
            self._replacing[place] = _Replacing(self, place, notes) if notes else None
        return self._replacing[place]

    @cached_property
    def endless(self) -> bool:
        """Whether replacements run in a circle in some view."""
        found = map(self.replacing, self._annotated)
        return any(each is not None and each.relation.endless for each in found)

    @cached_property
    def untold(self) -> MessageId | None:
        """A message that its sender must have sent after its recording was cut off, if there is one."""
        cut_off = set(self.info.cut_off)
        for rows in self.rows.values() if cut_off else ():
            for row in rows:
                if row.kind is GIVEN and row.event.sender in cut_off:
                    part = self.parts.of(row)[-1]
                    if part not in self.sent:
                        return self.parts.last(part)
        return None

    def report(
        self, findings: Findings, parts: Sequence[int], case: Callable[[int, int], tuple[str, list[Event]]]
    ) -> None:
        """The messages of these parts break the property; `case` says of a part and a number why."""
        findings.count(sum(map(self.parts.weigh, parts)))
        for part in parts:
            for seq in self.parts.numbers(part):
                if findings.full:
                    return
                reason, events = case(part, seq)
                findings.example(reason, *events)

    def name(self, part: int, seq: int) -> str:
        """How a message is called."""
        stream = self.parts.stream(part)
        direct = "direct " if stream.direct else ""
        return f"{direct}{MessageId(stream.sender, seq)} of {stream.group}"

    def first(self, part: int) -> str:
        """How the first message of a part is called."""
        return self.name(part, self.parts.numbers(part)[0])

    def shown_at(self, process: MemberId, part: int, seq: int | None = None) -> list[Event]:
        """The row in which it was given to a process, narrowed to one message."""
        event = self.shown.get((process, part))
        return [] if event is None else [event.only(self.parts.numbers(part)[0] if seq is None else seq)]

    def _read_sends(self, rows: list[Row]) -> None:
        number = 0
        for row in rows:
            if row.kind is SENT:
                for part in self.parts.of(row):
                    if part not in self.sent:
                        number += 1
                        self.sent[part] = Sending(row, number)

    def _read(self, process: MemberId, rows: list[Row]) -> None:
        steps, seen, here = self.steps[process], set[int](), dict[str, Stay]()
        for row in rows:
            if row.kind is VIEW:
                here[row.text.group] = self._enter(row, here.get(row.text.group))
            elif row.kind is LEFT:
                stay = here.pop(row.text.group, None)
                if stay is not None:
                    stay.open = False
            elif row.kind is SENT:
                steps.extend((SENT, part) for part in self.parts.of(row) if self.sent[part].row is row)
            elif row.kind is GIVEN:
                stay = here.get(row.text.group)
                for part in self.parts.of(row):
                    if part in self.sent and part not in seen:
                        seen.add(part)
                        steps.append((GIVEN, part))
                        self.shown[process, part] = row.event
                        if stay is not None:
                            stay.given[part] = row.event.at
        if process in self.gone:
            for stay in here.values():
                stay.open = False

    def _enter(self, row: Row, before: Stay | None) -> Stay:
        assert row.event.view is not None
        place = row.text.group, row.event.view
        stay = Stay(self._slots, row.event.process, place, row.event)
        self._slots += 1
        if before is not None:
            before.after, before.open = stay, False
        self.stays.setdefault(place, []).append(stay)
        return stay

    @cached_property
    def _settled(self) -> set[Place]:
        """Of each group the last view, if all its members are in it when the run is over."""
        latest = {group: max(view for name, view in self.stays if name == group) for group, _ in self.stays}
        found = set()
        for place in latest.items():
            stays = self.stays[place]
            there = {stay.process for stay in stays if stay.open}
            if there >= set(stays[0].event.members or ()):
                found.add(place)
        return found

    @cached_property
    def _annotated(self) -> dict[Place, list[int]]:
        found: dict[Place, list[int]] = {}
        for part, sending in self.sent.items():
            if sending.row.text.annotation is not None:
                found.setdefault(sending.place, []).append(part)
        return found

    @cached_property
    def _replacing(self) -> "dict[Place, _Replacing | None]":
        return {}


class _Sends:
    """What one process multicast in one view."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.parts: list[int] = []

    def upto(self, number: int) -> list[int]:
        """The parts with numbers that are not above this one."""
        return self.parts[: bisect_right(self.numbers, number)]


class _Replacing:
    """What replaces what among the annotated messages that were sent in one view."""

    def __init__(self, story: Story, place: Place, parts: list[int]) -> None:
        order = sorted(parts, key=lambda part: (story.parts.stream(part).sender, part))
        self._place_of = {part: at for at, part in enumerate(order)}
        self.relation = Relation([_annotated(story.sent[part]) for part in order], {})
        self._bits = {stay.slot: 1 << bit for bit, stay in enumerate(story.stays.get(place, ()))}
        self._masks = [0] * len(order)
        for stay in story.stays.get(place, ()):
            for part in stay.given:
                at = self._place_of.get(part)
                if at is not None:
                    self._masks[at] |= self._bits[stay.slot]
        self.relation.cover(self._masks)

    def given_in(self, stay: Stay, part: int) -> bool:
        """Whether it, or what replaces it, was given in a stay."""
        at = self._place_of.get(part)
        return at is not None and bool(self._masks[at] & self._bits[stay.slot])

    def earliest(self, stay: Stay) -> dict[int, Nanos]:
        """When each of the parts, or something that replaces it, was first given in a stay."""
        times: list[Nanos | None] = [None] * len(self._place_of)
        for part, at in self._place_of.items():
            times[at] = stay.given.get(part)
        for new in self.relation.sequence:
            time = times[new]
            for old in self.relation.replaced[new]:
                known = times[old]
                if time is not None and (known is None or time < known):
                    times[old] = time
        return {part: time for part, at in self._place_of.items() if (time := times[at]) is not None}


def _annotated(sending: Sending) -> Event:
    event = sending.event
    return Event(
        event.process,
        event.index,
        event.at,
        Kind.MULTICAST,
        sending.row.text.group,
        event.process,
        event.seq,
        1,
        annotation=sending.row.text.annotation,
    )


class _Parts:
    """All messages of a domain, with those taken together that no row tells apart."""

    def __init__(self, rows: Iterable[Row]) -> None:
        cuts: dict[Stream, set[int]] = {}
        for row in rows:
            if row.kind in (SENT, GIVEN):
                cuts.setdefault(row.stream, set()).update((row.event.seq, row.event.last + 1))
        self._streams: list[Stream] = []
        self._firsts: list[int] = []
        self._starting: dict[Stream, dict[int, int]] = {}
        for stream in sorted(cuts):
            places = sorted(cuts[stream])
            begin = len(self._firsts)
            self._starting[stream] = {seq: begin + place for place, seq in enumerate(places)}
            self._streams.extend([stream] * len(places))
            self._firsts.extend(places)

    def of(self, row: Row) -> range:
        """The parts that a row is about."""
        starting = self._starting[row.stream]
        return range(starting[row.event.seq], starting[row.event.last + 1])

    def stream(self, part: int) -> Stream:
        """Whose messages they are, and of which group."""
        return self._streams[part]

    def numbers(self, part: int) -> range:
        """The numbers of its messages."""
        return range(self._firsts[part], self._firsts[part + 1])

    def last(self, part: int) -> MessageId:
        """The last message of a part."""
        return MessageId(self._streams[part].sender, self.numbers(part)[-1])

    def weigh(self, part: int) -> int:
        """How many messages that is."""
        return self._firsts[part + 1] - self._firsts[part]


_stories: WeakKeyDictionary[History, Story] = WeakKeyDictionary()


def story_of(history: History) -> Story:
    """The story of a history, read at the first call."""
    story = _stories.get(history)
    if story is None:
        story = _stories[history] = Story(history)
    return story


def judge(
    name: str,
    history: History,
    find: Callable[[Story, Findings], None],
    *,
    semantic: bool = False,
    spoken: Callable[[Event], bool] | None = None,
) -> Verdict:
    """The verdict on a property; `find` looks for what breaks it.

    Args:
        name: of the property.
        history: to be judged.
        find: looks for what breaks the property, and passes over messages whose sending is not recorded.
        semantic: it rests on what replaces what.
        spoken: chooses the rows that the property speaks of; without any it holds.
    """
    story = story_of(history)
    if not story.stays:
        return unknown(name, NOTHING_RECORDED)
    if spoken is not None and not any(map(spoken, history.events)):
        return Verdict(name, Status.HOLDS)
    if semantic and story.endless:
        return unknown(name, "the obsolescence relation is not an order")
    if semantic and story.untold is not None:
        return untold(name, story.untold)
    findings = Findings(name)
    find(story, findings)
    return findings.verdict(story.untold)
