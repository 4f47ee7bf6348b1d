"""A bench on which a test moves frames between S-RM members by hand."""

from collections.abc import Callable, Sequence
from random import Random

import pytest

from semcast.core import Annotation, Batch, Event, Frame, MemberId, Nanos, Outbox, Purged
from semcast.core.ids import MILLISECOND
from semcast.lab import Keeper
from semcast.lab import Lab as Bench
from semcast.protocols.semantic import SemanticMulticast, Settings
from semcast.protocols.semantic.exchange import SrmTimer


class Lab:
    """Members by name; frames wait on the wire until the test carries or drops them, timers for the test."""

    def __init__(
        self, names: str, settings: Settings, kind: type[SemanticMulticast] = SemanticMulticast
    ) -> None:
        self.ids = {name: MemberId(name) for name in names}
        self.bench = Bench()
        self.members: dict[str, SemanticMulticast] = {}
        self.events: dict[str, list[Event]] = {}
        self._keepers = {name: Keeper() for name in names}
        for name, member in self.ids.items():
            stack = kind(member, list(self.ids.values()), settings, Random(name), Outbox())
            seat = self.bench.add(member, stack, self._keepers[name])
            seat.reads = False
            self.members[name], self.events[name] = stack, seat.events
        self.bench.start()
        for events in self.events.values():
            events.clear()

    @property
    def now(self) -> Nanos:
        return self.bench.now

    @property
    def wire(self) -> list[tuple[str, str, Frame]]:
        """What waits there: from whom, to whom."""
        return [(each.source.name, each.dest, frame) for each in self.bench.wire for frame in each.frames]

    def multicast(self, name: str, payload: bytes, annotation: Annotation | None = None) -> bool:
        return self.bench.seats[name].multicast(payload, annotation=annotation) == 1

    def multicast_many(self, name: str, payloads: Sequence[bytes]) -> int:
        return self.bench.seats[name].multicast(*payloads)

    def drop(self) -> None:
        self.bench.drop()

    def gossip(self, name: str, *to: str) -> None:
        """Let one member gossip; only the frames for `to` stay on the wire."""
        earlier = len(self.bench.wire)
        self.bench.seats[name].fire(SrmTimer.GOSSIP)
        self.keep(lambda place, _source, dest: place < earlier or dest in to)

    def request(self, name: str, after: Nanos = 10 * MILLISECOND) -> None:
        """Let one member ask for what it misses."""
        self.bench.now += after
        self.bench.seats[name].fire(SrmTimer.REQUEST)

    def hear(self, name: str, source: str, frame: Frame) -> None:
        """A frame that the test made up."""
        self.bench.seats[name].hear(self.ids[source], frame)

    def carry(self, accept: Callable[[str, str, Frame], bool] = lambda *_: True) -> None:
        """Deliver what is on the wire and accepted, drop the rest; answers wait for the next call."""
        self.bench.now += MILLISECOND
        self.bench.carries = accept
        self.bench.carry()

    def crash(self, name: str) -> None:
        self.bench.seats[name].alive = False
        self.keep(lambda _place, source, _dest: source != name)
        for seat in self.bench.seats.values():
            seat.call(lambda stack, now: stack.member_failed(now, self.ids[name]))

    def keep(self, kept: Callable[[int, str, str], bool]) -> None:
        """Drop the other frames: asked for their places, sources and destinations."""
        letters = list(enumerate(self.bench.wire))
        self.bench.drop()
        self.bench.wire.extend(each for place, each in letters if kept(place, each.source.name, each.dest))

    def read(self, name: str, most: int = 1000) -> list[bytes]:
        self.bench.seats[name].read(most)
        deliveries, self._keepers[name].taken = self._keepers[name].taken, []
        return [payload for each in deliveries if isinstance(each, Batch) for payload in each.payloads]

    def purged(self, name: str) -> list[int]:
        return [event.id.seq for event in self.events[name] if isinstance(event, Purged)]


@pytest.fixture
def make_lab() -> type[Lab]:
    return Lab
