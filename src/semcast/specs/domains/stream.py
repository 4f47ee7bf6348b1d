"""The three causal properties of a domain, judged of rows that come one by one.

`specs.domains.causal` reads a whole history first. Here rows are taken as they come, best in the order of
their times, and are not kept: what waits are deliveries whose messages are sent in rows that come later. What
is kept are of each send its numbers and its vector, and of each stay what was given there, as spans. The
verdicts are the same, but for the events that they show.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, RunInfo
from semcast.history.schema import GONE, Kind
from semcast.specs.domains.kinds import GIVEN, KINDS, LEFT, SENT, VIEW, Text, text_of
from semcast.specs.domains.spans import Clock, Sends
from semcast.specs.domains.story import NOTHING_RECORDED, Failures, Place, Row, Stream
from semcast.specs.relation import Relation
from semcast.specs.runs import Runs
from semcast.specs.verdict import Findings, Status, Verdict, unknown, untold

DELIVERY, COMPLETENESS, GAP = "domain_causal_delivery", "domain_causal_completeness", "no_causal_gap"
MOST_WAITING = 1_000_000
"""So many rows may wait for messages that are sent in later ones."""


class TooManyWaitError(Exception):
    """More rows wait than can be held."""


@dataclass(slots=True, eq=False)
class _Stay:
    process: MemberId
    place: Place
    members: tuple[MemberId, ...]
    asked: Clock
    followed: bool = False
    open: bool = True
    given: dict[Stream, Runs] = field(default_factory=dict)


class _Life:
    """One process, as far as its rows were taken."""

    def __init__(self, process: MemberId, number: int, size: int) -> None:
        self.process = process
        self.number = number
        self.next = 0
        self.early: dict[int, Event] = {}
        self.queue: deque[Row] = deque()
        self.seq = 0
        """Where the first row of the queue goes on, 0 for its beginning."""

        self.heard, self.asked = Clock(size), Clock(size)
        self.here: dict[str, _Stay] = {}
        self.seen: dict[Stream, Runs] = {}
        self.sent = 0


class Streaming:
    """One run of a domain.

    Args:
        info: the run.
        processes: all of them.
    """

    def __init__(self, info: RunInfo, processes: Iterable[MemberId]) -> None:
        self._info = info
        people = sorted({*processes, *info.cut_off})
        self._lives = {process: _Life(process, n, len(people)) for n, process in enumerate(people)}
        self._gone = set(info.cut_off)
        self._failures = Failures(self._gone)
        self._sends: dict[Stream, Sends] = {}
        self._stays: dict[Place, list[_Stay]] = {}
        self._notes: dict[Place, dict[MessageId, Text]] = {}
        self._directs: list[tuple[Stream, int, MemberId]] = []
        self._wanting: dict[Stream, set[MemberId]] = {}
        self._waiting = 0
        self._over = False
        self._untold: MessageId | None = None
        self._late = Findings(DELIVERY)
        self._pending: dict[Stream, Runs] = {}
        """When there are no more rows: what is sent in those that wait."""

        self._covered: dict[_Stay, set[tuple[MemberId, int]]] = {}
        """Of the stay that was looked at last, what was given there or replaced."""

    def take(self, event: Event) -> None:
        """The next row, of any process.

        Raises:
            TooManyWaitError: more wait than can be held.
        """
        life = self._lives[event.process]
        life.early[event.index] = event
        self._waiting += 1
        while life.next in life.early:
            following = life.early.pop(life.next)
            life.next += 1
            self._waiting -= 1
            if following.kind in KINDS:
                row = Row(following, text_of(following))
                self._failures.take(row)
                life.queue.append(row)
                self._waiting += 1
            elif following.kind in GONE:
                self._gone.add(life.process)
        self._advance(life)
        if self._waiting > MOST_WAITING:
            raise TooManyWaitError(f"{self._waiting} rows wait for messages that are sent in later ones")

    def verdicts(self) -> dict[str, Verdict]:
        """When there are no more rows."""
        stuck = self._end()
        if not self._stays:
            return {name: unknown(name, NOTHING_RECORDED) for name in (DELIVERY, COMPLETENESS, GAP)}
        found = {DELIVERY: self._late.verdict(self._untold)}
        for name in (COMPLETENESS, GAP):
            found[name] = unknown(name, "precedence runs in a circle") if stuck else self._judge(name)
        beyond = self._failures.beyond()
        if beyond:
            found[GAP] = Verdict(GAP, Status.HOLDS, note=beyond)
        return found

    # As rows come

    def _advance(self, first: _Life) -> None:
        todo = [first]
        while todo:
            life = todo.pop()
            while life.queue and self._step(life, life.queue[0], todo):
                life.queue.popleft()
                life.seq = 0
                self._waiting -= 1

    def _step(self, life: _Life, row: Row, todo: list[_Life]) -> bool:
        """Whether a row is done with; `todo` gets who may go on for it."""
        if row.kind is GIVEN:
            return self._give(life, row)
        if row.kind is SENT:
            self._send(life, row)
            todo.extend(self._lives[process] for process in self._wanting.pop(row.stream, ()))
        elif row.kind is VIEW:
            self._enter(life, row)
        elif row.kind is LEFT:
            stay = life.here.pop(row.text.group, None)
            if stay is not None:
                stay.open = False
        return True

    def _enter(self, life: _Life, row: Row) -> None:
        assert row.event.view is not None
        place, size = (row.text.group, row.event.view), len(self._lives)
        before = life.here.get(row.text.group)
        if before is not None:
            before.followed, before.open = True, False
        stay = _Stay(life.process, place, row.event.members or (), Clock(size))
        life.here[row.text.group] = stay
        self._stays.setdefault(place, []).append(stay)

    def _send(self, life: _Life, row: Row) -> None:
        event, text = row.event, row.text
        sends = self._sends.setdefault(row.stream, Sends())
        for first, last in list(sends.unsent(event.seq, event.last)):
            before = life.heard.vector
            sends.add(first, last, life.sent + 1, event, before, in_view=not text.client)
            life.sent += last - first + 1
            life.heard.merge(life.number, before, life.sent)
            if text.annotation is not None:
                message = MessageId(event.process, event.seq)
                self._notes.setdefault((text.group, event.view or 0), {})[message] = text
            if text.direct and event.members:
                self._directs.append((row.stream, first, event.members[0]))

    def _give(self, life: _Life, row: Row) -> bool:
        sends = self._sends.get(row.stream)
        seq = life.seq or row.event.seq
        while seq <= row.event.last:
            at = None if sends is None else sends.holding(seq)
            if sends is None or at is None:
                if not self._over:
                    self._wanting.setdefault(row.stream, set()).add(life.process)
                    life.seq = seq
                    return False
                seq = self._skip(life, row, seq)
                if not seq:
                    return False
                continue
            last = min(row.event.last, sends.lasts[at])
            for first, end in _fresh(life, row.stream, seq, last):
                self._deliver(life, row, sends, at, first, end)
            seq = last + 1
        return True

    def _deliver(self, life: _Life, row: Row, sends: Sends, at: int, first: int, last: int) -> None:
        sender = self._lives[row.stream.sender].number
        begin, end, before = sends.number(at, first), sends.number(at, last), sends.befores[at]
        late = min(life.asked.counts[sender], end) - begin + 1
        if late > 0:
            self._late.count(late)
            if not self._late.full:
                name = _name(row.stream, first)
                reason = f"{life.process} delivered {name} after something that it precedes"
                self._late.example(reason, row.event.only(first))
        life.asked.merge(sender, before, end - 1)
        life.heard.merge(sender, before, end)
        stay = life.here.get(row.text.group)
        if stay is not None:
            stay.given.setdefault(row.stream, Runs()).add(first, last)
            stay.asked.merge(sender, before, end - 1)

    # When there are no more rows

    def _end(self) -> bool:
        """Whether something is stuck: in a circle, or behind one."""
        self._over = True
        for life in self._lives.values():
            life.queue.extend(
                Row(event, text_of(event)) for _, event in sorted(life.early.items()) if event.kind in KINDS
            )
            for row in life.queue:
                if row.kind is SENT:
                    self._pending.setdefault(row.stream, Runs()).add(row.event.seq, row.event.last)
        before = -1
        while before != (waiting := sum(len(life.queue) for life in self._lives.values())):
            before = waiting
            for life in self._lives.values():
                self._advance(life)
        for life in self._lives.values():
            for row in life.queue:
                if row.kind is GIVEN:
                    self._count_stuck(life, row)
        for process in self._gone:
            for stay in self._lives[process].here.values():
                stay.open = False
        return any(life.queue for life in self._lives.values())

    def _skip(self, life: _Life, row: Row, seq: int) -> int:
        """Where to go on behind a message that nobody ever sent; 0 if it is sent in a row that is stuck."""
        if seq in self._pending.get(row.stream, _NOTHING):
            self._wanting.setdefault(row.stream, set()).add(life.process)
            life.seq = seq
            return 0
        if row.stream.sender in self._info.cut_off and seq == row.event.last and self._untold is None:
            self._untold = MessageId(row.stream.sender, seq)
        return seq + 1

    def _count_stuck(self, life: _Life, row: Row) -> None:
        sends, pending = self._sends.get(row.stream), self._pending.get(row.stream, _NOTHING)
        start = life.seq if row is life.queue[0] and life.seq else row.event.seq
        for first, last in _fresh(life, row.stream, start, row.event.last):
            for seq in range(first, last + 1):
                if seq in pending or (sends is not None and sends.holding(seq) is not None):
                    self._late.count(1)
                    name = _name(row.stream, seq)
                    reason = f"{life.process} delivered {name} in, or behind, a circle: {_CIRCLE}"
                    self._late.example(reason, row.event.only(seq))

    def _judge(self, name: str) -> Verdict:
        if any(self._endless(place) for place in self._notes):
            return unknown(name, "the obsolescence relation is not an order")
        if self._untold is not None:
            return untold(name, self._untold)
        findings, settled = Findings(name), self._settled()
        closed = [stay for stays in self._stays.values() for stay in stays if self._closed(stay, settled)]
        asked = {process: life.asked.counts for process, life in self._lives.items()}
        if name == GAP:
            every = [0] * len(self._lives)
            for stay in closed:
                every = list(map(max, every, stay.asked.counts))
            asked = dict.fromkeys(self._lives, every)
        by_place = self._by_place() if closed else {}
        for stay in closed:
            for stream, places in by_place.get(stay.place, {}).items():
                self._find_lacking(stay, stream, places, asked[stay.process], findings)
        self._find_direct(set(closed), asked, findings)
        return findings.verdict()

    def _by_place(self) -> dict[Place, dict[Stream, list[int]]]:
        """By view and stream the places of what was sent there."""
        found: dict[Place, dict[Stream, list[int]]] = {}
        for stream, sends in self._sends.items():
            if not stream.direct:
                for at, view in enumerate(sends.views):
                    found.setdefault((stream.group, view), {}).setdefault(stream, []).append(at)
        return found

    def _find_lacking(
        self, stay: _Stay, stream: Stream, places: list[int], asked: list[int], findings: Findings
    ) -> None:
        sends, upto = self._sends[stream], asked[self._lives[stream.sender].number]
        given = stay.given.get(stream, _NOTHING)
        owed = Runs()
        for at in places:
            if sends.numbers[at] <= upto:
                owed.add(sends.firsts[at], min(sends.lasts[at], sends.firsts[at] + upto - sends.numbers[at]))
        lacking = [seq for seq in owed.minus(given).numbers() if not self._replaced(stay, stream, seq)]
        findings.count(len(lacking))
        for seq in lacking:
            if findings.full:
                break
            where = f"view {stay.place[1]} of {stay.place[0]}"
            reason = f"{stay.process} has neither {_name(stream, seq)} nor a replacement in {where}"
            findings.example(reason, self._sending(stream, seq))

    def _find_direct(self, closed: set[_Stay], asked: dict[MemberId, list[int]], findings: Findings) -> None:
        if not self._info.quiesced:
            return
        for stream, seq, to in self._directs:
            sends = self._sends[stream]
            at = sends.holding(seq)
            assert at is not None
            mine = [
                s for s in self._stays.get((stream.group, sends.views[at]), ()) if s.process == stream.sender
            ]
            there = self._lives.get(to)
            if not mine or mine[-1] not in closed or there is None:
                continue
            stay = there.here.get(stream.group)
            if stay is None or not stay.open or seq in there.seen.get(stream, _NOTHING):
                continue
            if sends.number(at, seq) <= asked[to][self._lives[stream.sender].number]:
                findings.count(1)
                findings.example(f"{to} has no {_name(stream, seq)}", self._sending(stream, seq))

    def _sending(self, stream: Stream, seq: int) -> Event:
        sends = self._sends[stream]
        at = sends.holding(seq)
        assert at is not None
        index, time, view = sends.indices[at], sends.times[at], sends.views[at]
        group = self._info.only.name
        return Event(stream.sender, index, time, SENT, group, stream.sender, seq, 1, view=view)

    # What replaces what

    def _endless(self, place: Place) -> bool:
        """Only what names messages of others, or later ones, can make a circle."""
        for message, text in self._notes[place].items():
            mine = (message.sender.name, message.sender.incarnation)
            if any(named[:2] != mine or named[2] >= message.seq for named in text.replaces):
                return bool(self._relation(place).endless)
        return False

    def _relation(self, place: Place) -> Relation:
        notes = self._notes[place]
        return Relation(
            [
                Event(
                    message.sender,
                    0,
                    0,
                    Kind.MULTICAST,
                    place[0],
                    message.sender,
                    message.seq,
                    1,
                    annotation=notes[message].annotation,
                )
                for message in sorted(notes, key=lambda each: (each.sender, each.seq))
            ],
            {},
        )

    def _replaced(self, stay: _Stay, stream: Stream, seq: int) -> bool:
        if MessageId(stream.sender, seq) not in self._notes.get(stay.place, ()):
            return False
        if self._covered.get(stay) is None:
            relation = self._relation(stay.place)
            masks = [
                int(each.seq in stay.given.get(Stream(stream.group, each.process, direct=False), _NOTHING))
                for each in relation.messages
            ]
            relation.cover(masks)
            covered = zip(relation.messages, masks, strict=True)
            self._covered = {stay: {(each.process, each.seq) for each, mask in covered if mask}}
        return (stream.sender, seq) in self._covered[stay]

    # Who goes on

    def _settled(self) -> set[Place]:
        latest: dict[str, int] = {}
        for group, view in self._stays:
            latest[group] = max(view, latest.get(group, view))
        found = set()
        for place in latest.items():
            there = {stay.process for stay in self._stays[place] if stay.open}
            if there >= set(self._first(place).members):
                found.add(place)
        return found

    def _first(self, place: Place) -> _Stay:
        """The stay of the first process, in the order of their names."""
        return min(self._stays[place], key=lambda stay: stay.process)

    def _closed(self, stay: _Stay, settled: set[Place]) -> bool:
        return stay.followed or (self._info.quiesced and stay.open and stay.place in settled)


_NOTHING = Runs()
_CIRCLE = "deliveries that precede the sending"


def _fresh(life: _Life, stream: Stream, first: int, last: int) -> list[tuple[int, int]]:
    """What of a span a process is given for the first time."""
    known = life.seen.setdefault(stream, Runs()).add(first, last)
    if not known:
        return [(first, last)]
    return list(Runs([(first, last)]).minus(Runs(known)))


def _name(stream: Stream, seq: int) -> str:
    direct = "direct " if stream.direct else ""
    return f"{direct}{MessageId(stream.sender, seq)} of {stream.group}"
