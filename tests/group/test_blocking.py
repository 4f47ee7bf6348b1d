"""Groups for programs without asyncio: all that a `Group` offers, from any thread."""

import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

import semcast
from semcast import blocking

PATIENCE = 20.0


@pytest.fixture
def pair() -> Iterator[tuple[blocking.BlockingGroup, blocking.BlockingGroup]]:
    name = f"blocking-{uuid4().hex[:8]}"
    with ExitStack() as opened:
        a = opened.enter_context(blocking.join(name, name="a"))
        b = opened.enter_context(blocking.join(name, name="b"))
        assert len(a.wait_for(2, timeout=PATIENCE).members) == 2
        assert len(b.wait_for(2, timeout=PATIENCE).members) == 2
        yield a, b


Pair = tuple[blocking.BlockingGroup, blocking.BlockingGroup]


def payloads(group: blocking.BlockingGroup, count: int) -> list[bytes]:
    """Of the next messages."""
    found: list[bytes] = []
    for event in group.events(timeout=PATIENCE):
        if isinstance(event, semcast.Message):
            found.append(event.payload)
            if len(found) == count:
                break
    return found


def test_every_way_to_send(pair: Pair) -> None:
    a, b = pair
    first = a.send(b"one")
    assert a.try_send(b"two") == semcast.MessageId(a.member, first.seq + 1)
    assert a.send_many([b"three", b"four"]).seq == first.seq + 3
    a.send_items([("x", b"five"), ("y", b"six")])
    confirmed = a.send(b"seven", confirm="safe", timeout=PATIENCE)
    assert set(confirmed.view.members) == {a.member, b.member}
    a.send_many([b"eight"], confirm="delivered")
    with a.transaction() as update:
        update["x"] = b"1"
        update["y"] = b"2"
    *others, last = payloads(b, 9)
    assert others == [b"one", b"two", b"three", b"four", b"five", b"six", b"seven", b"eight"]
    assert semcast.assignments(last) == {"x": b"1", "y": b"2"}


def test_a_transaction_that_raises_sends_nothing(pair: Pair) -> None:
    a, b = pair

    def fail() -> None:
        with a.transaction() as update:
            update["x"] = b"1"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    a.send(b"after")
    assert payloads(b, 1) == [b"after"]


def test_what_is_known_of_it(pair: Pair) -> None:
    a, b = pair
    assert set(a.members()) == {a.member, b.member}
    assert a.address[0] == "127.0.0.1"
    assert a.metrics_address is None
    assert a.stats().member == a.member
    assert a.receipts() == []
    for event in a.events(timeout=PATIENCE):
        if isinstance(event, semcast.ViewChange) and len(event.view.members) == 2:
            break
    assert a.arrived
    assert a.view is not None


def test_lists(pair: Pair) -> None:
    a, b = pair
    a.send_many([b"%d" % number for number in range(1000)])
    found: list[bytes] = []
    for deliveries in b.batches(timeout=PATIENCE):
        for each in deliveries:
            if isinstance(each, semcast.Batch):
                found += each.payloads
        if len(found) == 1000:
            break
    assert found == [b"%d" % number for number in range(1000)]


def test_a_loop_that_was_left_is_taken_up_again(pair: Pair) -> None:
    a, b = pair
    a.send_many([b"%d" % number for number in range(100)])
    assert payloads(b, 30) + payloads(b, 70) == [b"%d" % number for number in range(100)]
    assert not [event for event in b.events(timeout=0.05) if isinstance(event, semcast.Message)]


def test_many_threads_send(pair: Pair) -> None:
    """Numbers are given once, whoever sends."""
    a, b = pair
    ids: list[list[int]] = [[] for _ in range(4)]

    def send(place: int) -> None:
        for number in range(500):
            ids[place].append(a.send(b"%d %d" % (place, number)).seq)

    threads = [threading.Thread(target=send, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    found = payloads(b, 2000)
    for thread in threads:
        thread.join()
    numbers = sorted(seq for each in ids for seq in each)
    assert numbers == list(range(numbers[0], numbers[0] + 2000))
    assert len(set(found)) == 2000
    for place in range(4):
        mine = [payload for payload in found if payload.startswith(b"%d " % place)]
        assert mine == [b"%d %d" % (place, number) for number in range(500)]


def test_more_than_there_is_room_for() -> None:
    """It waits in `send`, and goes on when the group took some."""
    name = f"blocking-{uuid4().hex[:8]}"
    with (
        blocking.join(name, name="a", send_messages=8, receive=False) as a,
        blocking.join(name, name="b") as b,
    ):
        a.wait_for(2, timeout=PATIENCE)
        sender = threading.Thread(target=lambda: [a.send(b"%d" % number) for number in range(2000)])
        sender.start()
        assert payloads(b, 2000) == [b"%d" % number for number in range(2000)]
        sender.join()


def test_answers_from_the_loop_that_reads(pair: Pair) -> None:
    a, b = pair
    answering = threading.Thread(target=lambda: [b.send(b"re " + each) for each in payloads(b, 200)])
    answering.start()
    a.send_many([b"%d" % number for number in range(200)])
    found = [each for each in payloads(a, 400) if each.startswith(b"re ")]
    answering.join()
    assert found == [b"re %d" % number for number in range(200)]


def test_closing_ends_the_loop_of_another_thread(pair: Pair) -> None:
    a, _ = pair
    ended = threading.Event()

    def read() -> None:
        for _ in a.events():
            pass
        ended.set()

    reader = threading.Thread(target=read)
    reader.start()
    a.close()
    assert ended.wait(PATIENCE)
    reader.join()
    assert list(a.events()) == []
    with pytest.raises(semcast.GroupError, match="a group is used once"):
        a.__enter__()
    with pytest.raises(semcast.GroupClosedError):
        a.send(b"late")
    a.close()


def test_before_and_without() -> None:
    group = blocking.join("never opened")
    with pytest.raises(semcast.GroupClosedError, match="use `with`"):
        group.send(b"early")
    with (
        blocking.join(f"blocking-{uuid4().hex[:8]}", receive=False) as mute,
        pytest.raises(semcast.ConfigurationError, match="receive=False"),
    ):
        next(mute.events())
    with pytest.raises(semcast.ConfigurationError, match="did you mean token_loss"):
        blocking.join("g", token_los="1s").__enter__()  # noqa: S106


def test_waiting_for_those_who_do_not_come() -> None:
    with (
        blocking.join(f"blocking-{uuid4().hex[:8]}", name="only") as alone,
        pytest.raises(TimeoutError, match=r"1 of 2 members after 0\.1 s: only"),
    ):
        alone.wait_for(2, timeout=0.1)


PROGRAM = """
import sys
from semcast import blocking
with blocking.join(sys.argv[1]) as group:
    group.leave_on_signals()
    print("ready", flush=True)
    for event in group.events():
        pass
print("left", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_program_that_is_told_to_end_leaves(number: signal.Signals) -> None:
    name = f"blocking-{uuid4().hex[:8]}"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, name], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        program.send_signal(number)
        assert program.stdout.readline() == "left\n"
        assert program.wait(PATIENCE) == 0


UNHEARD = """
import signal, sys, threading, time
import semcast
from semcast import blocking

def tell():
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

with blocking.join(sys.argv[1]) as group:
    group.leave_on_signals()
    threading.Thread(target=tell).start()
    if sys.argv[2] == "reads":
        for event in group.events():
            pass
    else:
        try:
            group.wait_for(2)
        except semcast.GroupClosedError:
            pass
print("left", flush=True)
"""


@pytest.mark.parametrize("how", ["reads", "waits"])
def test_a_signal_that_does_not_wake_the_main_thread_is_heard_soon(how: str) -> None:
    """So it is with one that comes while the thread falls asleep."""
    done = subprocess.run(
        [sys.executable, "-c", UNHEARD, f"blocking-{uuid4().hex[:8]}", how],
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "left\n"


def test_a_signal_ends_all_groups_of_a_program_and_nothing_afterwards() -> None:
    """One group was closed before, and in another thread; when all are, signals do what they did before."""
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    name = f"blocking-{uuid4().hex[:8]}"
    try:
        with (
            blocking.join(f"{name} 1") as first,
            blocking.join(f"{name} 2") as second,
            blocking.join(f"{name} 3") as third,
        ):
            for each in (first, second, third):
                each.leave_on_signals(signal.SIGUSR1)
            closing = threading.Thread(target=third.close)
            closing.start()
            closing.join(PATIENCE)
            os.kill(os.getpid(), signal.SIGUSR1)
            for each in (first, second):
                for _ in each.events():
                    pass
        assert not heard
        os.kill(os.getpid(), signal.SIGUSR1)
        assert heard == [signal.SIGUSR1]
        with blocking.join(name) as again:
            again.leave_on_signals(signal.SIGUSR1)
            closing = threading.Thread(target=again.close)
            closing.start()
            closing.join(PATIENCE)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert heard == [signal.SIGUSR1] * 2
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_nothing_that_a_group_offers_is_missing() -> None:
    """A reminder: whoever adds to `Group` adds here."""
    inside = {"poll", "is_over", "dealt_with", "called_by", "has_room", "settings", "wake_by"}
    inside |= {"offer", "when_unblocked"}  # for `semcast.live`, which is made of coroutines
    # for what is built on top of a group: `semcast.blocking.replicate`
    inside |= {"stack", "command", "folder", "disk", "discard", "when_over"}
    inside |= {"iterating", "run_handlers", "finish_call"}  # for this one
    offered = {name for name, _ in inspect.getmembers(semcast.Group) if not name.startswith("_")}
    ours = {name for name, _ in inspect.getmembers(blocking.BlockingGroup) if not name.startswith("_")}
    assert offered - inside <= ours
    for name in sorted(offered & ours):
        theirs = getattr(semcast.Group, name)
        if inspect.isfunction(theirs):
            wanted = set(inspect.signature(theirs).parameters)
            assert wanted <= set(inspect.signature(getattr(blocking.BlockingGroup, name)).parameters), name
