"""The table of `semcast bench --compare`, and how a member counts."""

from io import StringIO

from rich.console import Console

from semcast.bench.compare import Missing, Standing
from semcast.bench.compare.work import Counter, Task, hello, stamped
from semcast.cli.bench import comparison

HUB = Standing("hub", "total", 1000.0, 500.0, 600.0, 100.0, 200.0, 2.0, whole=True)
RING = Standing("ring", "total", 1300.0, 500.0, 300.0, 150.0, 400.0, 1.5, whole=False)


def shown(*found: Standing | Missing) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(comparison(found))
    return console.export_text()


def test_each_stands_beside_the_first() -> None:
    text = shown(HUB, Missing("pyzmq", "zmq"), RING)
    assert "1,300 (1.30)" in text
    assert "300 (0.50)" in text
    assert "150 / 400 (1.50)" in text
    assert "not installed: zmq" in text
    assert "ring (lost messages)" in text
    assert "hub (lost messages)" not in text


def counted(*payloads: bytes) -> tuple[Counter, bool]:
    counter = Counter(0, 2)
    counter.begin(7, timed=True)
    for payload in payloads:
        counter.take(payload)
    return counter, counter.watch(Task(number=7, size=64, begin=0, end=1)).in_order


def test_a_member_counts_messages_of_the_task_in_the_order_of_their_sender() -> None:
    assert counted(stamped(7, 1, 0, b""), stamped(7, 0, 0, b""), stamped(7, 1, 1, b""))[1]
    assert counted(stamped(6, 1, 5, b""), hello(1), stamped(7, 1, 0, b""))[1]
    assert not counted(stamped(7, 1, 0, b""), stamped(7, 1, 2, b""))[1]
    assert not counted(stamped(7, 1, 0, b""), stamped(7, 1, 0, b""))[1]


def test_a_member_hears_of_others_before_the_first_task() -> None:
    counter = Counter(0, 2)
    counter.take(hello(1))
    assert counter.heard == {1}
