"""Contents on Spark: what lines up, and what differs, is what the checker in memory says."""

from random import Random
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

from semcast.core import MemberId
from semcast.history import Event, Kind
from semcast.pipeline.verify.alignment import COLUMNS, COMPARED, DIFFERENT, LEFT_OVER, align
from semcast.pipeline.verify.crcs import moved
from semcast.specs.contents import known_contents, stretches

A, B = MemberId("a"), MemberId("b")


def rows(random: Random, kind: Kind, payloads: list[bytes]) -> list[Event]:
    """The messages in runs that are cut anywhere, some of them lost, overlapping or of unknown contents."""
    found: list[Event] = []
    first = 0
    while first < len(payloads):
        end = min(len(payloads), first + random.randint(1, 4))
        data = b"".join(payloads[first:end])
        crc = None if random.random() < 0.03 else crc32(data)
        process = A if kind is Kind.MULTICAST else B
        if random.random() < 0.93:
            event = Event(process, len(found), 0, kind, "g", A, first + 1, end - first, len(data), crc=crc)
            found.append(event)
        overlaps = kind is Kind.DELIVER and random.random() < 0.05
        first = max(0, end - 1) if overlaps and end - first > 1 else end
    return found


def table(pair: tuple[int, int], events: list[Event]) -> pa.Table:
    cells = [
        (LEFT_OVER, *pair, int(e.kind is Kind.MULTICAST), e.seq, e.last, e.size, e.crc, e.index)
        for e in events
        if e.crc is not None
    ]
    columns = [pa.array([row[n] for row in cells], pa.int64()) for n in range(len(COLUMNS))]
    return pa.table(columns, names=list(COLUMNS))


@pytest.mark.parametrize("seed", range(20))
def test_arrays_line_up_as_events_do(seed: int) -> None:
    random = Random(seed)
    tables: list[pa.Table] = []
    compared: dict[tuple[int, int], int] = {}
    different: set[tuple[int, int, int, int]] = set()
    for pair in [(3, 1), (5, 1), (1, 70_000)]:
        sent = [random.randbytes(random.randint(0, 9)) for _ in range(60)]
        got = [payload if random.random() < 0.9 else payload + b"!" for payload in sent]
        sends, deliveries = rows(random, Kind.MULTICAST, sent), rows(random, Kind.DELIVER, got)
        tables += [table(pair, sends), table(pair, deliveries)]
        found = list(stretches(known_contents(sends), known_contents(deliveries)))
        compared[pair] = sum(stretch.messages for stretch in found)
        different |= {
            (*pair, stretch.sent[0].seq, stretch.delivered[0].index) for stretch in found if stretch.differs
        }
    told = align(pa.concat_tables(tables)).to_pylist()
    assert {(r["who"], r["author"]): r["size"] for r in told if r["what"] == COMPARED} == compared
    assert {
        (r["who"], r["author"], r["first"], r["index"]) for r in told if r["what"] == DIFFERENT
    } == different
    assert different


@pytest.mark.parametrize("cut", [1, 2, 7, 30])
def test_what_reaches_over_an_edge_lines_up_in_the_end(cut: int) -> None:
    """In any two parts first and then what is left of both: nothing is lost, and nothing found twice."""
    random = Random(cut)
    sent = [random.randbytes(5) for _ in range(40)]
    got = [payload if place % 6 else b"other" for place, payload in enumerate(sent)]
    both = pa.concat_tables(
        [
            table((1, 2), rows(random, Kind.MULTICAST, sent)),
            table((1, 2), rows(random, Kind.DELIVER, got)),
        ]
    )
    below = pa.array(np.asarray(both["first"]) <= cut)
    parts = [align(both.filter(below)), align(both.filter(pa.compute.invert(below)))]
    left = pa.concat_tables([part.filter(pa.compute.equal(part["what"], LEFT_OVER)) for part in parts])
    found = [*parts, align(left)]

    def told(what: int, tables: list[pa.Table]) -> list[tuple[int, int]]:
        listed = [row for each in tables for row in each.to_pylist() if row["what"] == what]
        if what == COMPARED:
            return [(0, sum(row["size"] for row in listed))]
        return sorted((row["first"], row["last"]) for row in listed)

    for what in (COMPARED, DIFFERENT):
        assert told(what, found) == told(what, [align(both)])


def test_nothing_lines_up_with_nothing() -> None:
    only = table((1, 2), rows(Random(1), Kind.DELIVER, [b"x"] * 5))
    assert {row["what"] for row in align(only).to_pylist()} == {COMPARED, LEFT_OVER}
    assert align(only)["size"][0].as_py() == 0


def test_many_crcs_move_as_one_does() -> None:
    random = Random(5)
    parts = [
        (random.randbytes(random.randint(0, 40)), random.randbytes(size)) for size in (0, 1, 255, 256, 70_000)
    ]
    crcs = np.array([crc32(one) for one, _ in parts])
    together = moved(crcs, np.array([len(other) for _, other in parts])) ^ [
        crc32(other) for _, other in parts
    ]
    assert together.tolist() == [crc32(one + other) for one, other in parts]
