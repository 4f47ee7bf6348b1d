"""Batches that come in pieces: in the log whole or not at all, and once for their key."""

from random import Random

import pytest
from tests.protocols.test_gossip_client import Asking

from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip import Logger, Retention
from semcast.protocols.gossip.client import Question, Result
from semcast.protocols.gossip.queries import Denied, Put, Release, Taken
from semcast.sim.mutants import MUTANTS
from semcast.wire.annotations import WireItem

BROKEN = ("half-a-batch", "published-twice", "key-beside-the-batch")


def staged(stage: str, number: int, *payloads: bytes, item: str | None = None) -> list[Put]:
    note = None if item is None else WireItem(item)
    return [Put(0, 0, b"-", 0, 1, [(payload, note) for payload in payloads], stage, number)]


def logger_of(lab: Asking) -> Logger:
    stack = lab.seats["log"].stack
    assert isinstance(stack, Logger)
    return stack


def logged(lab: Asking) -> list[bytes]:
    reading = logger_of(lab).reading
    return [entry.batch.payloads[0] for entry in reading.read(0, 1 << 40, most=1 << 20).entries]


def position(result: Result) -> tuple[int, bool]:
    assert isinstance(result, Taken), result
    return result.position, result.known


def denied(result: Result) -> tuple[str, str]:
    assert isinstance(result, Denied), result
    return result.trouble, result.why


def test_pieces_become_one_batch() -> None:
    lab = Asking()
    lab.ask(staged("a", 0, b"1", b"2"))
    lab.ask(staged("b", 0, b"5", item="x"))
    lab.ask(staged("a", 1, b"3", b"4"))
    lab.run(SECOND)
    assert (logged(lab), lab.got("q")) == ([], []), "nothing is shown before"
    assert position(lab.ask(Release(0, 0, b"k", [("a", 2), ("b", 1)]))) == (0, False)
    lab.run(SECOND)
    whole = [b"1", b"2", b"3", b"4", b"5"]
    assert logged(lab) == whole
    assert all(lab.got(name) == whole for name in "pqr")
    assert len(logger_of(lab).books.stages) == 0


def _scenario(mutant: str | None) -> list[list[bytes]]:
    """What the log has after retries of all kinds, with the logger killed between any two steps."""
    kind = MUTANTS["rpbcast"][mutant].logger if mutant else Logger
    found = []
    for killed_before in range(5):
        lab = Asking(logger=kind)
        steps: tuple[Question, ...] = (
            staged("a", 0, b"1", b"2"),
            Release(0, 0, b"k", [("a", 1), ("b", 2)]),
            staged("b", 1, b"4"),
            staged("b", 0, b"3"),
            Release(0, 0, b"k", [("a", 1), ("b", 2)]),
        )
        for number, step in enumerate(steps):
            if number == killed_before:
                lab.restart("log")
                lab.run(SECOND)
            lab.begin(step)
            lab.run(400 * MILLISECOND)
        if killed_before % 2:
            lab.restart("log")
            lab.run(SECOND)
        lab.begin(staged("c", 0, b"1", b"2", b"3", b"4"))  # the batch is done again, by other tasks
        lab.run(400 * MILLISECOND)
        lab.begin(Release(0, 0, b"k", [("c", 1)]))
        lab.run(SECOND)
        found.append(logged(lab))
    return found


def test_a_batch_is_in_the_log_whole_and_once() -> None:
    assert _scenario(None) == [[b"1", b"2", b"3", b"4"]] * 5


@pytest.mark.parametrize("mutant", BROKEN)
def test_a_broken_logger_is_caught(mutant: str) -> None:
    assert any(each != [b"1", b"2", b"3", b"4"] for each in _scenario(mutant))


@pytest.mark.parametrize("mutant", [None, "staged-before-synced"])
def test_a_piece_is_there_when_it_is_on_disk(mutant: str | None) -> None:
    lab = Asking(logger=MUTANTS["gateway"][mutant].logger if mutant else Logger)
    lab.seats["log"].sync_after = None
    early = lab.begin(staged("a", 0, b"1"))
    assert bool(early) is (mutant is not None)


def test_a_batch_that_left_the_log_has_the_position_that_it_had() -> None:
    """Also in a log that was written anew and read back: it was said to be at 0."""
    lab = Asking(retention=Retention.LIMITS, log_messages=2, rewrite_records=0)
    for number in range(5):
        lab.ask(staged(str(number), 0, b"%d" % number, b"!"))
        assert position(lab.ask(Release(0, 0, b"%d" % number, [(str(number), 1)]))) == (2 * number, False)
        lab.run(SECOND)
    assert logger_of(lab).reading.ends().first == 8
    assert position(lab.ask(Release(0, 0, b"1", [("1", 1)]))) == (2, True)
    lab.restart("log")
    lab.run(SECOND)
    again = lab.begin(Release(0, 0, b"3", [("3", 1)]))
    lab.run(SECOND)
    assert position(again[0]) == (6, True)


def test_half_a_batch_is_refused() -> None:
    lab = Asking()
    lab.ask(staged("a", 1, b"2"))
    assert denied(lab.ask(Release(0, 0, b"k", [("a", 2)]))) == (
        "stage",
        "1 of 2 pieces of stage a are not there",
    )
    assert denied(lab.ask(Release(0, 0, b"k", [("b", 1)])))[0] == "stage"
    assert denied(lab.ask(Release(0, 0, b"k", [("a", 0)]))) == ("invalid", "a batch of no pieces")
    assert denied(lab.ask(Release(0, 0, b"k", [("a", 1), ("a", 1)])))[1] == "a stage is named twice"
    assert logged(lab) == []


def test_what_is_staged_is_bounded_and_given_up() -> None:
    lab = Asking(stage_bytes=1000, stage_age=2 * SECOND)
    lab.ask(staged("a", 0, bytes(500)))
    trouble, why = denied(lab.ask(staged("b", 0, bytes(500))))
    assert (trouble, "publish smaller batches" in why) == ("full", True)
    lab.run(SECOND)
    lab.ask(staged("a", 0, bytes(500)))  # asked again: somebody works on it
    lab.run(3 * SECOND // 2)
    assert len(logger_of(lab).books.stages) == 1
    lab.run(SECOND)
    assert (len(logger_of(lab).books.stages), logger_of(lab).books.stages.size) == (0, 0)
    lab.ask(staged("b", 0, bytes(500)))
    lab.restart("log")
    lab.run(SECOND)
    assert len(logger_of(lab).books.stages) == 1, "what was given up stays given up"
    lab.begin(Release(0, 0, b"", [("b", 0)]))
    lab.run(SECOND)
    assert len(logger_of(lab).books.stages) == 0


def test_what_failed_tasks_left_goes_with_the_next_batch() -> None:
    lab = Asking()
    for stage in ("q/1", "q/2", "r/1", "alone"):
        lab.ask(staged(stage, 0, stage.encode()))
    lab.ask(Release(0, 0, b"k", [("q/2", 1)]))
    stages = logger_of(lab).books.stages
    assert [stage for stage in ("q/1", "q/2", "r/1", "alone") if stages.has(stage, 0)] == ["r/1", "alone"]
    lab.restart("log")
    lab.run(SECOND)
    assert (logged(lab), len(logger_of(lab).books.stages)) == ([b"q/2"], 2)


@pytest.mark.parametrize("cache", [0, 1 << 24])
def test_what_was_staged_is_read_back(cache: int) -> None:
    """From the records of pieces, from a log that was written anew, and after a restart, in any order."""
    rng = Random(4)
    lab = Asking(log_cache=cache, rewrite_records=4)
    expected: list[bytes] = []
    waiting: list[tuple[str, list[bytes]]] = []
    for number in range(40):
        payloads = [b"%d-%d" % (number, place) for place in range(rng.randint(1, 9))]
        lab.begin(staged(str(number), 0, *payloads))
        lab.run(400 * MILLISECOND)
        waiting.append((str(number), payloads))
        if rng.random() < 0.6:
            stage, payloads = waiting.pop(rng.randrange(len(waiting)))
            lab.begin(Release(0, 0, stage.encode(), [(stage, 1)]))
            lab.run(400 * MILLISECOND)
            expected += payloads
        if rng.random() < 0.1:
            lab.restart("log")
            lab.run(SECOND)
        assert logged(lab) == expected
    assert len(logger_of(lab).books.stages) == len(waiting)
    lab.run(20 * SECOND)
    assert sorted(lab.got("q")) == sorted(expected)


def test_members_get_large_batches() -> None:
    """More than is multicast at once: they ask for the rest, and take what they can."""
    lab = Asking()
    expected = []
    for number in range(6):
        payloads = [b"%07d" % (500 * number + place) + bytes(1000) for place in range(500)]
        lab.ask(staged("a", number, *payloads))
        expected += payloads
    lab.begin(Release(0, 0, b"k", [("a", 6)]))
    for _ in range(60):
        lab.run(SECOND)
        if all(len(lab.got(name)) == len(expected) for name in "pqr"):
            break
    assert all(lab.got(name) == expected for name in "pqr")
