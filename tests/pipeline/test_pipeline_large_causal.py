"""Causal order in views for large runs: the same verdicts as in memory, however rows are cut and lie."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.histories import named, places, recut, renumbered, scatter
from tests.specs.vsync_histories import random_history

from semcast.core import MemberId, MessageId
from semcast.history import Event, History, Kind, RunInfo
from semcast.pipeline.session import SMALL_ROWS
from semcast.pipeline.verify import Options, survey, verify
from semcast.pipeline.verify.large.causal import ground as grounds
from semcast.pipeline.verify.large.causal import pasts as followed
from semcast.pipeline.verify.large.causal.again import first_times
from semcast.pipeline.verify.large.causal.arrays import SEQ_BITS, Ints, coded
from semcast.pipeline.verify.large.causal.course import course_of
from semcast.pipeline.verify.large.causal.field import Work
from semcast.pipeline.verify.large.causal.ground import lay_out
from semcast.pipeline.verify.large.causal.meeting import met, words_of
from semcast.pipeline.verify.large.causal.owed import debts
from semcast.pipeline.verify.large.causal.pasts import Pasts
from semcast.pipeline.verify.large.causal.strips import PART, STRIP, Strip, divided, joined
from semcast.pipeline.verify.stays import Stays
from semcast.specs import Status, check
from semcast.specs.vsync.causal import _Asked
from semcast.specs.vsync.pasts import Past, pasts_of
from semcast.specs.vsync.views import Views, views_of

NAME = "causal_delivery"
Row = tuple[MemberId, Kind, MemberId | None, int]
A, B, C, D = MEMBERS = tuple(MemberId(name) for name in "abcd")


class MemoryField:
    """Strips of one history, without Spark."""

    def __init__(self, history: History) -> None:
        run = history.info.run
        kinds = (Kind.VIEW, Kind.TRANSITIONAL, Kind.CRASH)
        stays = Stays({run: History(history.info, [e for e in history.events if e.kind in kinds])})
        known = stays.runs[run]
        people = {*known.lives, *(member for stay in known.stays for member in stay.members)}
        people |= {event.process for event in history.events}
        people |= {event.sender for event in history.events if event.sender is not None}
        numbers = {(run, member): number for number, member in enumerate(sorted(people))}
        pieces = stays.pieces(numbers)
        steps = np.array(list(_steps(history, numbers)), np.int64).reshape(-1, 5).T
        place, sent, author, first, last = steps
        starts = np.array([(numbers[piece.who] << SEQ_BITS) + piece.first for piece in pieces])
        inside = np.array([-1 if piece.stay is None else piece.stay for piece in pieces])
        stay = inside[np.searchsorted(starts, place, side="right") - 1]
        here = (sent > 0) & (stay >= 0)
        self.people = sorted(people)
        self.ground = lay_out(stays, pieces, numbers, [run], np.stack((stay, author, first, last))[:, here])
        pairs, rank = np.unique(coded(place >> SEQ_BITS, author)[sent == 0], return_inverse=True)
        index = place & ((1 << SEQ_BITS) - 1)
        again = first_times(pairs, rank, first[sent == 0], last[sent == 0], index[sent == 0])
        parts: dict[tuple[int, int], list[bytes]] = {}
        for number, chunk, rows in divided(self.ground, again, *steps):
            parts.setdefault((number, chunk), []).append(rows)
        tables = [
            joined(pa.Table.from_pylist([{"stay": s, "chunk": c, "rows": r} for r in rows], schema=PART))
            for (s, c), rows in parts.items()
        ]
        strips = pa.concat_tables([STRIP.empty_table(), *tables])
        self.course = course_of(self.ground, strips)
        self._rows = {
            self.course.number[row["stay"], row["chunk"]]: Strip.of(row["rows"]) for row in strips.to_pylist()
        }
        self._met = np.zeros((4, 0), np.int64)

    def along(self, paths: Collection[int], work: Work, names: Sequence[str], most: int) -> Ints:
        chosen = [number for number in self._rows if self.course.path[number] in set(paths)]
        none = np.zeros((len(names), 0), np.int64)
        return np.concatenate([none, *(work(number, self._rows[number]) for number in chosen)], axis=1)

    def meet(self, paths: Collection[int]) -> dict[int, int]:
        words: dict[int, list[tuple[int, Ints]]] = {}
        for number, strip in self._rows.items():
            if self.course.path[number] in set(paths):
                for about, path, vectors in words_of(self.ground, self.course, number, strip):
                    words.setdefault(about, []).append((path, vectors))
        self._met = np.concatenate([self._met, *map(met, words.values())], axis=1)
        return Counter(self._met[0].tolist())

    def met(self, paths: Collection[int]) -> Ints:
        return self._met[:, np.isin(self._met[0], list(paths))]


def _steps(history: History, numbers: dict[tuple[str, MemberId], int]) -> Iterator[tuple[int, ...]]:
    for event in history.events:
        if event.kind in (Kind.MULTICAST, Kind.DELIVER):
            assert event.sender is not None
            who, author = numbers[history.info.run, event.process], numbers[history.info.run, event.sender]
            sent = int(event.kind is Kind.MULTICAST)
            yield (who << SEQ_BITS) + event.index, sent, author, event.seq, event.last


def talk(seed: int) -> History:
    """Processes that deliver in an order that all agree with, pass over some, and at times do worse."""
    random = Random(f"talk {seed}")
    members = MEMBERS[: random.randint(2, 4)]
    worse, passed = random.choice((0, 0, 0, 0.01, 0.05)), random.choice((0, 0.1, 0.3, 0.6))
    events = dict[MemberId, list[Event]]((member, []) for member in members)
    sent = dict.fromkeys(members, 0)
    for view in range(1, random.randint(1, 3) + 1):
        for member in members:
            events[member].append(Event(member, 0, 0, Kind.VIEW, "g", view=view, members=members))
        order: list[tuple[MemberId, int]] = []
        at, slow = dict.fromkeys(members, 0), {member: random.choice((1, 1, 3, 8)) for member in members}
        for _ in range(random.randint(5, 60)):
            member = random.choice(members)
            if random.random() < 0.4:
                seq, count = sent[member] + random.choice((1, 1, 1, 2)), random.choice((1, 1, 1, 2, 4))
                sent[member] = seq + count - 1
                row = Event(member, 0, 0, Kind.MULTICAST, "g", member, seq, count, view=view)
                events[member].append(row)
                order += [(member, number) for number in range(seq, seq + count)]
            elif random.randint(1, slow[member]) == 1:
                upto = at[member] + random.randint(1, 4 * slow[member])
                some = [each for each in order[at[member] : upto] if random.random() >= passed]
                at[member] = min(upto, len(order))
                events[member] += _deliveries(random, member, _spoilt(random, worse, some, order, sent))
    if random.random() < 0.2:
        _move(random, events[random.choice(members)])
    info = RunInfo.one(f"talk-{seed}", "g", "vs", None, members, None, uniform=False, quiesced=True)
    return renumbered(info, [event for rows in events.values() for event in rows])


def _spoilt(
    random: Random,
    worse: float,
    some: list[tuple[MemberId, int]],
    order: list[tuple[MemberId, int]],
    sent: dict[MemberId, int],
) -> list[tuple[MemberId, int]]:
    if random.random() < worse:
        random.shuffle(some)
    if order and random.random() < worse:
        some.append(random.choice(order))
    if random.random() < worse:
        author = random.choice(list(sent))
        some.append((author, sent[author] + random.randint(0, 2) + 1))
    return some


def _deliveries(random: Random, member: MemberId, some: list[tuple[MemberId, int]]) -> list[Event]:
    rows: list[Event] = []
    for author, seq in some:
        if rows and rows[-1].sender == author and rows[-1].last + 1 == seq and random.random() < 0.7:
            rows[-1] = msgspec.structs.replace(rows[-1], count=rows[-1].count + 1)
        else:
            rows.append(Event(member, 0, 0, Kind.DELIVER, "g", author, seq, 1))
    return rows


def _move(random: Random, rows: list[Event]) -> None:
    found = places(rows, Kind.DELIVER)
    if found:
        row = rows.pop(random.choice(found))
        rows.insert(random.randint(0, len(rows)), row)


def growing(history: History) -> bool:
    """Whether `verify` would take it."""
    for process in history.processes:
        upto = 0
        for event in history.of(process):
            if event.kind is Kind.MULTICAST:
                if event.seq <= upto:
                    return False
                upto = event.last
    return bool(history.events)


def drawn(seeds: Collection[int]) -> list[History]:
    """Damaged histories of views, and of talking."""
    found = [named(random_history(seed), f"random-{seed}") for seed in seeds]
    return [each for each in found if growing(each)] + [talk(seed) for seed in seeds]


@pytest.mark.parametrize("bits", [0, 2, 16])
def test_without_spark_the_verdict_is_that_in_memory(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grounds, "STRIP_BITS", bits)
    statuses = []
    for history in drawn(range(200)):
        (expected,) = check(history, [NAME])
        if expected.status is Status.UNKNOWN:
            continue
        pasts = Pasts(MemoryField(history))
        assert not pasts.unknown
        count = sum(fault.last - fault.first + 1 for _, fault in pasts.faults())
        assert (count > 0) == (expected.status is Status.VIOLATED), history.info.run
        assert count <= expected.count
        assert bool(pasts.circles) == any(past.stuck for past in pasts_of(views_of(history)))
        statuses.append(expected.status)
    assert statuses.count(Status.HOLDS) > 30
    assert statuses.count(Status.VIOLATED) > 30


@pytest.mark.parametrize("bits", [1, 16])
def test_what_is_owed_is_what_precedes(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grounds, "STRIP_BITS", bits)
    many = 0
    for history in drawn(range(150)):
        pasts = pasts_of(views_of(history))
        if not any(past.stuck for past in pasts):
            views = views_of(history)
            had = {
                (stay.slot, message)
                for stay in views.known.stays
                for message in views.known.parts.messages(list(stay.delivered))
            }
            owed = {key for past in pasts for key in _owed(views, past)} - had
            assert set(_told(history, pasts)) - had == owed, history.info.run
            many += len(owed)
    assert many > 1000


def _owed(views: Views, past: Past) -> Iterator[tuple[int, MessageId]]:
    """By stays of those who go on, in memory."""
    for stay in filter(views.closed, past.stays):
        asked = _Asked(past)
        for kind, part in past.steps[stay.slot]:
            if kind is Kind.DELIVER:
                asked.deliver(part)
        yield from ((stay.slot, message) for message in views.known.parts.messages(asked.owed()))


def _told(history: History, pasts: list[Past]) -> Iterator[tuple[int, MessageId]]:
    """The same by strips."""
    field, views = MemoryField(history), views_of(history)
    closed = {stay.slot for stay in views.known.stays if views.closed(stay)}
    upto = {(stay, field.people[author]): upto for stay, author, upto in debts(Pasts(field), closed)}
    for past in pasts:
        for stay, sends in product(past.stays, past.sends):
            for message in views.known.parts.messages(sends):
                if message.seq <= upto.get((stay.slot, message.sender), 0):
                    yield stay.slot, message


ROWS: list[Row] = [
    *((member, Kind.VIEW, None, 0) for member in MEMBERS),
    (A, Kind.MULTICAST, A, 1),
    (A, Kind.DELIVER, A, 1),
    (A, Kind.MULTICAST, A, 2),
    (B, Kind.DELIVER, A, 2),
    (B, Kind.MULTICAST, B, 1),
    (C, Kind.DELIVER, B, 1),
    (C, Kind.MULTICAST, C, 1),
    (D, Kind.DELIVER, C, 1),
]
"""Of a's messages c and d only hear: c of both from b, and d from c."""


def test_rumours_are_followed_until_there_are_no_new_ones() -> None:
    assert _faults(ROWS) == []
    assert _faults([*ROWS, (D, Kind.DELIVER, A, 1)]) == [(D, False)]
    assert _faults([*ROWS, (B, Kind.DELIVER, A, 1)]) == [(B, False)]
    assert _faults([*ROWS, (D, Kind.DELIVER, B, 1), (D, Kind.DELIVER, A, 2)]) == [(D, False), (D, False)]


def test_who_hears_of_what_it_has_yet_to_multicast_is_in_a_circle() -> None:
    all_three = [(member, True) for member in (A, B, C)]
    assert _faults([*ROWS[:4], (A, Kind.DELIVER, C, 1), *ROWS[4:]]) == all_three
    assert _faults([*ROWS[:4], (A, Kind.DELIVER, A, 2), *ROWS[4:]]) == [(A, True)]


def test_more_rumours_than_can_be_followed_are_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "MOST_RUMOURS", 1)
    assert list(Pasts(MemoryField(_history(ROWS))).unknown) == ["rumours"]
    monkeypatch.setattr(followed, "MOST_RUMOURS", 1000)
    monkeypatch.setattr(followed, "MOST_ROUNDS", 1)
    assert list(Pasts(MemoryField(_history(ROWS))).unknown) == ["rumours"]
    monkeypatch.setattr(followed, "MOST_ROUNDS", 2)
    assert not Pasts(MemoryField(_history(ROWS))).unknown


def _history(rows: list[Row]) -> History:
    info = RunInfo.one("rumours", "g", "vs", None, MEMBERS, None, uniform=False, quiesced=True)
    events = [
        Event(process, 0, 0, kind, "g", view=1, members=MEMBERS)
        if sender is None
        else Event(process, 0, 0, kind, "g", sender, seq, 1, view=1 if kind is Kind.MULTICAST else None)
        for process, kind, sender, seq in rows
    ]
    return renumbered(info, events)


def _faults(rows: list[Row]) -> list[tuple[MemberId, bool]]:
    history = _history(rows)
    field = MemoryField(history)
    pasts = Pasts(field)
    assert len(list(pasts.faults())) <= check(history, [NAME])[0].count
    return [(field.people[field.course.paths[path].who], fault.circle) for path, fault in pasts.faults()]


def test_it_does_not_matter_how_rows_lie_and_are_cut(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grounds, "STRIP_BITS", 4)
    histories = [recut(talk(seed), Random(seed)) for seed in range(6)]
    for history in histories:
        scatter(history, tmp_path / "rows", Random(5))
    agree(spark, tmp_path / "rows", histories, small_rows=0)


def agree(
    spark: SparkSession, folder: Path, histories: list[History], *, small_rows: int = SMALL_ROWS
) -> None:
    """What Spark says of large runs is what is said in memory."""
    chosen = Options([NAME], allow_missing=True, memory_rows=0, small_rows=small_rows)
    told = {verdict.run: verdict for verdict in verify(spark, survey([folder]), chosen).verdicts}
    for history in histories:
        (expected,) = check(history, [NAME])
        assert told[history.info.run].status is expected.status, history.info.run
        assert bool(told[history.info.run].sample) == (expected.status is Status.VIOLATED)
