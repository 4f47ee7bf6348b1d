"""Messages of a log are on disk, and in memory only as far as the cache goes (docs/decisions/0011)."""

from array import array
from random import Random

from tests.protocols.gossiplab import GossipLab

from semcast.core import Item, MemberId
from semcast.core.ids import MILLISECOND, SECOND
from semcast.core.messages import Batch, batch_of
from semcast.protocols.gossip import Logger
from semcast.protocols.gossip.records import Published, Stored, StoredRun, encode
from semcast.protocols.gossip.shelf import Cache, Shelf

P = MemberId("p")


class Disk:
    """Records by position, of which some are synced."""

    def __init__(self) -> None:
        self.records: dict[int, bytes] = {}
        self.synced = 0
        self.reads = 0

    def read(self, first: int, most: int) -> list[bytes]:
        self.reads += 1
        found: list[bytes] = []
        while first in self.records and first < self.synced and (not found or most > 0):
            found.append(self.records[first])
            most -= len(self.records[first])
            first += 1
        return found


class Desk:
    """A shelf on a disk."""

    def __init__(self, most: int) -> None:
        self.disk, self.cache = Disk(), Cache(most)
        self.cache.read = self.disk.read
        self.shelf = Shelf(P, self.cache, lambda _sender: self.shelf)
        self.next = 0

    def store(self, batch: Batch) -> None:
        self.shelf.put(batch)
        self.disk.records[self.next] = encode(
            StoredRun(P, batch.first, batch.payloads)
            if len(batch.payloads) > 1
            else Stored(P, batch.first, batch.payloads[0])
        )
        self.shelf.place(batch.first, batch.last, self.next)
        self.next += 1

    def sync(self) -> None:
        self.disk.synced = self.cache.synced = self.next

    @property
    def in_memory(self) -> int:
        return sum(len(batch.payloads[0]) + 300 for batch in self.shelf._held.values())


def test_what_is_synced_leaves_memory_and_is_read_back() -> None:
    desk = Desk(32_000)
    for number in range(100):
        desk.store(batch_of(P, 1 + number * 10, [b"%098d" % (number * 10 + k) for k in range(10)]))
        if number == 49:
            assert desk.in_memory == 50 * 3980, "nothing is synced yet"
        if number >= 49:
            desk.sync()
    assert desk.in_memory <= 32_000 + 3980
    assert desk.cache.size == desk.in_memory
    assert len(desk.shelf) == 1000
    assert [int(batch.payloads[0]) for batch in desk.shelf.values()] == list(range(1000))
    assert desk.disk.reads <= 100, "the next ones are read ahead"
    assert desk.cache.size == desk.in_memory <= 32_000 + 3980


def test_any_order_of_coming_and_going_gives_what_is_there() -> None:
    """Against a dictionary."""
    rng = Random(7)
    desk, model = Desk(200), dict[int, bytes]()
    for _ in range(3000):
        what, seq = rng.random(), rng.randint(1, 400)
        if what < 0.4:
            run = [b"%d" % rng.randrange(10**9) for _ in range(rng.randint(1, 5))]
            fresh = [n for n in range(seq, seq + len(run)) if n in model]
            if not fresh:
                desk.store(batch_of(P, seq, run))
                model.update(enumerate(run, seq))
        elif what < 0.6:
            gone = desk.shelf.pop(seq)
            assert (gone is None) is (seq not in model)
            assert gone is None or gone[0] == len(model.pop(seq))
        elif what < 0.7:
            desk.sync()
        else:
            found = desk.shelf.get(seq)
            assert (None if found is None else found.payloads[0]) == model.get(seq)
            assert (seq in desk.shelf) is (seq in model)
            assert desk.shelf.size_of(seq) == (len(model[seq]) if seq in model else None)
    assert sorted(desk.shelf) == sorted(model)
    assert len(desk.shelf) == len(model)
    desk.sync()
    desk.store(batch_of(P, 1000, [b""]))
    assert desk.cache.size == desk.in_memory <= 200 + 500


def test_blocks_of_which_nothing_is_left_take_nothing() -> None:
    desk = Desk(0)
    desk.store(batch_of(P, 1, [b"x"] * 1000))
    for seq in range(1, 1001):
        desk.shelf.pop(seq)
    assert not desk.shelf._blocks
    assert desk.cache.size == 0


def test_records_that_were_written_anew_are_found_before_and_after_the_sync() -> None:
    desk = Desk(0)
    desk.store(batch_of(P, 1, [b"a", b"b", b"c"]))
    desk.sync()
    desk.shelf.pop(2)
    moved = sorted(desk.shelf)
    for seq, payload in ((1, b"a"), (3, b"c")):
        desk.disk.records[desk.next] = encode(Stored(P, seq, payload))
        desk.next += 1
    desk.shelf.move(array("Q", moved), 1)
    assert desk.shelf[3].payloads == [b"c"]
    desk.sync()
    del desk.disk.records[0]
    assert desk.shelf[1].payloads == [b"a"]
    desk.shelf.settle()
    assert [batch.payloads[0] for batch in desk.shelf.values()] == [b"a", b"c"]


def test_messages_of_a_batch_with_a_key_are_read_back_one_by_one() -> None:
    desk = Desk(0)
    desk.shelf.put(batch_of(P, 1, [b"a"], Item("x")))
    desk.shelf.put(batch_of(P, 2, [b"b"]))
    desk.disk.records[0] = encode(Published(b"k", P, 1, [(b"a", None), (b"b", None)]))
    desk.shelf.place(1, 2, 0)
    desk.next = 1
    desk.sync()
    desk.store(batch_of(P, 3, [b"c"]))
    assert desk.shelf[2].payloads == [b"b"]
    assert desk.shelf.note(1) == Item("x")


def logger_of(lab: GossipLab) -> Logger:
    stack = lab.seats["log"].stack
    assert isinstance(stack, Logger)
    return stack


def test_a_logger_without_a_cache_serves_from_its_disk() -> None:
    """Late joiners, restarts, rewritten logs, and what was published."""
    lab = GossipLab(log_cache=0, rewrite_records=0, start="all")
    lab.run(100 * MILLISECOND)
    lab.seats["r"].crash()
    sent = []
    for number in range(30):
        sent.append(b"%d" % number)
        lab.seats["p"].multicast(sent[-1])
        lab.update("p", b"%d!" % number)
        lab.run(10 * MILLISECOND)
    lab.seats["log"].call(lambda _stack, now: logger_of(lab).publish(now, b"k", [b"u", b"v"], [None, None]))
    lab.run(SECOND)
    stream = logger_of(lab).books.streams[MemberId("p")]
    assert len(stream.messages) == 31
    assert len(stream.messages._held) <= 1
    lab.restart("log")
    lab.run(100 * MILLISECOND)
    lab.restart("r")
    lab.run(2 * SECOND)
    given = lab.got("r")
    assert [each for each in given if b"!" not in each and each not in (b"u", b"v")] == sent
    assert given.count(b"u") == given.count(b"v") == 1
    page = logger_of(lab).reading.read(0, 1000)
    assert len(page.entries) == 33
