"""Sizes of datagrams on each way: only what was proved is used."""

from itertools import count

from semcast.core.ids import SECOND, Nanos
from semcast.net.addresses import Address
from semcast.net.paths import COMMON, SMALLEST, Paths

HERE: Address = ("192.0.2.1", 5000)


class Way:
    """A network that carries so much and no more, and answers."""

    def __init__(self, full: int = 1400) -> None:
        self.paths = Paths(full, count(1).__next__)
        self.carries = full
        self.probed = 0

    def run(self, start: Nanos, stop: Nanos) -> None:
        """Housekeeping once a second."""
        for now in range(start, stop, SECOND):
            waiting = self.paths.probes(now, [HERE])
            while waiting:
                address, number, size = waiting.pop()
                self.probed += 1
                if size <= self.carries:
                    waiting += self.paths.answered(now, address, number)


def test_a_way_begins_small_and_grows_with_the_first_answers() -> None:
    way = Way()
    assert way.paths.size(HERE) == SMALLEST
    way.run(0, 1)
    assert way.paths.size(HERE) == 1400


def test_what_is_too_large_is_never_used() -> None:
    for carries, size in ((499, SMALLEST), (1199, SMALLEST), (1200, COMMON), (1399, COMMON), (1400, 1400)):
        way = Way()
        way.carries = carries
        way.run(0, 20 * SECOND)
        assert way.paths.size(HERE) == size


def test_a_way_that_becomes_narrow_is_noticed_and_so_is_the_reverse() -> None:
    way = Way()
    way.run(0, 10 * SECOND)
    way.carries = 1300
    way.run(10 * SECOND, 16 * SECOND)
    assert way.paths.size(HERE) == COMMON
    way.carries = 9000
    way.run(16 * SECOND, 20 * SECOND)
    assert way.paths.size(HERE) == 1400


def test_few_probes_travel() -> None:
    way = Way()
    way.run(0, 100 * SECOND)
    assert way.probed <= 60


def test_two_answers_may_be_lost() -> None:
    way = Way()
    way.run(0, 10 * SECOND)
    way.carries = 0
    way.run(10 * SECOND, 13 * SECOND)
    way.carries = 1400
    assert way.paths.size(HERE) == 1400
    way.run(13 * SECOND, 100 * SECOND)
    assert way.paths.size(HERE) == 1400


def test_what_this_host_refuses_is_small_at_once() -> None:
    way = Way()
    way.run(0, 10 * SECOND)
    way.paths.refused(HERE)
    assert way.paths.size(HERE) == SMALLEST


def test_answers_that_nobody_asked_for_prove_nothing() -> None:
    way = Way()
    way.paths.probes(0, [HERE])
    assert way.paths.answered(1, HERE, 12345) == []
    assert way.paths.answered(1, ("192.0.2.9", 1), 1) == []
    assert way.paths.size(HERE) == SMALLEST


def test_memory_is_bounded_and_those_who_went_are_forgotten() -> None:
    paths = Paths(1400, count(1).__next__)
    paths.probes(0, [("192.0.2.1", port) for port in range(5000)])
    assert len(paths._paths) <= 1024
    paths.keep([])
    assert not paths._paths


def test_for_all_at_once_it_is_the_smallest_of_all() -> None:
    way = Way()
    way.run(0, 1)
    assert way.paths.least([]) == SMALLEST
    assert way.paths.least([HERE]) == 1400
    assert way.paths.least([HERE, ("192.0.2.9", 1)]) == SMALLEST
