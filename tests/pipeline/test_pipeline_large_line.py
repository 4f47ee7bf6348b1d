"""Runs too large for memory: what one line of all events says, against the checkers in memory."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from random import Random
from typing import TypeVar, cast

import msgspec
import numpy as np
import pytest
from tests.pipeline.histories import named, recut
from tests.pipeline.rings import growing, small
from tests.specs.vsync_histories import random_history

from semcast.core import MemberId, MessageId
from semcast.history import Event, History, Kind, RunInfo
from semcast.pipeline.verify.large.line import LINE, causal, knots, outcome, stages, windows
from semcast.pipeline.verify.large.line.agreed import (
    debts_of,
    debts_of_rest,
    gather_tops,
    lows_of,
    tops_of,
)
from semcast.pipeline.verify.large.line.places import crowd_of, entries_of, lives_of, places_of, regs_of
from semcast.pipeline.verify.large.line.ranks import Window
from semcast.pipeline.verify.large.line.rest import stragglers
from semcast.pipeline.verify.large.line.spans import cut, earliest
from semcast.pipeline.verify.scene import Scene
from semcast.pipeline.verify.stays import Stays
from semcast.specs import check
from semcast.specs.evs.configurations import configurations_of

T = TypeVar("T")
A, B, C = MemberId("a"), MemberId("b"), MemberId("c")
_CHANGES = (Kind.VIEW, Kind.TRANSITIONAL, Kind.CRASH)


class Stage:
    """What a scene knows of one run, without Spark."""

    def __init__(self, history: History) -> None:
        run = history.info.run
        changes = [event for event in history.events if event.kind in _CHANGES]
        self.stays = Stays({run: History(history.info, changes)})
        people = {(run, process) for process in history.processes}
        people |= {(run, event.sender) for event in history.events if event.sender is not None}
        people |= {(run, member) for stay in self.stays.runs[run].stays for member in stay.members}
        self.everybody = sorted(people)
        self.numbers = {who: number for number, who in enumerate(self.everybody)}
        self.pieces = self.stays.pieces(self.everybody)


class Line:
    """The line of one run, put together from rows in any order and in batches of a few."""

    def __init__(self, history: History, random: Random) -> None:
        self.history = history
        run = history.info.run
        self.scene = scene = cast("Scene", Stage(history))
        rows = [
            (
                self._place(event) * 2 + (event.kind is Kind.MULTICAST),
                self._who(event.sender),
                event.seq,
                event.last,
            )
            for event in history.events
            if event.kind in (Kind.MULTICAST, Kind.DELIVER)
        ]
        random.shuffle(rows)
        self.places = places_of(scene, self._counts())
        batches = [np.array(rows[at : at + 7], np.int64).T for at in range(0, len(rows), 7)]
        self.packed = _gather(row for batch in batches for row in windows.pack(*batch))
        self.windows = [
            Window(author, number, windows.unpack(blobs), self.places)
            for (author, number), blobs in self.packed.items()
        ]
        steps = _gather(
            row
            for (author, number), blobs in self.packed.items()
            for row in stages.ranked(author, number, blobs, self.places)
        )
        folded = [stages.folded(who, stretch, blobs, self.places) for (who, stretch), blobs in steps.items()]
        self.outcome = outcome.outcome(stages.by_process(folded), entries_of(scene)[run])
        self.lives = lives_of(scene, self.places)

    def status(self, name: str) -> str:
        if name in outcome.ORDER:
            unknown = name in self.outcome.unknown
            return "unknown" if unknown else "violated" if name in self.outcome.broken else "holds"
        line = self.outcome.deliveries if name == outcome.AGREED else self.outcome.line
        if line is None or self.outcome.loose:
            return "unknown"
        return self._agreed(line) if name == outcome.AGREED else self._causal(line)

    def _agreed(self, line: knots.Knots) -> str:
        rest = stragglers(line, self.places)
        if rest is None:
            return "unknown"
        highest: dict[tuple[int, int], int] = {}
        for piece, who, rank in self._all(tops_of):
            highest[piece, who] = max(highest.get((piece, who), -1), rank)
        owners = [self.scene.numbers[piece.who] for piece in self.scene.pieces]
        tops = gather_tops(highest, rest, owners, self.places.reg.tolist(), crowd_of(self.scene))
        debts = self._all(lambda window: debts_of(window, self.lives, tops.rank))
        lows = self._all(lambda window: lows_of(window, self.lives))
        assert any(2 * low < tops.rank[asker] for asker, low in lows) == bool(debts)
        return self._paid([*debts, *debts_of_rest(rest, self.lives, tops)])

    def _causal(self, line: knots.Knots) -> str:
        rest = stragglers(line, self.places)
        if rest is None:
            return "unknown"
        if causal.disordered(self._all(causal.streams_of)) is not None:
            return "violated"
        extra = causal.successions(self._all(causal.marks_of), rest)
        if knots.Knots(line.paths, sends=True, extra=extra).walk.stuck:
            return "unknown"
        frontier = _highest(self._all(causal.frontier_of))
        while found := self._crossings(frontier):
            frontier |= _highest(found)
        return self._paid(self._all(lambda window: causal.causes_of(window, self.lives, frontier)))

    def _crossings(self, frontier: dict[tuple[int, int, int], int]) -> list[tuple[int, int, int, int]]:
        wanted: dict[int, set[int]] = defaultdict(set)
        for (_, _, author), number in frontier.items():
            wanted[author].add(number)
        sends = self._all(lambda window: causal.sends_of(window, wanted))
        spot = {(author, number): at for author, number, at in sends}
        spots = {key: spot[key[2], number] for key, number in frontier.items()}
        return self._all(lambda window: causal.crossings_of(window, self.lives, frontier, spots))

    def _paid(self, debts: Iterable[tuple[int, int, int, int, int]]) -> str:
        """By the excuses of the checkers in memory."""
        known = configurations_of(self.history)
        regs = [reg for _, reg in regs_of(self.scene)]
        for who, reg, author, first, last in debts:
            life = known.lives[self.scene.everybody[who][1]]
            sender = self.scene.everybody[author][1]
            for number in range(first, last + 1):
                part = known.parts.around(MessageId(sender, number))
                if not known.excused(life, regs[reg], part):
                    return "violated"
        return "holds"

    def _all(self, tell: Callable[[Window], Iterable[T]]) -> list[T]:
        return [each for window in self.windows for each in tell(window)]

    def _counts(self) -> dict[int, int]:
        counts: dict[int, int] = defaultdict(int)
        for event in self.history.events:
            if event.kind is Kind.DELIVER:
                mine = [n for n, piece in enumerate(self.scene.pieces) if piece.who[1] == event.process]
                counts[max(n for n in mine if self.scene.pieces[n].first <= event.index)] += event.count
        return counts

    def _who(self, member: MemberId | None) -> int:
        assert member is not None
        return self.scene.numbers[self.history.info.run, member]

    def _place(self, event: Event) -> int:
        return (self._who(event.process) << 40) + event.index


def _gather(rows: Iterable[tuple[int, int, int, bytes]]) -> dict[tuple[int, int], list[bytes]]:
    found: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    for one, other, _, blob in rows:
        found[one, other].append(blob)
    return found


def _highest(rows: Iterable[tuple[int, int, int, int]]) -> dict[tuple[int, int, int], int]:
    found: dict[tuple[int, int, int], int] = {}
    for who, reg, author, number in rows:
        found[who, reg, author] = max(found.get((who, reg, author), 0), number)
    return found


def drawn(seeds: range) -> list[History]:
    """Rings and groups with views, more or less broken, with runs of messages cut anew."""
    views = [named(random_history(seed), f"views-{seed}") for seed in seeds]
    histories = [*small(seeds), *(history for history in views if history.events and growing(history))]
    random = Random(seeds.start)
    return [recut(history, random) if random.random() < 0.5 else history for history in histories]


def in_memory(history: History) -> dict[str, str]:
    return {verdict.property: verdict.status.value for verdict in check(history, list(LINE))}


def test_without_spark_it_agrees_with_the_checkers_in_memory() -> None:
    random = Random(1)
    told: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for history in drawn(range(120)):
        if configurations_of(history).stays:
            line = Line(history, random)
            for name, expected in in_memory(history).items():
                if expected != "unknown" or name in outcome.ORDER:
                    told[name].add((expected, line.status(name)))
    for name in LINE:
        assert told[name] <= {(said, said) for said in ("holds", "violated")} | {
            (said, "unknown") for said in ("holds", "violated", "unknown")
        }
        assert ("holds", "holds") in told[name]
    for name in (outcome.PRECEDENCE, outcome.RESPECTS, outcome.SAME_MOMENT, outcome.CAUSAL, outcome.AGREED):
        assert ("violated", "violated") in told[name]


def test_no_result_depends_on_how_rows_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    histories = [history for history in drawn(range(40)) if configurations_of(history).stays]
    before = [Line(history, Random(2)).outcome for history in histories]
    monkeypatch.setattr(stages, "STRETCH_BITS", 1)
    after = [Line(history, Random(3)).outcome for history in histories]
    assert [one.broken.keys() for one in before] == [other.broken.keys() for other in after]
    assert [one.unknown for one in before] == [other.unknown for other in after]


def two_views(orders: dict[MemberId, list[MessageId]], sends: list[MessageId]) -> History:
    """Everybody sends first, and then delivers in an order of its own."""
    members = tuple(sorted(orders))
    events = []
    for who in members:
        rows = [Event(who, 0, 0, Kind.VIEW, "g", A, view=1, members=members)]
        rows += [
            Event(who, 0, 0, Kind.MULTICAST, "g", who, m.seq, 1, view=1) for m in sends if m.sender == who
        ]
        rows += [Event(who, 0, 0, Kind.DELIVER, "g", m.sender, m.seq, 1) for m in orders[who]]
        events += [msgspec.structs.replace(event, index=index) for index, event in enumerate(rows)]
    info = RunInfo.one("two", "g", "ring", None, members, None, uniform=False, quiesced=False)
    return History(info, events)


def test_what_the_reference_lacks_is_ordered_by_a_walk() -> None:
    """a has delivered the most, and neither (b,1) nor (c,1); b and c disagree about these, or do not."""
    first, one, other = MessageId(A, 1), MessageId(B, 1), MessageId(C, 1)
    more = [MessageId(A, seq) for seq in range(1, 6)]
    sends = [*more, one, other]
    agreed = two_views({A: more, B: [first, one, other], C: [one, other]}, sends)
    assert Line(agreed, Random(1)).status(outcome.SAME_MOMENT) == "holds"
    crossed = two_views({A: more, B: [one, other], C: [other, one]}, sends)
    assert Line(crossed, Random(1)).status(outcome.SAME_MOMENT) == "violated"
    assert in_memory(crossed)[outcome.SAME_MOMENT] == "violated"
    around = two_views({A: more, B: [one, first], C: [more[2], one]}, sends)
    assert Line(around, Random(1)).status(outcome.SAME_MOMENT) == "violated"
    assert in_memory(around)[outcome.SAME_MOMENT] == "violated"


def test_earliest_spans_of_each_group() -> None:
    group, order = np.array([1, 1, 2]), np.array([5, 3, 9])
    which, first, last = earliest(group, order, np.array([1, 4, 1]), np.array([6, 8, 6]), 16)
    assert list(zip(which.tolist(), first.tolist(), last.tolist(), strict=True)) == [
        (0, 1, 3),
        (1, 4, 6),
        (1, 7, 8),
        (2, 1, 6),
    ]


def test_spans_are_cut_at_points() -> None:
    which, first, last = cut(np.array([1, 7]), np.array([5, 8]), np.array([1, 3, 6]))
    assert (which.tolist(), first.tolist(), last.tolist()) == ([0, 0, 1], [1, 3, 7], [2, 5, 8])


def test_rows_over_several_windows_are_cut() -> None:
    size = 1 << windows.WINDOW_BITS
    packed = list(windows.pack(*(np.array([number]) for number in (10, 4, size - 2, 2 * size + 1))))
    assert [(author, window, count) for author, window, count, _ in packed] == [
        (4, 0, 1),
        (4, 1, 1),
        (4, 2, 1),
    ]
    parts = [windows.unpack([rows]) for *_, rows in packed]
    assert [(int(part.first[0]), int(part.last[0]), int(part.offset[0])) for part in parts] == [
        (size - 2, size - 1, 0),
        (0, size - 1, 2),
        (0, 1, size + 2),
    ]
