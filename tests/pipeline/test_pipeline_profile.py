"""Profiles are what counting by hand gives, whatever the skew, the order, the gaps and the partitions."""

import argparse
import json
import math
from collections import Counter
from contextlib import ExitStack
from itertools import groupby, pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from semcast.cli import profile as command
from semcast.cli.errors import UsageError
from semcast.models import Empirical
from semcast.pipeline.frames import REAL, TEXT, WHOLE, small_frame
from semcast.pipeline.profile.partial import Cut
from semcast.pipeline.profile.profiling import Settings, profile
from semcast.pipeline.profile.read import Trace, check_rows, read_trace
from semcast.pipeline.profile.segments import Scan, scan
from semcast.pipeline.profile.segments import rows as rows_of
from semcast.pipeline.profile.summary import Bin, Distances, StreamProfile, as_dict, items_of, sizes_of

Row = tuple[str, int, float, str, int, str]
COLUMNS = {"stream": TEXT, "seq": WHOLE, "ts": REAL, "key": TEXT, "bytes": WHOLE, "kind": TEXT}


# Streams, and what is to be said of them


def stream(
    name: str, keys: list[str], *, first: int = 0, step: float = 0.0, rng: Random | None = None
) -> list[Row]:
    """Updates of these keys; an empty key is an event, one that ends in ! a creation."""
    ts, rows = 0.0, []
    for seq, key in enumerate(keys, first):
        ts += rng.choice((0.0, 0.25, 1.0)) if rng else step
        kind = "event" if not key else "create" if key.endswith("!") else "update"
        rows.append((name, seq, ts, key, seq % 5, kind))
    return rows


def tiny() -> list[Row]:
    """Streams with hardly anything in them, and extreme ones."""
    return [
        *stream("one message", ["a"]),
        *stream("one event", [""]),
        *stream("one key", ["a"] * 50),
        *stream("no key twice", [f"k{n}" for n in range(40)], step=1.0),
        *stream("nothing but events", [""] * 9, first=17),
        *stream("created keys do not count", ["a!", "a", "a!", "a", "a!"]),
        *stream("far apart", ["far", *["x"] * 5000, "far"], first=3),
    ]


def drawn(seed: int) -> list[Row]:
    """Streams with skewed keys, pauses, and messages that write nothing."""
    rng = Random(seed)
    rows = []
    for number in range(6):
        alphabet = [f"key {n}" for n in range(rng.randint(1, 40))]
        keys = [
            ""
            if rng.random() < 0.1
            else alphabet[int(len(alphabet) * rng.random() ** 3)] + "!" * (rng.random() < 0.1)
            for _ in range(rng.randint(2, 300))
        ]
        rows += stream(f"drawn {number}", keys, first=rng.choice((0, 1, 1000)), rng=rng)
    return rows


def gapped(rows: list[Row], seed: int) -> list[Row]:
    """The same messages in the same order with holes between their numbers, some of them huge."""
    rng = Random(seed)
    loose, number = [], 0
    for name, _, ts, key, size, kind in rows:
        number += rng.choice((1, 1, 2, 7, 10**9))
        loose.append((name, number, ts, key, size, kind))
    return loose


def by_hand(rows: list[Row], *, purge: float, gap: float) -> dict[str, dict[str, object]]:
    ordered = sorted(rows)
    return {name: _by_hand(list(mine), purge, gap) for name, mine in groupby(ordered, lambda row: row[0])}


def _by_hand(rows: list[Row], purge: float, gap: float) -> dict[str, object]:
    found, latest = [], dict[str, int]()
    for place, (_, _, _, key, _, kind) in enumerate(rows):
        if kind == "update":
            if key in latest:
                found.append(place - latest[key])
            latest[key] = place
    return said(rows, sorted(found), len(rows), purge, gap)


def said(rows: list[Row], found: list[int], messages: int, purge: float, gap: float) -> dict[str, object]:
    m = len(found)
    updates = Counter(key for _, _, _, key, _, kind in rows if kind == "update").most_common()
    half = next(
        (
            n
            for n in range(1, len(updates))
            if 2 * sum(c for _, c in updates[:n]) >= sum(c for _, c in updates)
        ),
        len(updates),
    )
    enough = [n for n in sorted(set(found)) if sum(d <= n for d in found) / messages >= purge]
    bursts = [1]
    for before, row in pairwise(rows):
        if abs(row[2] - before[2]) <= gap:
            bursts[-1] += 1
        else:
            bursts.append(1)
    return {
        "messages": messages,
        "obsolete": m,
        "histogram": dict(Counter(map(binned, found))),
        "D": (found[m // 2], found[int(0.9 * m)], found[-1]) if m else (None, None, None),
        "R": [round(sum(d <= n for d in found) / messages, 9) for n in (1, 2, 10, 30)],
        "N": min(enough, default=None),
        "keys": len(updates),
        "half": half,
        "top": max((count for _, count in updates), default=0),
        "bursts": dict(Counter(bursts)),
    }


def binned(distance: int) -> int:
    """The smallest distance that is counted together with this one: of eleven binary digits, the rest 0."""
    rest = max(distance.bit_length() - 11, 0)
    return distance >> rest << rest


def of_spark(streams: tuple[StreamProfile, ...]) -> dict[str, dict[str, object]]:
    return {
        each.stream: {
            "messages": each.messages,
            "obsolete": each.distances.obsolete,
            "histogram": {bin_.low: bin_.n for bin_ in each.distances.bins},
            "D": (each.d_median, each.d_p90, each.d_max),
            "R": [round(each.purge_ratio(n), 9) for n in (1, 2, 10, 30)],
            "N": each.buffer,
            "keys": each.items.keys,
            "half": each.items.keys_for_half,
            "top": each.items.top[0][1] if each.items.top else 0,
            "bursts": each.bursts.counts,
        }
        for each in streams
    }


def frame(spark: SparkSession, rows: list[Row], seed: int = 0, partitions: int = 3) -> DataFrame:
    """The rows, in no order, over some partitions."""
    shuffled = rows[:]
    Random(seed).shuffle(shuffled)
    return small_frame(spark, COLUMNS, shuffled).repartition(partitions)


def scanned(trace: Trace, segment: int = 1000) -> Scan:
    """What is known of a trace after a pass over it."""
    with ExitStack() as kept:
        return scan(trace, Cut(rows=segment), kept)


# Agreement with counting by hand

CUTS = [
    pytest.param(Settings(purge=0.3, partitions=1), id="one partition"),
    pytest.param(Settings(purge=0.3, partitions=5, segment=40, gap=0.25), id="every cut there is"),
]


@pytest.mark.parametrize("settings", CUTS)
def test_dense_streams(interpreted: SparkSession, settings: Settings) -> None:
    rows = tiny() + drawn(1)
    trace = check_rows(frame(interpreted, rows, partitions=settings.partitions or 3))
    assert scanned(trace).dense
    assert of_spark(profile(trace, settings)) == by_hand(rows, purge=0.3, gap=settings.gap)


@pytest.mark.parametrize("settings", CUTS)
def test_streams_with_gaps(interpreted: SparkSession, settings: Settings) -> None:
    """Positions are ranks; a gap in the numbers is no distance."""
    rows = gapped(tiny() + drawn(2), 3)
    trace = check_rows(frame(interpreted, rows, partitions=settings.partitions or 3))
    assert not scanned(trace).dense
    assert of_spark(profile(trace, settings)) == by_hand(rows, purge=0.3, gap=settings.gap)


def test_files_in_any_order(interpreted: SparkSession, tmp_path: Path) -> None:
    """Pieces are cut where files end; those of a stream may lie in several, in whichever order."""
    rows = sorted(drawn(7))
    for name, part in (("c", rows[:100]), ("a", rows[100:333]), ("b", rows[333:])):
        columns = zip(*part, strict=True)
        pq.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), tmp_path / f"{name}.parquet")
    trace = read_trace(interpreted, [str(tmp_path)])
    assert {each.number >> 62 for facts in scanned(trace, 50).streams for each in facts.stretches} == {0}
    settings = Settings(purge=0.3, segment=50, partitions=3)
    assert of_spark(profile(trace, settings)) == by_hand(rows, purge=0.3, gap=0.0)


def test_duplicates_that_are_allowed_count_once(interpreted: SparkSession) -> None:
    rows = drawn(4)
    trace = check_rows(frame(interpreted, rows + rows[::7]), max_bad=10_000)
    assert scanned(trace).bad.count == len(rows[::7])
    assert of_spark(profile(trace, Settings(purge=0.3))) == by_hand(rows, purge=0.3, gap=0.0)


# Operations over several keys (Pereira 2002, 3.4.3)


def operations_by_hand(rows: list[Row], mark: list[object]) -> tuple[list[int], int]:
    """Distances by the relation as the paper states it, and the number of commits, for one stream."""
    sequence: list[tuple[str, int, str]] = []  # (what, operation, key)
    for operation, (_, members) in enumerate(groupby(range(len(rows)), lambda n: mark[n])):
        sequence += [(rows[n][5], operation, rows[n][3]) for n in members]
        sequence.append(("commit", operation, ""))
    found = []
    for i, (what, r, key) in enumerate(sequence):
        for j in range(i + 1, len(sequence)):
            if sequence[j][0] != "commit":
                continue
            s = sequence[j][1]
            overwritten = any(w == "update" and k == key and r < t <= s for w, t, k in sequence)
            if (what == "commit") or (what == "update" and overwritten):
                found.append(j - i)
                break
    return sorted(found), sum(what == "commit" for what, _, _ in sequence)


@pytest.mark.parametrize(("column", "chunk"), [("ts", 4), ("group", 1 << 18)])
def test_operations(interpreted: SparkSession, column: str, chunk: int) -> None:
    rng = Random(5)
    rows = [
        *stream("single", ["a"]),
        *stream("same key twice in an operation", ["a", "a", "b", "a", "a", "b"]),
        *stream("one operation", list("abcabcab")),
        *stream(
            "drawn", [rng.choice("abcd") if rng.random() < 0.8 else "" for _ in range(60)], first=2, rng=rng
        ),
        *gapped(stream("loose", [rng.choice("abcd") for _ in range(50)], rng=rng), 1),
    ]
    group = [f"{row[2]:g}" if column == "ts" else str(n // 3 % 4) for n, row in enumerate(rows)]
    marked = small_frame(
        interpreted, COLUMNS | {"group": TEXT}, [(*row, name) for row, name in zip(rows, group, strict=True)]
    )
    trace = check_rows(marked)
    done = profile(trace, Settings(purge=0.3, groups=column, chunk=chunk))
    expected = {}
    for name in sorted({row[0] for row in rows}):
        mine = [(row, mark) for row, mark in zip(rows, group, strict=True) if row[0] == name]
        found, commits = operations_by_hand([row for row, _ in mine], [mark for _, mark in mine])
        expected[name] = said([row for row, _ in mine], found, len(mine) + commits, 0.3, 0.0)
    assert of_spark(done) == expected


# The recordings


@pytest.mark.parametrize("folder", ["quake-mvd", "market-l2", "wiki-edits"])
def test_recordings_match_their_reference_profiles(
    spark: SparkSession, recordings: Path, folder: str
) -> None:
    reference = json.loads((recordings / folder / "profile.json").read_text())
    found = {each.stream: as_dict(each) for each in profile(read_trace(spark, [str(recordings / folder)]))}
    assert set(found) == set(reference)
    for name, expected in reference.items():
        check_against(found[name], expected)


def test_a_part_of_a_recording(spark: SparkSession, recordings: Path) -> None:
    """Players and entities alone: the numbers have gaps, and distances count what is left."""
    reference = json.loads((recordings / "quake-mvd" / "profile.json").read_text())
    whole = read_trace(spark, [str(recordings / "quake-mvd")])
    state = rows_of(whole, scanned(whole)).where(fn.col("key").rlike("^(player|ent)/")).persist()
    for each in profile(check_rows(state)):
        check_against(as_dict(each), reference[each.stream]["state_only"])
    state.unpersist()


def check_against(found: dict[str, object], expected: dict[str, object]) -> None:
    compared = set(expected) & set(found)
    assert {"R10", "R20", "R30", "P_D_le_10", "D_median", "keys", "never_obsolete_share"} <= compared
    for field in sorted(compared):
        assert found[field] == pytest.approx(expected[field], abs=5e-4, rel=0), (found["stream"], field)


# What is worked out on the driver


def test_items() -> None:
    items = items_of({5: 1, 3: 2, 1: 9}, [("a", 5)])
    assert (items.keys, items.updates, items.keys_for_half) == (12, 20, 3)
    assert (items.top_share, items.top10_share) == (0.25, 0.9)
    nothing = items_of({}, [])
    assert (nothing.keys, nothing.keys_for_half, nothing.top_share) == (0, 0, 0.0)


def test_sizes() -> None:
    sizes = sizes_of(Counter({1: 8, 2: 1, 10: 1}))
    assert (sizes.bursts, sizes.mean, sizes.median, sizes.p90, sizes.largest) == (10, 2.0, 1, 10, 10)


@pytest.mark.parametrize("purge", [0.001, 0.1, 0.29, 0.3, 0.7, 0.700001, 1.0])
def test_the_smallest_buffer_is_that_of_the_model(purge: float) -> None:
    """The rank that brings R_N to a share, against trying every N."""
    rng = Random(3)
    counts = Counter(int(rng.expovariate(0.1)) + 1 for _ in range(700))
    distances = Distances(1000, tuple(Bin(d, d, n) for d, n in sorted(counts.items())))
    model = Empirical({0: 300} | dict(counts))
    rank = distances.rank_for(purge)
    found = None if rank is None else distances.place(rank)[0].high
    assert found == next((n for n in range(1, max(counts) + 1) if model.purge_ratio(n) >= purge), None)


# The command


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["profile", *words])
    code: int = args.run(args)
    return code


def write_trace(folder: Path) -> Path:
    """f(0.5, 5): half of the messages write one of five items."""
    rng = Random(6)
    lines = (f"{n // 4},{rng.randrange(5) if rng.random() < 0.5 else ''}" for n in range(2000))
    path = folder / "feed.csv"
    path.write_text("\n".join(["t,symbol", *lines, ""]))
    return path


@pytest.mark.usefixtures("spark")
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write_trace(tmp_path), tmp_path / "out"
    words = [
        str(path),
        "--key",
        "symbol",
        "--time",
        "t",
        "--purge",
        "0.4",
        "--ts-rate",
        "100",
        "--tr-rate",
        "40",
    ]
    assert run(*words, "--json", "--out", str(out)) == 0
    (found,) = json.loads(capsys.readouterr().out)["streams"]
    assert (found["stream"], found["messages"], found["keys"], found["bursts"]["max"]) == ("feed", 2000, 5, 4)
    assert found["R20"] == pytest.approx(0.44, abs=0.03)
    assert [row["N"] for row in found["throughput"]] == [10, 20, 30, found["N"]]
    assert found["throughput"][1]["T"] == pytest.approx(40 / (1 - found["R20"]))

    histogram = pq.read_table(out / "histogram.parquet").to_pydict()
    assert histogram["messages"] == [each["messages"] for each in found["histogram"]]
    assert histogram["r"] == pytest.approx([each["R"] for each in found["histogram"]])
    items = pq.read_table(out / "items.parquet").to_pydict()
    assert sum(items["updates"]) == found["kinds"]["update"]
    assert math.isclose(sum(items["share"]), 1)
    assert pq.read_table(out / "summary.parquet").to_pydict()["buffer"] == [found["N"]]
    assert (out / "profile.png").read_bytes().startswith(b"\x89PNG")

    assert run(*words) == 0
    printed = capsys.readouterr().out
    assert "to purge 40%, a buffer of N =" in printed
    assert "without purging" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--purge", "0"], r"--purge is a share"),
        (["--purge", "1.5"], r"--purge is a share"),
        (["--gap", "-1"], r"--gap is a time"),
        (["--max-bad", "-1"], r"--max-bad cannot be negative"),
        (["--ts-rate", "5"], r"go together"),
        (["--ts-rate", "5", "--tr-rate", "0"], r"must be above 0"),
    ],
)
def test_wrong_options(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run("trace.csv", *words)


@pytest.mark.usefixtures("spark")
def test_a_trace_that_cannot_be_used_is_the_users_business(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere.csv: no such file"):
        run(str(tmp_path / "nowhere.csv"))


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark", None)
    with pytest.raises(UsageError, match=r"pip install 'semcast\[pipeline\]'"):
        run("trace.csv")
