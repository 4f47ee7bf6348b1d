"""What works for a group in the thread of its loop: the seat of its stack, the hub, the loop, who watches."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

import msgspec

from semcast.core.handover import Handover, StateHooks
from semcast.core.ids import MemberId
from semcast.core.views import View
from semcast.core.watchers import Watcher
from semcast.group.drafts import Drafts
from semcast.group.flow import FlowLog
from semcast.group.logs import GroupLog, NetworkLog
from semcast.group.machine import Witness
from semcast.group.metrics import Metrics
from semcast.group.settings import GroupSettings, parse_size
from semcast.group.stacks import Parts
from semcast.group.state import CheckedHooks
from semcast.group.statistics import GroupStatistics
from semcast.group.watching import Openings, Receipts
from semcast.net.hub import Hub
from semcast.net.loop import Loop
from semcast.net.seat import Seat
from semcast.patterns.calls import CallCounts

if TYPE_CHECKING:
    from semcast.group.call_journal import CallJournal

Renew = Callable[[MemberId], tuple[MemberId, Random] | None]


class Machinery:
    """Of one member.

    Args:
        name: of the group.
        settings: of the member.
        parts: what it is made of.
        state: how its program hands over state, if it does.
        watchers: told of all that happens, besides those of the group itself.
        wake: called when the program should look.
        renew: says who goes on in the place of a member that was put out.
    """

    def __init__(
        self,
        name: str,
        settings: GroupSettings,
        parts: Parts,
        state: StateHooks | None,
        watchers: Sequence[Watcher],
        *,
        wake: Callable[[], None],
        renew: Renew,
    ) -> None:
        self.disk = parts.disk
        self.metrics = Metrics(name, settings.metrics)
        self.receipts, self.openings = Receipts(), Openings()
        machine = parts.machine
        self.log = GroupLog(name, parts.member, machine.clock)
        self._keys, self.lease = parts.keys, parts.lease
        self._recordings: list[Witness] = _recordings(name, settings, parts)
        self.journal = _call_journal(name, settings, parts)
        """Of its calls, if these are recorded."""
        self.handover = Handover(
            settings.send_messages,
            hooks=None if state is None else CheckedHooks(state),
            queue_messages=settings.queue_messages,
            queue_bytes=parse_size(settings.queue_bytes),
            send_bytes=parse_size(settings.send_bytes),
            receives=settings.receive,
        )
        own = [*self._recordings, self.receipts, self.openings, self.log, *self.metrics.watchers]
        self.seat = Seat(
            parts.member,
            parts.stack,
            self.handover,
            wake_application=wake,
            watchers=[*own, *watchers],
            renew=renew,
            disk=parts.disk,
            certificates=self._recordings[0].certificates if self._recordings else None,
        )
        self.drafts = _drafts(parts, self.seat, self.journal)
        self._connect(name, settings, parts)
        self.flow = FlowLog(name, self.seat, machine.clock, machine.wall)
        self._network = NetworkLog(name, self.hub, machine.clock)

    def _connect(self, name: str, settings: GroupSettings, parts: Parts) -> None:
        """The seat with the hub, and the hub with the loop."""
        lease, machine = parts.lease, parts.machine
        self.hub = Hub(
            parts.member,
            lease.exchange,
            parts.codec,
            parts.peers,
            meeting=lease.meeting,
            datagram=settings.datagram,
            multicast=settings.fanout == "multicast",
            tend=self._tend,
            draw=lambda: int.from_bytes(machine.random_bytes(8)) >> 3,
        )
        self.hub.seat(self.seat)
        group = name if lease.shared else ""
        self.loop = Loop(
            str(parts.member), self.hub, group=group, source=lease.exchange, drivers=machine.drivers
        )
        self.seat.wake_loop = self.hub.wake = self.loop.wake
        self.seat.push_loop = self.loop.wake if parts.disk is not None else self.loop.push

    def start(self) -> None:
        """Begin."""
        if self.disk is not None:
            self.disk.wake = self.loop.wake
        self.loop.start()

    def close(self) -> None:
        """Stop, and let go of everything."""
        self.loop.close()
        self.hub.close()
        self.lease.release()
        if self.disk is not None:
            self.disk.close()
        for recording in self._recordings:
            recording.close()

    def statistics(self, member: MemberId, view: View | None, calls: CallCounts) -> GroupStatistics:
        """A snapshot. In any thread."""
        seat, hub = self.seat, self.hub
        return GroupStatistics(
            member=member,
            view=view,
            stack=msgspec.structs.replace(seat.stack.stats),
            network=hub.traffic(),
            malformed={why.value: count for why, count in hub.malformed().items()},
            waiting_to_send=self.handover.unsent,
            buffered=seat.buffered(),
            sealing=None if self._keys is None else self._keys.stats(),
            phase=seat.stack.phase(),
            held_back=self.flow.held(),
            promise=seat.stack.caveat(),
            backlog_errors=self.handover.backlogs,
            skipped=self.handover.skipped,
            calls=msgspec.structs.replace(calls),
        )

    def _tend(self) -> None:
        """Once a second, in the loop's thread."""
        self.flow.look()
        self._network.look()
        if self._keys is not None:
            self._keys.tend()


def _recordings(group: str, settings: GroupSettings, parts: Parts) -> list[Witness]:
    witness = parts.machine.witness(group, settings, parts)
    if witness is not None:
        return [witness]
    if not settings.record:
        return []
    from semcast.group.recording import open_recording  # noqa: PLC0415 (histories need pyarrow: slow to load)

    return [open_recording(group, settings, parts)]


def _call_journal(group: str, settings: GroupSettings, parts: Parts) -> "CallJournal | None":
    if not settings.record:
        return None
    from semcast.group.call_journal import open_call_journal  # noqa: PLC0415 (the same)

    return open_call_journal(group, settings, parts)


def _drafts(parts: Parts, seat: Seat, journal: "CallJournal | None") -> Drafts:
    if journal is None or parts.family.renumbers:  # then it is not known here what number a message has
        return Drafts(parts, seat.send, seat.send_plain, seat.send_update)
    from semcast.group.call_journal import RecordedDrafts  # noqa: PLC0415 (the same)

    return RecordedDrafts(parts, seat.send, seat.send_plain, seat.send_update, journal)
