"""Primary and backups through crashes, partitions, joins and slow members."""

from collections.abc import Mapping
from random import Random

import msgspec
import pytest
from tests.patterns.patternlab import Application, BrokenError, Group, draw, hunt, survey

from semcast.core import Delivery, MemberId, Nanos, ViewChange
from semcast.patterns import Executed, PrimaryBackup
from semcast.protocols.vsync import Order, VirtualSynchrony

COUNT = "count"
State = frozenset[tuple[str, bytes]]


class Books:
    """What all applications of a run know together."""

    def __init__(self) -> None:
        self.had: set[State] = {frozenset()}
        self.at_view: dict[int, tuple[State, bytes]] = {}


class Counts(Application):
    """Each request counts one up for its client, and the count of all in the same operation."""

    def __init__(self, me: MemberId, rng: Random, books: Books, k: int) -> None:
        self.pattern = PrimaryBackup(me, self.execute, k, window=rng.choice((1, 4, 8)))
        super().__init__(self.pattern)
        self.requests = 0
        self.answered = 0
        self.takeovers = 0
        self._books = books
        self._primary = False

    def execute(self, state: Mapping[str, bytes], request: bytes) -> Executed:
        client = request.decode()
        number = int(state.get(client, b"0")) + 1
        changes = {COUNT: b"%d" % (int(state.get(COUNT, b"0")) + 1), client: b"%d" % number}
        self._books.had.add(frozenset((dict(state) | changes).items()))
        return Executed(changes, b"%d" % number)

    def act(self) -> None:
        self.requests += 1
        self.pattern.request(str(self.pattern.me).encode())

    def look(self, each: Delivery) -> None:
        state = {item: int(value) for item, value in self.pattern.state.items()}
        if sum(state.values()) != 2 * state.get(COUNT, 0):
            raise BrokenError(f"an operation is half visible in {state}")
        for answer in self.pattern.take_answers():
            self.answered += 1
            if answer.reply != b"%d" % answer.number or answer.number != self.answered:
                raise BrokenError(f"request {answer.number} was not executed once, in turn: {answer.reply!r}")
        if isinstance(each, ViewChange):
            self._check_view(each)

    def _check_view(self, change: ViewChange) -> None:
        state = frozenset(self.pattern.state.items())
        if state not in self._books.had:
            raise BrokenError(f"no primary ever had {sorted(state)}")
        restored = msgspec.msgpack.decode(self.pattern.export())
        rest = msgspec.msgpack.encode([sorted(each.items()) for each in restored[1:]])
        if self._books.at_view.setdefault(change.view.id, (state, rest)) != (state, rest):
            raise BrokenError(f"states differ at view {change.view.id}")
        first = self.pattern.primary == self.pattern.me
        self.takeovers += first and not self._primary and change.view.id > 1
        self._primary = first


class Hasty(Counts):
    """Takes over as soon as its stack is in the next view, before it is given the rest of the last."""

    def go_on(self, now: Nanos, stack: VirtualSynchrony) -> None:
        view = stack.view()
        if self.pattern.view is not None and view.id > self.pattern.view.id and view.members[0] == stack.me:
            self.on_delivery(ViewChange(view))
        super().go_on(now, stack)

    def on_delivery(self, each: Delivery) -> None:
        known = 0 if self.pattern.view is None else self.pattern.view.id
        if not isinstance(each, ViewChange) or each.view.id > known:
            super().on_delivery(each)


def run(seed: int, kind: type[Counts] = Counts) -> Group[Counts]:
    books = Books()
    k = Random(seed).choice((6, 20, 100))
    scenario = draw(seed, (Order.FIFO, Order.CAUSAL)[seed % 2])
    group = Group(scenario, lambda me, rng: kind(me, rng, books, k))
    assert group.run(), "it never came to rest"
    states = set()
    for seat in group.together:
        application = seat.application
        states.add(frozenset(application.pattern.state.items()))
        if application.answered != application.requests:
            raise BrokenError(f"{application.pattern.me} waits for answers")
    if len(states) > 1 or not states <= books.had:
        raise BrokenError("the states at the end differ")
    return group


def test_who_takes_over_has_a_state_that_the_primary_had() -> None:
    """And so has everybody at every view and at the end; requests are executed once, whoever fails."""
    takeovers = []

    def watched(seed: int) -> Group[Counts]:
        group = run(seed)
        takeovers.append(sum(seat.application.takeovers for seat in group.seats))
        return group

    found = survey(watched, range(1, 5))
    assert found.purged >= 3
    assert found.whole >= 3
    assert found.joined >= 2
    assert sum(takeovers) >= 2


def test_taking_over_too_early_is_caught() -> None:
    with pytest.raises(BrokenError, match=r"states differ|never had|waits|executed once"):
        hunt(lambda seed: run(seed, Hasty), range(20))
