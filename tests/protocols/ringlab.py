"""A bench on which a test moves frames between members of a ring by hand."""

from collections.abc import Sequence
from random import Random

from semcast.core import (
    Batch,
    Delivery,
    Event,
    MemberId,
    Merged,
    MessageId,
    Nanos,
    Outbox,
    Purged,
    Sent,
    TransitionalView,
    ViewChange,
)
from semcast.core.events import Confirmed, Thinned
from semcast.core.handover import Handover
from semcast.core.ids import MILLISECOND
from semcast.history import History, Recorder, RunInfo
from semcast.lab import Application, Keeper, Lab, Seat
from semcast.protocols.ring import Ring, RingSettings
from semcast.specs import Status, check
from semcast.specs.confirmed import confirmed


class Listener(Keeper):
    """An application that tells its lab what it is given."""

    def __init__(self, lab: "RingLab", name: str) -> None:
        super().__init__()
        self._lab, self._name = lab, name

    def on_delivery(self, each: Delivery) -> None:
        self._lab.note(self._name, each)


class RingLab(Lab):
    """Members by name; frames travel in order and in no time, unless `carries` says that they are lost."""

    seat: type[Seat] = Seat
    latency: Nanos = 0

    def __init__(self, names: str, settings: RingSettings, kind: type[Ring] = Ring) -> None:
        super().__init__(latency=self.latency)
        self._settings = settings
        self.ids = {name: MemberId(name) for name in names}
        self.rings = {
            name: kind(member, self.settings_of(name), Random(name), Outbox())
            for name, member in self.ids.items()
        }
        self.story: dict[str, list[str]] = {name: [] for name in names}
        """What each application saw, in words."""
        for name, ring in self.rings.items():
            self.add(self.ids[name], ring, self.application(name), self.handover(), self.seat)

    def settings_of(self, name: str) -> RingSettings:
        return self._settings

    def application(self, name: str) -> Application:
        return Listener(self, name)

    def handover(self) -> Handover | None:
        return None

    def run_for(self, milliseconds: int) -> None:
        self.run(milliseconds * MILLISECOND)

    def multicast(self, name: str, payload: bytes, *, safe: bool = False) -> None:
        assert self.seats[name].multicast(payload, safe=safe) == 1

    def note(self, name: str, each: Delivery) -> None:
        """An application was given something."""
        if isinstance(each, Batch):
            self.story[name] += [payload.decode() for payload in each.payloads]
        elif isinstance(each, ViewChange | TransitionalView):
            members = " ".join(member.name for member in each.view.members)
            kind = "regular" if isinstance(each, ViewChange) else "transitional"
            self.story[name].append(f"{kind} {{{members}}}")


class RecordingSeat(Seat):
    """Tells its lab what the stack says."""

    lab: "RecordingLab"

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        super().on_events(now, events)
        self.lab.record(self.member, events)


class RecordingLab(RingLab):
    """Writes a history, so that the checkers can judge what the applications saw."""

    seat = RecordingSeat

    def __init__(self, names: str, settings: RingSettings, kind: type[Ring] = Ring) -> None:
        super().__init__(names, settings, kind)
        members = tuple(self.ids.values())
        info = RunInfo.one("lab", "g", "ring", None, members, None, uniform=False, quiesced=False)
        self._recorder = Recorder(info)
        self._sent: dict[MessageId, bytes] = {}
        self._got: list[tuple[MessageId, bytes]] = []
        for seat in self.seats.values():
            assert isinstance(seat, RecordingSeat)
            seat.lab = self

    def record(self, member: MemberId, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Sent):
                self._recorder.sent(self.now, member, event)
                self._sent |= {message.id: message.payload for message in event.batch.messages()}
            elif isinstance(event, Purged | Thinned):
                for purged in event.receipts():
                    self._recorder.purge(self.now, member, purged)
            elif isinstance(event, Confirmed):  # a test gives the number of the message as its ticket
                message = MessageId(member, event.ticket)
                self._recorder.confirmed(self.now, member, message, event.view, safe=True)

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
        elif isinstance(each, Merged):
            self._recorder.merged(self.now, member, each.count)

    @property
    def history(self) -> History:
        """What was recorded so far."""
        return self._recorder.close(quiesced=True)

    def broken(self) -> set[str]:
        """What does not hold: properties by name; `contents` where what arrived is not what was sent."""
        verdicts = [*check(self.history), confirmed(self.history)]
        found = {verdict.property for verdict in verdicts if verdict.status is Status.VIOLATED}
        return found | {"contents" for message, payload in self._got if self._sent.get(message) != payload}
