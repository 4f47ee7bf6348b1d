"""Simulated hosts: they drive a protocol stack exactly as the live driver does, in virtual time.

A host makes one input, drains the outbox, and is busy for as long as its CPU model says. Inputs that
come while it is busy or asleep wait in a bounded queue, as in a socket buffer.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from semcast.core.events import (
    Blocked,
    Delivery,
    Event,
    Left,
    Purged,
    Sent,
    StateReceived,
    StateRequested,
    TransitionalView,
    Unblocked,
    ViewChange,
)
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch, batch_of
from semcast.core.outbox import Dest, Frame, Reach, Timer
from semcast.core.stack import Stack
from semcast.core.views import View
from semcast.history import Recorder
from semcast.sim.networks import Network, Packet
from semcast.sim.replica import Replicas
from semcast.sim.scheduler import Scheduler
from semcast.sim.workloads import Outgoing, Source
from semcast.wire import Codec, Datagram, Malformed

EVERYTHING = 1 << 30


class CpuModel(msgspec.Struct, frozen=True):
    """Virtual time a host spends: for each datagram in and out, and for each frame it handles."""

    receive: Nanos = 10_000
    send: Nanos = 10_000
    frame: Nanos = 0


class HostStatistics(msgspec.Struct):
    """What a host did."""

    busy: Nanos = 0
    datagrams_in: int = 0
    datagrams_out: int = 0
    bytes_out: int = 0
    overflowed: int = 0
    malformed: int = 0
    blocked_since: Nanos | None = None
    blocked_time: Nanos = 0
    sent_at: list[Nanos] = msgspec.field(default_factory=list)


class Host:
    """One process on one machine."""

    def __init__(
        self,
        number: int,
        member: MemberId,
        stack: Stack,
        others: dict[str, int],
        scheduler: Scheduler,
        network: Network,
        codec: Codec,
        recorder: Recorder | None,
        *,
        cpu: CpuModel,
        inbox_limit: int = 4096,
        app_delay: Nanos = 0,
        source: Source | None = None,
        observe: bool = True,
        announces: bool = False,
        transfers: bool = False,
        left: Callable[[int], None] | None = None,
    ) -> None:
        self.number = number
        self.member = member
        self.stack = stack
        self.stats = HostStatistics()
        self.replicas = Replicas() if observe else None
        self.app_delay = app_delay
        self._announces = announces  # the stack says itself when a message leaves
        self._transfers = transfers  # who joins is given the state
        self._left = left  # what to do when the stack was put out of its group
        self.crashed = False
        self._others = others
        self._everybody = sorted(others.values())
        self._scheduler = scheduler
        self._network = network
        self._codec = codec
        self._recorder = recorder
        self._watches_buffers = recorder is not None and recorder.info.only.buffer_limit is not None
        self._cpu = cpu
        self._inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._inbox_limit = inbox_limit
        self._free_at: Nanos = 0
        self._wake_planned = False
        self._timers: dict[Timer, Nanos] = {}
        self._app_free_at: Nanos = 0
        self._app_planned = False
        self._source = source
        self.waiting: Outgoing | None = None  # refused by flow control
        self.view: View | None = None
        self._high_water = 0
        network.attach(number, self._receive)

    def start(self) -> None:
        """Start the stack, and the workload after its first interval."""
        self._input(self.stack.start)
        self._plan_next_message()

    def crash(self, *, left: bool = False) -> None:
        """Stop for ever, in the middle of nothing, or because it left the group."""
        self.crashed = True
        self._inbox.clear()
        if self._recorder is not None:
            record = self._recorder.left if left else self._recorder.crash
            record(self._scheduler.now, self.member)

    def sleep(self, until: Nanos) -> None:
        """Do nothing until then."""
        self._free_at = max(self._free_at, until)
        self._app_free_at = max(self._app_free_at, until)

    def member_failed(self, member: MemberId) -> None:
        """The failure detector speaks."""
        self._input(self.stack.member_failed, member)

    def leave(self) -> None:
        """The application wants out."""
        self._input(self.stack.leave)

    def record_state(self) -> None:
        """Write the state the application reached into the history."""
        if self._recorder is not None and self.replicas is not None:
            for sender, digest in self.replicas.digests():
                self._recorder.apply(self._scheduler.now, self.member, sender, digest)

    # Inputs

    def _receive(self, packet: Packet) -> None:
        if len(self._inbox) >= self._inbox_limit:
            self.stats.overflowed += 1
        else:
            self._input(self._on_packet, packet)

    def _input(self, call: Callable[..., None], *args: Any) -> None:
        if self.crashed:
            return
        now = self._scheduler.now
        if self._inbox or self._free_at > now:
            self._inbox.append((call, args))
            self._plan_wake()
        else:
            self._run(now, call, args)

    def _plan_wake(self) -> None:
        if not self._wake_planned:
            self._wake_planned = True
            self._scheduler.at(self._free_at, self._wake)

    def _wake(self) -> None:
        self._wake_planned = False
        while self._inbox and not self.crashed:
            now = self._scheduler.now
            if self._free_at > now:
                self._plan_wake()
                return
            call, args = self._inbox.popleft()
            self._run(now, call, args)

    def _run(self, now: Nanos, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        call(now, *args)
        self._drain(now)

    def _on_packet(self, now: Nanos, packet: Packet) -> None:
        self.stats.datagrams_in += 1
        decoded = packet.decoded
        if isinstance(decoded, Malformed):
            self.stats.malformed += 1
            return
        assert isinstance(decoded, Datagram)
        self._spend(now, self._cpu.receive + self._cpu.frame * len(decoded.frames))
        on_frame = self.stack.on_frame
        for frame in decoded.frames:
            on_frame(now, decoded.source, frame)

    def _on_timer(self, timer: Timer, at: Nanos) -> None:
        if self._timers.get(timer) == at and not self.crashed:
            del self._timers[timer]
            self._input(self.stack.on_timer, timer)

    # Outputs

    def _drain(self, now: Nanos) -> None:
        out = self.stack.out
        while out.sends or out.timers or out.events:
            if out.timers:
                timers, out.timers = out.timers, []
                self._set_timers(timers)
            if out.events:
                events, out.events = out.events, []
                for event in events:
                    self._on_event(now, event)
            if out.sends:
                sends, out.sends = out.sends, []
                self._send(now, sends)
        self._note_high_water(now)
        self._poll_application()

    def _set_timers(self, timers: Sequence[tuple[Timer, Nanos | None]]) -> None:
        for timer, at in timers:
            if at is None:
                self._timers.pop(timer, None)
            else:
                self._timers[timer] = at
                self._scheduler.at(at, self._on_timer, timer, at)

    def _send(self, now: Nanos, sends: Sequence[tuple[Dest, Frame]]) -> None:
        for dest, run in groupby(sends, key=_one):  # in order: a token may leave before packets
            to = self._everybody if dest is None else [self._others[dest.name]]
            for data in self._codec.encode(self.member, [frame for _, frame in run]):
                self._spend(now, self._cpu.send)
                self.stats.datagrams_out += 1
                self.stats.bytes_out += len(data)
                packet = Packet(self.number, data, self._codec.decode(data))
                self._network.transmit(self._free_at if self._free_at > now else now, packet, to)

    def _spend(self, now: Nanos, cost: Nanos) -> None:
        if cost:
            self._free_at = max(self._free_at, now) + cost
            self.stats.busy += cost

    def _on_event(self, now: Nanos, event: Event) -> None:
        if isinstance(event, Purged):
            if self._recorder is not None:
                self._recorder.purge(now, self.member, event)
        elif isinstance(event, Sent):
            if self._source is not None:
                self._source.sent(event.batch)
            if self._recorder is not None:
                self._recorder.sent(now, self.member, event)
        elif isinstance(event, ViewChange):
            self._on_view(now, event)
        elif isinstance(event, Left):
            self.crash(left=True)
            if event.again and self._left is not None:
                self._left(self.number)
        elif isinstance(event, Blocked):
            self.stats.blocked_since = now
        elif isinstance(event, Unblocked):
            if self.stats.blocked_since is not None:
                self.stats.blocked_time += now - self.stats.blocked_since
                self.stats.blocked_since = None
            if self.waiting is not None:
                self._multicast(now)

    def _note_high_water(self, now: Nanos) -> None:
        if self._watches_buffers and self._recorder is not None:
            held = self.stack.buffered()
            if held > self._high_water:
                self._high_water = held
                self._recorder.buffer(now, self.member, held)

    # The sending application

    def _plan_next_message(self) -> None:
        if self._source is None:
            return
        gap = self._source.next_gap()
        if gap is not None:
            self._scheduler.at(self._scheduler.now + gap, self._produce)

    def _produce(self) -> None:
        if self.crashed or self._source is None:
            return
        self.waiting = self._source.next_message()
        if self.waiting is not None:
            self._input(self._multicast)

    def _multicast(self, now: Nanos) -> None:
        if self.waiting is None:
            return
        payload, annotation, safe = self.waiting
        if self._source is not None:
            annotation = self._source.numbered(annotation)
        if self.stack.multicast(now, [payload], annotation, safe=safe) == 0:
            return
        self.waiting = None
        self.stats.sent_at.append(now)
        if self._recorder is not None and not self._announces:
            batch = batch_of(self.member, len(self.stats.sent_at), [payload], annotation)
            self._recorder.multicast(now, self.member, batch)
        self._plan_next_message()

    # The receiving application

    def _poll_application(self) -> None:
        if self._app_planned or self.crashed or not self.stack.deliverable():
            return
        now = self._scheduler.now
        if self.app_delay == 0 and self._app_free_at <= now:
            self._consume(now, self.stack.deliver(now, EVERYTHING))
            self._drain(now)
        else:
            self._app_planned = True
            self._scheduler.at(self._app_free_at, self._read)

    def _read(self) -> None:
        self._app_planned = False
        self._input(self._deliver_one)

    def _deliver_one(self, now: Nanos) -> None:
        if self._app_free_at > now:
            return
        batches = self.stack.deliver(now, 1 if self.app_delay else EVERYTHING)
        if batches:
            self._app_free_at = now + self.app_delay
            self._consume(now, batches)

    def _consume(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        for each in deliveries:
            if isinstance(each, Batch):
                if self._recorder is not None:
                    self._recorder.deliver(now, self.member, each, each.order)
                if self.replicas is not None:
                    self.replicas.apply(each)
            elif isinstance(each, ViewChange):
                self._on_view(now, each)
                self._record_state_at(now, each)
            elif isinstance(each, StateRequested):
                assert self.replicas is not None
                self.stack.provide(each.view, self.replicas.export())
            elif isinstance(each, StateReceived):
                assert self.replicas is not None
                self.replicas.restore(each.state)
            elif isinstance(each, TransitionalView) and self._recorder is not None:
                self._recorder.transitional(now, self.member, each.view)

    def _record_state_at(self, now: Nanos, change: ViewChange) -> None:
        """Where states are handed over, they are the same at the beginning of a view."""
        if self._transfers and self._recorder is not None and self.replicas is not None:
            for sender, digest in self.replicas.digests():
                self._recorder.apply(now, self.member, sender, digest, change.view.id)

    def _on_view(self, now: Nanos, change: ViewChange) -> None:
        self.view = change.view
        if self._recorder is not None:
            self._recorder.view(now, self.member, change.view)


def _one(send: tuple[Dest, Frame]) -> MemberId | None:
    """Whom a frame is for; None for everybody: strangers are members of the same cluster here."""
    dest = send[0]
    return None if isinstance(dest, Reach) else dest
