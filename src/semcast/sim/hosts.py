"""Simulated hosts: the turns of a stack in virtual time, on a machine that takes its time.

A host is busy for as long as its CPU model says. Inputs that come while it is busy or asleep wait in a
bounded queue, as in a socket buffer; how many of them one turn takes in is for `Bursts` to say.
"""

from collections import deque
from collections.abc import Sequence
from itertools import groupby
from random import Random

import msgspec

from semcast.core.events import (
    Blocked,
    Delivery,
    Event,
    Left,
    Purged,
    Sent,
    StateReceived,
    TransitionalView,
    Unblocked,
    ViewChange,
)
from semcast.core.handover import Command, Handover, Outgoing
from semcast.core.ids import MemberId, Nanos
from semcast.core.mailbox import Mailbox
from semcast.core.messages import Batch, batch_of
from semcast.core.outbox import Dest, Frame, Reach, Timer
from semcast.core.stack import Stack
from semcast.core.turn import Renew, Turn
from semcast.core.views import View
from semcast.history import Recorder
from semcast.sim.applications import Reader, Writer
from semcast.sim.bursts import Bursts
from semcast.sim.networks import Network, Packet
from semcast.sim.replica import Replicas
from semcast.sim.scheduler import Scheduler
from semcast.sim.workloads import Source
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
    turns: int = 0
    datagrams_in: int = 0
    datagrams_out: int = 0
    bytes_out: int = 0
    overflowed: int = 0
    malformed: int = 0
    blocked_since: Nanos | None = None
    blocked_time: Nanos = 0
    read: int = 0
    """Messages that the application took."""
    sent_at: list[Nanos] = msgspec.field(default_factory=list)


class Read(msgspec.Struct, frozen=True):
    """An input: the application asks for its next list."""


Input = Packet | Timer | Command | Read


class Host:
    """One process on one machine: its stack, its application, and what they do to the world."""

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
        bursts: Bursts | None = None,
        rng: Random | None = None,
        renew: Renew | None = None,
    ) -> None:
        self.number = number
        self.stats = HostStatistics()
        self.app_delay = app_delay
        self.crashed = False
        self._announces = announces  # the stack says itself when a message leaves
        self._others = others
        self._everybody = sorted(others.values())
        self._scheduler = scheduler
        self._network = network
        self._codec = codec
        self._recorder = recorder
        self._watches_buffers = recorder is not None and recorder.info.only.buffer_limit is not None
        self._cpu = cpu
        self._bursts = bursts
        self._most = 1 if bursts is None else bursts.most
        self._gather = 0 if bursts is None else bursts.gather
        self._inbox: deque[Input] = deque()
        self._inbox_limit = inbox_limit
        self._free_at: Nanos = 0
        self._wake_planned = False
        self._running = False
        self._timers: dict[Timer, Nanos] = {}
        self._sends: list[tuple[Dest, Frame]] = []
        self._app_free_at: Nanos = 0
        self._app_planned = False
        self._high_water = 0
        if bursts is None:
            self._handover = Handover(1, Mailbox(0))
        else:
            self._handover = Handover(bursts.send_messages)
        self._reader = Reader(self._handover, observe=observe, transfers=transfers)
        # What the application comes to once it has taken all that was delivered: where states are handed
        # over, they are the same at the beginning of a view, and that is recorded beside the view.
        self._ledger = Replicas() if transfers and recorder is not None else None
        self._writer = Writer(self._handover, source, bursts or Bursts(), rng)
        self._turn = Turn(member, stack, self._handover, self, watchers=(self,), renew=renew)
        network.attach(number, self._receive)

    @property
    def member(self) -> MemberId:
        """Who this is now."""
        return self._turn.member

    @property
    def stack(self) -> Stack:
        """Its protocol."""
        return self._turn.stack

    @property
    def view(self) -> View | None:
        """The last view that its application has seen."""
        return self._reader.view

    @property
    def replicas(self) -> Replicas | None:
        """The state that its application has built up, if it builds up one."""
        return self._reader.replicas

    @property
    def waiting(self) -> bool:
        """Whether its application made something that has not been sent."""
        return self._writer.waiting

    # What happens to it

    def start(self) -> None:
        """Start the stack, and the workload after its first interval."""
        self.call(_start)
        self._plan_next_message()

    def crash(self, *, left: bool = False) -> None:
        """Stop for ever, in the middle of nothing, or because it left the group."""
        self._stop()
        if self._recorder is not None:
            record = self._recorder.left if left else self._recorder.crash
            record(self._scheduler.now, self.member)

    def sleep(self, until: Nanos) -> None:
        """Do nothing until then."""
        self._free_at = max(self._free_at, until)
        self._app_free_at = max(self._app_free_at, until)

    def member_failed(self, member: MemberId) -> None:
        """The failure detector speaks."""
        self.call(lambda stack, now: stack.member_failed(now, member))

    def leave(self) -> None:
        """The application wants out, and sends no more."""
        self.call(lambda stack, now: stack.leave(now))

    def stop_writing(self) -> None:
        """The application sends no more."""
        self._writer.stop()

    def call(self, command: Command) -> None:
        """Have something done to the stack."""
        self._input(command)

    def finish(self) -> None:
        """The run is over: let the application take what lies there, and write down its state."""
        while self._handover:
            self._reader.read(self._scheduler.now)
        if self.replicas is not None:
            self._record_state(self._scheduler.now, self.replicas)

    def _stop(self) -> None:
        self.crashed = True
        self._inbox.clear()

    # Inputs

    def _receive(self, packet: Packet) -> None:
        if len(self._inbox) >= self._inbox_limit:
            self.stats.overflowed += 1
        else:
            self._input(packet)

    def _input(self, what: Input) -> None:
        if self.crashed:
            return
        now = self._scheduler.now
        if self._inbox or self._free_at > now or self._gather or self._running:
            self._inbox.append(what)
            self._plan_wake()
        else:
            self._take_turn(now, (what,))

    def _plan_wake(self) -> None:
        if not self._wake_planned:
            self._wake_planned = True
            self._scheduler.at(max(self._free_at, self._scheduler.now + self._gather), self._wake)

    def _wake(self) -> None:
        self._wake_planned = False
        while self._inbox and not self.crashed:
            now = self._scheduler.now
            if self._free_at > now:
                self._plan_wake()
                return
            count = min(self._most, len(self._inbox))
            self._take_turn(now, [self._inbox.popleft() for _ in range(count)])

    def _take_turn(self, now: Nanos, inputs: Sequence[Input]) -> None:
        """One turn of the stack; what comes meanwhile waits for the next."""
        arrivals: list[tuple[MemberId, list[Frame]]] = []
        timers: list[Timer] = []
        reads = False
        for each in inputs:
            if isinstance(each, Packet):
                self._open(now, each, arrivals)
            elif isinstance(each, Timer):
                timers.append(each)
            elif isinstance(each, Read):
                reads = True
            else:
                self._handover.call(each)
        self.stats.turns += 1
        self._handover.mailbox.asked = self._asks(now, reads=reads)
        self._running = True
        self._turn.run(now, arrivals, timers)
        self._running = False
        self._poll_application()
        if self._bursts is not None and not self.crashed and self._turn.busy():
            self._inbox.append(_nothing)
            self._plan_wake()

    def _open(self, now: Nanos, packet: Packet, arrivals: list[tuple[MemberId, list[Frame]]]) -> None:
        self.stats.datagrams_in += 1
        decoded = packet.decoded
        if isinstance(decoded, Malformed):
            self.stats.malformed += 1
            return
        assert isinstance(decoded, Datagram)
        self._spend(now, self._cpu.receive + self._cpu.frame * len(decoded.frames))
        if arrivals and arrivals[-1][0] == decoded.source:
            arrivals[-1][1].extend(decoded.frames)
        else:
            arrivals.append((decoded.source, list(decoded.frames)))

    def _on_timer(self, timer: Timer, at: Nanos) -> None:
        if self._timers.get(timer) == at and not self.crashed:
            del self._timers[timer]
            self._input(timer)

    # What a turn does to the world

    def set_timer(self, timer: Timer, at: Nanos | None) -> None:
        """In virtual time."""
        if at is None:
            self._timers.pop(timer, None)
        else:
            self._timers[timer] = at
            self._scheduler.at(at, self._on_timer, timer, at)

    def send(self, now: Nanos, sends: Sequence[tuple[Dest, Frame]]) -> None:  # noqa: ARG002
        """No time passes in the middle of a turn: what is sent there leaves together."""
        self._sends += sends

    def flush(self, now: Nanos) -> None:
        """Put on the wire what was sent."""
        if self._sends:
            sends, self._sends = self._sends, []
            self._transmit(now, sends)
        self._note_high_water(now)

    def wake(self) -> None:
        """The application may look."""
        if self.crashed:
            return
        if self._bursts is not None:
            self._go_on_writing()
            self._plan_reading()
            return
        while self._handover:
            self._reader.read(self._scheduler.now)

    def renew(self, member: MemberId) -> None:  # noqa: ARG002
        """Another incarnation goes on."""
        self._timers.clear()

    def _transmit(self, now: Nanos, sends: Sequence[tuple[Dest, Frame]]) -> None:
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

    def _note_high_water(self, now: Nanos) -> None:
        if self._watches_buffers and self._recorder is not None:
            held = self.stack.buffered()
            if held > self._high_water:
                self._high_water = held
                self._recorder.buffer(now, self.member, held)

    # What a turn tells: the history of the run

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        """What the stack says."""
        for event in events:
            self._on_event(now, event)

    def _on_event(self, now: Nanos, event: Event) -> None:
        recorder = self._recorder
        if isinstance(event, Purged):
            if recorder is not None:
                recorder.purge(now, self.member, event)
        elif isinstance(event, Sent):
            if recorder is not None:
                recorder.sent(now, self.member, event)
        elif isinstance(event, ViewChange):
            if recorder is not None:
                recorder.view(now, self.member, event.view)
        elif isinstance(event, Left):
            self.crash(left=True)
        elif isinstance(event, Blocked):
            self.stats.blocked_since = now
        elif isinstance(event, Unblocked) and self.stats.blocked_since is not None:
            self.stats.blocked_time += now - self.stats.blocked_since
            self.stats.blocked_since = None

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:
        """What the application is about to get."""
        if self._bursts is None and self.app_delay:
            self._app_free_at = now + self.app_delay
            self._handover.mailbox.asked = False
        if self._recorder is None:
            return
        for each in deliveries:
            if isinstance(each, Batch):
                self._recorder.deliver(now, self.member, each, each.order)
                if self._ledger is not None:
                    self._ledger.apply(each)
            elif isinstance(each, ViewChange):
                self._recorder.view(now, self.member, each.view)
                if self._ledger is not None:
                    self._record_state(now, self._ledger, each.view.id)
            elif isinstance(each, StateReceived) and self._ledger is not None:
                self._ledger.restore(each.state)
            elif isinstance(each, TransitionalView):
                self._recorder.transitional(now, self.member, each.view)

    def _record_state(self, now: Nanos, state: Replicas, view: int | None = None) -> None:
        """At the beginning of a view, or at the end of the run."""
        if self._recorder is not None:
            for sender, digest in state.digests():
                self._recorder.apply(now, self.member, sender, digest, view)

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:
        """What the stack took from the application."""
        for outgoing, count in taken:
            first = len(self.stats.sent_at) + 1
            self.stats.sent_at += [now] * count
            if self._recorder is not None and not self._announces:
                self._record_multicast(now, first, outgoing, count)
        if self._bursts is None:
            self._plan_next_message()

    def _record_multicast(self, now: Nanos, first: int, outgoing: Outgoing, count: int) -> None:
        assert self._recorder is not None
        if outgoing.annotations is None:
            payloads = list(outgoing.payloads[:count])
            if payloads:
                batch = batch_of(self.member, first, payloads, outgoing.annotation)
                self._recorder.multicast(now, self.member, batch)
            return
        for place in range(count):
            batch = batch_of(
                self.member, first + place, [outgoing.payloads[place]], outgoing.annotations[place]
            )
            self._recorder.multicast(now, self.member, batch)

    def on_renewal(self, now: Nanos, member: MemberId) -> None:
        """Another incarnation goes on; the former one has left."""
        self.crashed = False
        self._ledger = None if self._ledger is None else Replicas()
        if self._recorder is not None:
            self._recorder.recover(now, member)

    # The application

    def _plan_next_message(self) -> None:
        gap = self._writer.next_gap()
        if gap is not None:
            self._scheduler.at(self._scheduler.now + gap, self._produce)
        elif self._bursts is not None:
            self._hand_over()

    def _produce(self) -> None:
        if self.crashed:
            return
        if self._writer.produce():
            self._hand_over()
        if self._bursts is not None and not self._writer.blocked():
            self._plan_next_message()

    def _hand_over(self) -> None:
        if self._bursts is None:  # one input after the other, in the order in which they came
            self.call(self._hand_over_now)
        elif self._writer.flush() or self._writer.blocked():
            self.call(_nothing)

    def _hand_over_now(self, _stack: Stack, _now: Nanos) -> None:
        self._writer.flush()

    def _go_on_writing(self) -> None:
        """There may be room again for what the application wants to send."""
        if self._writer.blocked():
            if self._writer.retry() and not self._running:
                self.call(_nothing)
            if not self._writer.blocked():
                self._plan_next_message()
                self._plan_reading()

    def _asks(self, now: Nanos, *, reads: bool) -> bool:
        """Without bursts: whether the application would deal with a list at once."""
        if self._bursts is not None or self._app_free_at > now:
            return False
        self._handover.mailbox.want = 1 if self.app_delay else EVERYTHING
        return reads or (self.app_delay == 0 and not self._app_planned)

    def _poll_application(self) -> None:
        """Without bursts: an application that is busy asks for more when it is free."""
        if self._bursts is not None or self._app_planned or self.crashed or not self.stack.deliverable():
            return
        self._app_planned = True
        self._scheduler.at(self._app_free_at, self._ask)

    def _ask(self) -> None:
        self._app_planned = False
        self._input(Read())

    def _plan_reading(self) -> None:
        if not self._app_planned and self._handover:
            self._app_planned = True
            self._scheduler.at(max(self._app_free_at, self._scheduler.now), self._read)

    def _read(self) -> None:
        """With bursts: the application comes back for the next list, in its own time."""
        self._app_planned = False
        now = self._scheduler.now
        if self.crashed:
            return
        if self._app_free_at > now:  # it was put to sleep
            self._app_planned = True
            self._scheduler.at(self._app_free_at, self._read)
            return
        if self._writer.blocked() and self._bursts is not None and self._bursts.single:
            return  # it comes back when it has sent what it has to send
        self._handover.dealt_with(now)
        if self._handover:
            taken = self._reader.read(now)
            self.stats.read += taken
            self._app_free_at = now + self.app_delay * taken
            self._app_planned = True
            self._scheduler.at(self._app_free_at, self._read)
            self.call(_nothing)


def _start(stack: Stack, now: Nanos) -> None:
    stack.start(now)


def _nothing(_stack: Stack, _now: Nanos) -> None:
    """The application did something: the turn itself looks what."""


def _one(send: tuple[Dest, Frame]) -> MemberId | None:
    """Whom a frame is for; None for everybody: strangers are members of the same cluster here."""
    dest = send[0]
    return None if isinstance(dest, Reach) else dest
