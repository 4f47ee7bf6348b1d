"""A replicated state machine through crashes, partitions, joins and slow members: reads are exact."""

from functools import cached_property
from random import Random

import msgspec
import pytest
from tests.patterns.patternlab import Application, BrokenError, Group, Seat, draw, hunt, survey

from semcast.core import Delivery, KEnumeration, Nanos, ViewChange
from semcast.core.messages import Batch
from semcast.obsolescence import ReadWriteTracker
from semcast.patterns import StateMachine
from semcast.patterns.machine import Get, Reply, Update
from semcast.protocols.vsync import Order, VirtualSynchrony
from semcast.protocols.vsync.frames import Welcome
from semcast.protocols.vsync.stream import ViewStream

ITEMS = ("a", "b", "c")
State = dict[str, bytes]
Place = tuple[int, int]
"""View and position."""

_read = msgspec.msgpack.Decoder(Update | Get | Reply).decode


class LinedUp(ViewStream):
    """Remembers the total order as it is decided, whatever is purged then."""

    @cached_property
    def log(self) -> list[tuple[int, bytes]]:
        return []

    def append(self, batch: Batch) -> None:
        super().append(batch)
        if not self.order.is_command(batch):
            self.log.extend((message.order or 0, message.payload) for message in batch.messages())


class Remembering(VirtualSynchrony):
    view_stream = LinedUp

    @cached_property
    def streams(self) -> list[LinedUp]:
        return []

    def _begin(self, now: Nanos, welcome: Welcome, event: ViewChange) -> None:
        super()._begin(now, welcome, event)
        assert isinstance(self.stream, LinedUp)
        self.streams.append(self.stream)


class Reads(Application):
    def __init__(self, pattern: StateMachine, rng: Random) -> None:
        super().__init__(pattern)
        self.pattern = pattern
        self.asked = 0
        self.answered = 0
        self.seen: list[tuple[Place, str, bytes | None]] = []
        """What each read, of whomever, would get here."""
        self.begun: dict[int, State] = {}
        """The state at the beginning of each view."""
        self._rng = rng
        self._written = 0

    def act(self) -> None:
        item = self._rng.choice(ITEMS)
        if self._rng.random() < 0.25:
            self.asked += 1
            self.pattern.read(item)
        else:
            self._written += 1
            self.pattern.update(item, f"{self.pattern.me}-{self._written}".encode())

    def look(self, each: Delivery) -> None:
        self.answered += len(self.pattern.take_answers())
        assert self.pattern.view is not None or not isinstance(each, Batch | ViewChange)
        if isinstance(each, ViewChange):
            self.begun[each.view.id] = dict(self.pattern.state)
        elif isinstance(each, Batch) and self.pattern.view is not None:
            for message in each.messages():
                record = _read(message.payload)
                if isinstance(record, Get):
                    place = (self.pattern.view.id, message.order or 0)
                    self.seen.append((place, record.item, self.pattern.state.get(record.item)))


def bound_views(group: Group[Reads], seat: Seat[Reads]) -> set[int]:
    """The views that a member went on from, or is in when all is over: what holds there holds for all."""
    assert isinstance(seat.stack, Remembering)
    views = [stream.view().id for stream in seat.stack.streams]
    return set(views if seat in group.together else views[:-1])


def replay(group: Group[Reads]) -> tuple[dict[Place, bytes | None], dict[int, State]]:
    """Every read answered in sequence, and the state at the beginning of each view."""
    order: dict[Place, bytes] = {}
    for seat in group.seats:
        assert isinstance(seat.stack, Remembering)
        bound = bound_views(group, seat)
        for stream in seat.stack.streams:
            if stream.view().id in bound:
                for position, payload in stream.log:
                    if order.setdefault((stream.view().id, position), payload) != payload:
                        raise BrokenError(f"two messages at {position}")
    state: State = {}
    reads: dict[Place, bytes | None] = {}
    begun: dict[int, State] = {1: {}}
    for place in sorted(order):
        for view in range(max(begun) + 1, place[0] + 1):
            begun[view] = dict(state)
        record = _read(order[place])
        if isinstance(record, Update) and record.value is not None:
            state[record.item] = record.value
        elif isinstance(record, Get):
            reads[place] = state.get(record.item)
    begun[max(begun) + 1] = state
    return reads, begun


def run(seed: int, kind: type[StateMachine] = StateMachine) -> Group[Reads]:
    k, notes = Random(seed).choice(((8, 4), (30, 0), (200, 10)))
    group = Group(draw(seed, Order.TOTAL), lambda me, rng: Reads(kind(me, k, notes), rng), Remembering)
    assert group.run(), "it never came to rest"
    reads, begun = replay(group)
    for seat in group.seats:
        judge(seat.application, bound_views(group, seat), reads, begun)
    for seat in group.together:
        if seat.application.answered != seat.application.asked:
            raise BrokenError(f"{seat.stack.me} waits for answers")
        if dict(seat.application.pattern.state) != begun[max(begun)]:
            raise BrokenError(f"the state of {seat.stack.me} differs at the end")
    return group


def judge(
    application: Reads, views: set[int], reads: dict[Place, bytes | None], begun: dict[int, State]
) -> None:
    me = application.pattern.me
    for place, item, value in application.seen:
        if place[0] in views and value != reads[place]:
            raise BrokenError(f"{me} read {item} = {value!r} at {place}, and not {reads[place]!r}")
    for view, state in application.begun.items():
        if state != begun.get(view, begun[max(begun)]):
            raise BrokenError(f"the state of {me} differs at view {view}")


class Careless(ReadWriteTracker):
    """A read does not protect what it read."""

    def read(self, item: str) -> None:
        pass


class Counting(ReadWriteTracker):
    """Takes the deliveries here for the positions of the total order."""

    def on_update(self, item: str, at: int | None = None) -> None:
        super().on_update(item)

    def on_get(self, item: str, at: int | None = None) -> KEnumeration:
        return super().on_get(item)

    def on_reply(self, at: int | None = None) -> None:
        super().on_reply()


class CarelessMachine(StateMachine):
    tracker = Careless


class CountingMachine(StateMachine):
    tracker = Counting


def test_reads_are_exact_everywhere() -> None:
    """They equal a replay of the total order, at members that are slow, that join, and that purge."""
    found = survey(run, range(5))
    assert found.purged >= 4
    assert found.whole >= 4
    assert found.joined >= 2


@pytest.mark.parametrize("kind", [CarelessMachine, CountingMachine])
def test_mutants_are_caught(kind: type[StateMachine]) -> None:
    with pytest.raises(BrokenError, match="read"):
        hunt(lambda seed: run(seed, kind), range(2, 20))
