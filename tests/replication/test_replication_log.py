"""The log: wherever a crash cuts it, the books say something that was true."""

from tests.replication.world import World, ask, deliver_all, founded, put, send_all

from semcast.core.outbox import Sync
from semcast.replication.books import Books
from semcast.replication.journal import Journal
from semcast.replication.records import decode
from semcast.replication.settings import Durability


def busy() -> World:
    """A group with some actions, of clients and without, that all have on their disks."""
    world = founded(3, limits={"line_every": 1, "trim_every": 1})
    for number, name in enumerate(("a1", "b1", "c1", "a1"), 1):
        ask(world, name, "k", number)
        put(world, name)
    assert world.go(world.nodes, 9000, lambda: all(node.machine.white == 8 for node in world.nodes.values()))
    return world


def read(records: list[bytes]) -> Books:
    books = Books()
    books.replay(map(decode, records))
    return books


def test_a_log_that_begins_anew_says_the_same() -> None:
    node = busy().nodes["a1"]
    before = node.machine.books
    line, digest = before.colours.line, before.colours.digest
    node.machine.collect(5)
    node.drain()
    start = before.colours.start
    assert 0 < start <= 5
    for keep in range(node.anew, len(node.records) + 1):
        books = read(node.records[:keep])
        assert (books.colours.line, books.colours.digest) == (line, digest), keep
        assert books.colours.start == (start if keep == len(node.records) else 0)
    alone = read(node.records[node.anew :])
    assert (alone.colours.line, alone.colours.digest, alone.colours.start) == (line, digest, start)
    assert alone.requests.written() == before.requests.written()
    assert alone.members.written() == before.members.written()
    assert [run.id for _, run in alone.colours.after(start)] == [
        run.id for _, run in before.colours.after(start)
    ]


def test_any_prefix_of_a_log_can_be_read() -> None:
    node = busy().nodes["b1"]
    lines = [read(node.records[:keep]).colours.line for keep in range(len(node.records) + 1)]
    assert lines == sorted(lines)
    assert lines[-1] == 8


def test_no_sync_is_on_the_path_of_deliveries() -> None:
    """Actions turn green as they are delivered, with no sync done; one sync covers all of them (Q1)."""
    world = founded(3)
    for node in world.nodes.values():
        node.sync_all()
    for _ in range(20):
        put(world, "a1")
    send_all(world, "a1")
    node = world.nodes["b1"]
    deliver_all(world, "b1")
    assert node.line == 20
    assert node.machine.journal.durable.line == 0
    assert len(node.syncs) == 1
    node.sync_all()
    assert node.machine.journal.durable.line == 20


def test_a_run_without_changes_of_configuration_has_no_states_and_no_cpc() -> None:
    world = founded(3)
    said = [len(conf.log) for conf in {world.of[name] for name in world.nodes} if conf is not None]
    put(world, "a1")
    world.go(world.nodes, 3000)
    assert [len(conf.log) for conf in {world.of[name] for name in world.nodes} if conf is not None] == [
        count + 1 for count in said
    ]


def test_in_mode_memory_answers_come_at_once() -> None:
    world = founded(3, limits={"durability": Durability.MEMORY})
    put(world, "a1", ticket=1)
    put(world, "a1", ticket=2, level="queued")
    send_all(world, "a1")
    assert [(answer.ticket, answer.level) for _, answer in world.answers] == [(2, "queued")]
    deliver_all(world, "a1")
    assert [(answer.ticket, answer.position) for _, answer in world.answers] == [(2, 0), (1, 1)]


def test_a_sync_that_is_done_answers_all_before_it() -> None:
    node = busy().nodes["c1"]
    journal = Journal(node.machine.books, node.machine.out)
    done: list[int] = []
    for number in (1, 2, 3):
        journal.sync(lambda number=number: done.append(number))  # type: ignore[misc]
    assert [each.ticket for each in node.machine.out.writes if isinstance(each, Sync)] == [1, 2, 3]
    journal.on_synced(2)
    assert done == [1, 2]
