"""A bench on which a test moves frames between S-RM members by hand."""

from collections.abc import Callable, Sequence
from random import Random

import pytest

from semcast.core import Annotation, Event, Frame, MemberId, Nanos, Outbox, Purged
from semcast.core.ids import MILLISECOND
from semcast.protocols.semantic import SemanticMulticast, Settings
from semcast.protocols.semantic.exchange import SrmTimer


class Lab:
    """Members by name; frames wait in `wire` until the test carries or drops them."""

    def __init__(
        self, names: str, settings: Settings, kind: type[SemanticMulticast] = SemanticMulticast
    ) -> None:
        self.now: Nanos = 0
        self.ids = {name: MemberId(name) for name in names}
        members = list(self.ids.values())
        self.members = {
            name: kind(member, members, settings, Random(name), Outbox()) for name, member in self.ids.items()
        }
        self.wire: list[tuple[str, str, Frame]] = []
        self.events: dict[str, list[Event]] = {name: [] for name in names}
        self.crashed: set[str] = set()
        for stack in self.members.values():
            stack.start(0)
            stack.out.events.clear()
            stack.out.timers.clear()

    def multicast(self, name: str, payload: bytes, annotation: Annotation | None = None) -> bool:
        accepted = self.members[name].multicast(self.now, [payload], annotation)
        self._drain(name)
        return accepted == 1

    def gossip(self, name: str, *to: str) -> None:
        """Let one member gossip; only the frames for `to` stay on the wire."""
        earlier = list(self.wire)
        self.members[name].on_timer(self.now, SrmTimer.GOSSIP)
        self._drain(name)
        self.wire = earlier + [f for f in self.wire[len(earlier) :] if f[1] in to]

    def request(self, name: str, after: Nanos = 10 * MILLISECOND) -> None:
        """Let one member ask for what it misses."""
        self.now += after
        self.members[name].on_timer(self.now, SrmTimer.REQUEST)
        self._drain(name)

    def carry(self, accept: Callable[[str, str, Frame], bool] = lambda *_: True) -> None:
        """Deliver what is on the wire and accepted, drop the rest; answers wait for the next call."""
        frames, self.wire = self.wire, []
        self.now += MILLISECOND
        for source, dest, frame in frames:
            if accept(source, dest, frame) and dest not in self.crashed:
                self.members[dest].on_frame(self.now, self.ids[source], frame)
                self._drain(dest)

    def crash(self, name: str) -> None:
        self.crashed.add(name)
        self.wire = [frame for frame in self.wire if frame[0] != name]
        for other in self.members:
            if other != name:
                self.members[other].member_failed(self.now, self.ids[name])
                self._drain(other)

    def read(self, name: str, most: int = 1000) -> list[bytes]:
        batches = self.members[name].deliver(self.now, most)
        self._drain(name)
        return [payload for batch in batches for payload in batch.payloads]

    def purged(self, name: str) -> list[int]:
        return [event.id.seq for event in self.events[name] if isinstance(event, Purged)]

    def _drain(self, name: str) -> None:
        out = self.members[name].out
        for dest, frame in out.sends:
            others = [other for other in self.members if other != name]
            dests: Sequence[str] = [dest.name] if isinstance(dest, MemberId) else others
            self.wire.extend((name, other, frame) for other in dests)
        self.events[name].extend(out.events)
        out.sends.clear()
        out.events.clear()
        out.timers.clear()


@pytest.fixture
def make_lab() -> type[Lab]:
    return Lab
