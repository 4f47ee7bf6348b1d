"""A bench on which a test moves frames between members of a ring by hand."""

from collections import deque
from collections.abc import Callable
from random import Random

from semcast.core import (
    Batch,
    Delivery,
    Event,
    Frame,
    MemberId,
    MessageId,
    Nanos,
    Outbox,
    Purged,
    Sent,
    Timer,
    TransitionalView,
    ViewChange,
)
from semcast.core.ids import MILLISECOND
from semcast.history import Recorder, RunInfo
from semcast.protocols.ring import Ring, RingSettings
from semcast.specs import Status, check

Carried = Callable[[str, str, Frame], bool]
"""Whether a frame from one member to another arrives."""


class RingLab:
    """Members by name; frames travel in order and in no time, unless `carries` says that they are lost."""

    def __init__(self, names: str, settings: RingSettings, kind: type[Ring] = Ring) -> None:
        self.now: Nanos = 0
        self.ids = {name: MemberId(name) for name in names}
        self.rings = {
            name: kind(member, settings, Random(name), Outbox()) for name, member in self.ids.items()
        }
        self.wire: deque[tuple[str, str, Frame]] = deque()
        self.events: dict[str, list[Event]] = {name: [] for name in names}
        self.story: dict[str, list[str]] = {name: [] for name in names}
        """What each application saw, in words."""
        self.carries: Carried = lambda _source, _dest, _frame: True
        self._timers: dict[tuple[str, Timer], Nanos] = {}

    def start(self) -> None:
        for name, ring in self.rings.items():
            ring.start(self.now)
            self.drain(name)

    def run(self, until: Nanos) -> None:
        """Carry frames and let timers fire until then."""
        while True:
            self.carry()
            at, name, timer = min(
                ((at, name, timer) for (name, timer), at in self._timers.items()),
                key=lambda due: (due[0], due[1], due[2].value),
            )
            if at > until:
                self.now = until
                return
            self.now = max(self.now, at)
            del self._timers[name, timer]
            self.rings[name].on_timer(self.now, timer)
            self.drain(name)

    def run_for(self, milliseconds: int) -> None:
        self.run(self.now + milliseconds * MILLISECOND)

    def carry(self) -> None:
        while self.wire:
            self.step()

    def step(self) -> None:
        """Carry one frame."""
        source, dest, frame = self.wire.popleft()
        if dest in self.rings and self.carries(source, dest, frame):
            self.rings[dest].on_frame(self.now, self.ids[source], frame)
            self.drain(dest)

    def multicast(self, name: str, payload: bytes, *, safe: bool = False) -> None:
        assert self.rings[name].multicast(self.now, [payload], safe=safe) == 1
        self.drain(name)

    def drain(self, name: str) -> None:
        ring, out = self.rings[name], self.rings[name].out
        while out.sends or out.timers or out.events or ring.deliverable():
            self.perform(name)
            self._take(name)

    def perform(self, name: str) -> None:
        """Do what a ring wants of the world."""
        out = self.rings[name].out
        for timer, at in out.timers:
            if at is None:
                self._timers.pop((name, timer), None)
            else:
                self._timers[name, timer] = at
        out.timers.clear()
        self.events[name] += out.events
        out.events.clear()
        for dest, frame in out.sends:
            others = [other for other in self.rings if other != name]
            self.wire.extend(
                (name, to, frame) for to in ([dest.name] if isinstance(dest, MemberId) else others)
            )
        out.sends.clear()

    def _take(self, name: str) -> None:
        for each in self.rings[name].deliver(self.now, 1 << 30):
            self.note(name, each)

    def note(self, name: str, each: Delivery) -> None:
        """An application was given something."""
        if isinstance(each, Batch):
            self.story[name] += [payload.decode() for payload in each.payloads]
        elif isinstance(each, ViewChange | TransitionalView):
            members = " ".join(member.name for member in each.view.members)
            kind = "regular" if isinstance(each, ViewChange) else "transitional"
            self.story[name].append(f"{kind} {{{members}}}")


class RecordingLab(RingLab):
    """Writes a history, so that the checkers can judge what the applications saw."""

    def __init__(self, names: str, settings: RingSettings, kind: type[Ring] = Ring) -> None:
        super().__init__(names, settings, kind)
        members = tuple(self.ids.values())
        info = RunInfo.one("lab", "g", "ring", None, members, None, uniform=False, quiesced=False)
        self._recorder = Recorder(info)
        self._sent: dict[MessageId, bytes] = {}
        self._got: list[tuple[MessageId, bytes]] = []

    def perform(self, name: str) -> None:
        for event in self.rings[name].out.events:
            if isinstance(event, Sent):
                self._recorder.sent(self.now, self.ids[name], event)
                self._sent |= {message.id: message.payload for message in event.batch.messages()}
            elif isinstance(event, Purged):
                self._recorder.purge(self.now, self.ids[name], event)
        super().perform(name)

    def note(self, name: str, each: Delivery) -> None:
        super().note(name, each)
        member = self.ids[name]
        if isinstance(each, Batch):
            self._recorder.deliver(self.now, member, each)
            self._got += [(message.id, message.payload) for message in each.messages()]
        elif isinstance(each, ViewChange):
            self._recorder.view(self.now, member, each.view)
        elif isinstance(each, TransitionalView):
            self._recorder.transitional(self.now, member, each.view)

    def broken(self) -> set[str]:
        """What does not hold: properties by name; `contents` where what arrived is not what was sent."""
        verdicts = check(self._recorder.close(quiesced=True))
        found = {verdict.property for verdict in verdicts if verdict.status is Status.VIOLATED}
        return found | {"contents" for message, payload in self._got if self._sent.get(message) != payload}
