"""Replicated state through crashes, partitions, joins and slow members."""

from bisect import bisect_right, insort
from random import Random
from typing import Any

import pytest
from tests.patterns.patternlab import Application, BrokenError, Group, draw, hunt, survey

from semcast.core import Batch, Delivery, Enumeration, KEnumeration, ViewChange
from semcast.core.events import StateReceived
from semcast.obsolescence import OperationTracker
from semcast.patterns import ReplicatedState
from semcast.patterns.operations import WriterState
from semcast.protocols.vsync import Order, VirtualSynchrony
from semcast.protocols.vsync.numbers import Numbers

ITEMS = ("a", "b", "c", "d", "e")
State = dict[str, int]


class Log:
    """What one writer did, by number: operations, and the state after each."""

    def __init__(self) -> None:
        self.operations: dict[int, tuple[str, ...]] = {}
        self.states: dict[int, State] = {0: {}}
        self.touching: dict[str, list[int]] = {item: [] for item in ITEMS}

    def write(self, number: int, items: tuple[str, ...], state: State) -> None:
        self.operations[number] = items
        self.states[number] = state
        for item in items:
            insort(self.touching[item], number)

    def cut(self, last: int) -> None:
        """Nobody got what was written after that: it never happened."""
        for number in [number for number in self.operations if number > last]:
            for item in self.operations.pop(number):
                self.touching[item].remove(number)
            del self.states[number]

    def check_whole(self, state: State) -> None:
        """An operation that some item shows, or a later one, is shown by all of its items."""
        last = max(state.values(), default=0)
        for item, touching in self.touching.items():
            behind = touching[bisect_right(touching, state.get(item, 0)) : bisect_right(touching, last)]
            for number in behind:
                if any(state.get(other, 0) >= number for other in self.operations[number]):
                    raise BrokenError(f"operation {number} is half visible in {state}")

    def check_had(self, state: State) -> None:
        """The writer was in this very state."""
        if self.states.get(max(state.values(), default=0)) != state:
            raise BrokenError(f"the writer never had {state}")


class Books:
    """What all applications of a run know together."""

    def __init__(self) -> None:
        self.logs: dict[str, Log] = {}
        self.at_view: dict[int, dict[str, State]] = {}


class Writes(Application):
    def __init__(self, pattern: ReplicatedState, rng: Random, books: Books) -> None:
        super().__init__(pattern)
        self.pattern = pattern
        self._rng = rng
        self._books = books
        self._log = books.logs.setdefault(pattern.me.name, Log())
        self._number = pattern.me.incarnation * 100_000

    def act(self) -> None:
        pattern = self.pattern
        if pattern.view is None and pattern.me.incarnation:
            return  # its items are still to come
        self._number += 1
        several = self._rng.random() < 0.6
        items = tuple(self._rng.sample(ITEMS, self._rng.randint(2, 3) if several else 1))
        value = b"%d" % self._number + b" " * self._rng.choice((0, 0, 0, 300))  # some are cut into pieces
        pattern.operation(dict.fromkeys(items, value))
        self._log.write(self._number, items, read(pattern, pattern.me.name, own=True))

    def look(self, each: Delivery) -> None:
        if isinstance(each, Batch):
            writer = each.sender.name
            self._books.logs[writer].check_whole(read(self.pattern, writer))
        elif isinstance(each, StateReceived):
            self._log.cut(max(read(self.pattern, self.pattern.me.name).values(), default=0))
        elif isinstance(each, ViewChange):
            states = {writer: read(self.pattern, writer) for writer in self.pattern.writers()}
            for writer, state in states.items():
                self._books.logs[writer].check_had(state)
            if self._books.at_view.setdefault(each.view.id, states) != states:
                raise BrokenError(f"states differ at view {each.view.id}")


def read(pattern: ReplicatedState, writer: str, *, own: bool = False) -> State:
    return {item: int(value) for item, value in (pattern.of if own else pattern.seen)(writer).items()}


def run(
    seed: int,
    kind: type[ReplicatedState] = ReplicatedState,
    stack: type[VirtualSynchrony] = VirtualSynchrony,
) -> Group[Writes]:
    books = Books()
    k = Random(seed).choice((6, 20, 100))
    scenario = draw(seed, (Order.FIFO, Order.CAUSAL)[seed % 2])
    group = Group(scenario, lambda me, rng: Writes(kind(me, k), rng, books), stack)
    assert group.run(), "it never came to rest"
    for seat in group.together:
        writer = seat.application.pattern.me.name
        written = read(seat.application.pattern, writer, own=True)
        for other in group.together:
            if read(other.application.pattern, writer) != written:
                raise BrokenError(f"{other.application.pattern.me} lacks what {writer} wrote")
    return group


class PrintedTracker(OperationTracker):
    """The server of figure 3.8 as printed: the shift of line 10 puts the map of a commit off by one."""

    def commit_tag(self) -> KEnumeration:
        tag = super().commit_tag()
        return KEnumeration(tag.base, tag.bitmap << 1)


class PrintedServer(ReplicatedState):
    tracker = PrintedTracker


class Trusting(WriterState):
    """Applies what it has at each commit, as figure 3.8 does, without counting."""

    def complete(self, total: int) -> bool:
        return True


class TrustingObserver(ReplicatedState):
    replica = Trusting


class Literal(Numbers):
    def translated(self, annotation: Enumeration | KEnumeration) -> Enumeration | KEnumeration:
        return annotation


class Untranslated(VirtualSynchrony):
    """Does not care which numbers messages got: those that were cut took several."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._numbers = Literal(self.me, 1000)


def test_replicas_show_states_the_writer_had() -> None:
    """At every view and at the end; and never half of an operation, at any time."""
    found = survey(run, range(5))
    assert found.purged >= 4
    assert found.whole >= 4
    assert found.joined >= 2


@pytest.mark.parametrize(
    ("kind", "sight"),
    [
        (PrintedServer, "never had|lacks"),
        (TrustingObserver, "half visible"),
    ],
)
def test_mutants_are_caught(kind: type[ReplicatedState], sight: str) -> None:
    with pytest.raises(BrokenError, match=sight):
        hunt(lambda seed: run(seed, kind), range(20))


def test_annotations_must_be_translated_to_the_numbers_of_the_stack() -> None:
    with pytest.raises(BrokenError, match=r"never had|lacks|half visible"):
        hunt(lambda seed: run(seed, stack=Untranslated), range(20))
