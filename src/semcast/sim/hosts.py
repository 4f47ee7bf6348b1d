"""Simulated hosts: the turns of a stack in virtual time, on a machine that takes its time.

A host is busy for as long as its CPU model says. Inputs that come while it is busy or asleep wait in a
bounded queue, as in a socket buffer; how many of them one turn takes in is for `Bursts` to say.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from random import Random

import msgspec

from semcast.core.events import Note
from semcast.core.handover import Command
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Dest, Frame, Reach, Timer, Write
from semcast.core.stack import Stack
from semcast.core.turn import Renew, Turn
from semcast.core.views import View
from semcast.history import Recorder
from semcast.sim.chronicle import Chronicle
from semcast.sim.disks import HostDisk, Synced
from semcast.sim.networks import Network, Packet
from semcast.sim.programs import Programs
from semcast.sim.replica import Replicas
from semcast.sim.scheduler import Scheduler
from semcast.sim.statistics import HostStatistics
from semcast.wire import Codec, Datagram

Input = Packet | Timer | Synced | Command
INBOX_LIMIT = 4096


class CpuModel(msgspec.Struct, frozen=True):
    """Virtual time a host spends: for each datagram in and out, and for each frame it handles."""

    receive: Nanos = 10_000
    send: Nanos = 10_000
    frame: Nanos = 0


class Surroundings(msgspec.Struct, frozen=True):
    """What the hosts of a cluster have in common."""

    scheduler: Scheduler
    """Virtual time."""
    network: Network
    """The wires."""
    numbers: Mapping[str, int]
    """Of the members, by name."""
    codec: Codec
    recorder: Recorder | None
    """Of the run; None where nothing is recorded."""
    cpu: CpuModel
    programs: Programs
    announces: bool
    """Whether the stack says itself when a message leaves."""
    renew: Renew
    """Who goes on when a group went on without one of its members."""


class Host:
    """One process on one machine: its stack, its application, and what they do to the world."""

    __slots__ = (
        "_chronicle",
        "_codec",
        "_cpu",
        "_disk",
        "_free_at",
        "_gather",
        "_high_water",
        "_inbox",
        "_mailbox",
        "_most",
        "_much",
        "_network",
        "_numbers",
        "_running",
        "_scheduler",
        "_sends",
        "_timers",
        "_turn",
        "_wake_planned",
        "_watches_buffers",
        "after_turn",
        "application",
        "crashed",
        "number",
        "started",
        "stats",
    )

    def __init__(
        self,
        number: int,
        member: MemberId,
        stack: Stack,
        around: Surroundings,
        rng: Random | None,
        disk: HostDisk | None,
    ) -> None:
        self.number = number
        self.stats = HostStatistics()
        self.crashed = self.started = False
        self.after_turn: Callable[[], None] | None = None
        """Called after every turn, where somebody looks closely."""
        self._numbers = around.numbers
        self._scheduler = around.scheduler
        self._network = around.network
        self._codec = around.codec
        self._cpu = around.cpu
        self._disk = disk
        self._inbox: deque[Input] = deque()
        self._free_at: Nanos = 0
        self._wake_planned = self._running = False
        self._timers: dict[Timer, Nanos] = {}
        self._sends: list[tuple[Dest, Frame]] = []
        self._high_water = 0
        programs = around.programs
        self._most = 1 if programs.bursts is None else programs.bursts.most
        self._gather = 0 if programs.bursts is None else programs.bursts.gather
        self._much = 2 * programs.queue_messages  # more than this in the mailbox is excess
        self.application = programs.start(number, member, self._scheduler, self.stats, rng)
        self.application.reader.goes_on = programs.goes_on
        self.application.nudge = self._nudge
        self._mailbox = self.application.handover.mailbox
        self._chronicle = self._watched(member, around)
        self._watches_buffers = self._chronicle.watches_buffers
        self._turn = self._turns(member, stack, around.renew)
        self._network.attach(number, self._receive)

    def _watched(self, member: MemberId, around: Surroundings) -> Chronicle:
        return Chronicle(
            member,
            around.recorder,
            self.stats,
            self.application,
            self._stop,
            announces=around.announces,
            transfers=around.programs.transfers and not around.programs.goes_on,
        )

    def _turns(self, member: MemberId, stack: Stack, renew: Renew) -> Turn:
        return Turn(
            member,
            stack,
            self.application.handover,
            self,
            watchers=(self._chronicle,),
            renew=renew,
            certificates=self._chronicle.certificates,
        )

    @property
    def member(self) -> MemberId:
        """Who this is now."""
        return self._turn.member

    @property
    def stack(self) -> Stack:
        """Its protocol."""
        return self._turn.stack

    @property
    def owed(self) -> int:
        """Confirmations that its stack has yet to answer."""
        return self._turn.owed

    @property
    def view(self) -> View | None:
        """The last view that its application has seen; that of its stack, where nothing is kept for it."""
        if not self.application.handover.reading.began:
            return self.stack.view()
        return self.application.reader.view

    @property
    def replicas(self) -> Replicas | None:
        """The state that its application has built up, if it builds up one."""
        return self.application.reader.replicas

    @property
    def waiting(self) -> bool:
        """Whether its application made something that has not been sent."""
        return self.application.waiting or self.stack.pending() > 0

    # What happens to it

    def start(self) -> None:
        """Start the stack, and the workload after its first interval."""
        self.started = True
        disk = self._disk
        records = None if disk is None else disk.attach(self._input)
        first = 0 if disk is None else disk.first
        self.call(lambda stack, now: _start(stack, now, disk, records, first))
        self.application.plan_next_message()

    def crash(self) -> None:
        """Stop for ever, in the middle of nothing."""
        self._stop()
        if self._disk is not None:
            self._disk.crash()
        self._chronicle.crashed(self._scheduler.now)

    def note(self, what: Note) -> None:
        """Write down what happens to it from outside, where the rest of the history would not tell."""
        self._chronicle.on_events(self._scheduler.now, [what])

    def sleep(self, until: Nanos) -> None:
        """Do nothing until then."""
        self._free_at = max(self._free_at, until)
        self.application.sleep(until)

    def member_failed(self, member: MemberId) -> None:
        """The failure detector speaks."""
        self.call(lambda stack, now: stack.member_failed(now, member))

    def leave(self) -> None:
        """The application wants out, as soon as what it handed over was taken."""
        self.application.writer.stop()
        self.application.reader.answers.clear()
        self.application.handover.leave()
        self.call(_nothing)

    def call(self, command: Command) -> None:
        """Have something done to the stack."""
        self._input(command)

    def finish(self) -> None:
        """The run is over: let the application take what lies there, and write down its state."""
        if not self.application.handover.reading.began:
            return
        while self.application.handover:
            self.application.reader.read(self._scheduler.now)
        if self.replicas is not None:
            self._chronicle.state(self._scheduler.now, self.replicas)

    def _stop(self) -> None:
        self.crashed = self.application.stopped = True
        self._inbox.clear()

    # Inputs

    def _receive(self, packet: Packet) -> None:
        """A packet arrives: most find the host with nothing else to do, and have a turn of their own."""
        if not self.started or self.crashed:
            return
        now, inbox = self._scheduler.now, self._inbox
        if inbox or self._free_at > now or self._gather or self._running:
            if len(inbox) >= INBOX_LIMIT:
                self.stats.overflowed += 1
            else:
                inbox.append(packet)
                self._plan_wake()
            return
        arrivals: list[tuple[MemberId, list[Frame]]] = []
        self._open(now, packet, arrivals, alone=True)
        self._take_turn(now, arrivals)

    def _input(self, what: Input) -> None:
        if self.crashed:
            return
        now = self._scheduler.now
        if self._inbox or self._free_at > now or self._gather or self._running:
            self._inbox.append(what)
            self._plan_wake()
        else:
            self._take_in(now, (what,))

    def _nudge(self, first: Callable[[], None] | None) -> None:
        """The application did something, or does it when its turn comes."""
        self.call(_nothing if first is None else lambda _stack, _now: first())

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
            self._take_in(now, [self._inbox.popleft() for _ in range(count)])

    def _take_in(self, now: Nanos, inputs: Sequence[Input]) -> None:
        """All of these in one turn."""
        arrivals: list[tuple[MemberId, list[Frame]]] = []
        timers: list[Timer] = []
        synced: list[int] = []
        for each in inputs:
            if isinstance(each, Packet):
                self._open(now, each, arrivals, alone=len(inputs) == 1)
            elif isinstance(each, Timer):
                timers.append(each)
            elif isinstance(each, Synced):
                synced += each.tickets
            else:
                self.application.handover.call(each)
        self._take_turn(now, arrivals, timers, synced)

    def _take_turn(
        self,
        now: Nanos,
        arrivals: Sequence[tuple[MemberId, list[Frame]]],
        timers: Sequence[Timer] = (),
        synced: Sequence[int] = (),
    ) -> None:
        """One turn of the stack; what comes meanwhile waits for the next."""
        application, turn = self.application, self._turn
        self.stats.turns += 1
        application.before_turn(now)
        self._running = True
        turn.run(now, arrivals, timers, synced)
        self._running = False
        queued, excess = turn.stack.queued(), self._mailbox.held - self._much
        if queued or excess > 0:
            self._count_what_waits(queued, excess)
        if self.crashed:
            return
        if application.after_turn(turn):
            self._inbox.append(_nothing)
            self._plan_wake()
        if self.after_turn is not None:
            self.after_turn()

    def _count_what_waits(self, queued: int, excess: int) -> None:
        """Counted here: what lies in the mailbox beyond two lists is excess, whatever the stack thinks."""
        handover = self.application.handover
        stack, stats = self._turn.stack, self.stats
        waiting = queued - handover.reading.reader.excess + (excess if excess > 0 else 0)
        stats.queued = max(stats.queued, waiting)
        size = stack.queued_bytes()
        stats.queued_bytes = max(stats.queued_bytes, size)

    def _open(
        self, now: Nanos, packet: Packet, arrivals: list[tuple[MemberId, list[Frame]]], *, alone: bool
    ) -> None:
        """The frames of a packet, after those that came before it; all hosts that got it share the list."""
        stats, decoded = self.stats, packet.decoded
        stats.datagrams_in += 1
        if not isinstance(decoded, Datagram):
            stats.malformed += 1
            return
        frames, cpu = decoded.frames, self._cpu
        cost = cpu.receive + cpu.frame * len(frames)
        self._free_at = (self._free_at if self._free_at > now else now) + cost
        stats.busy += cost
        if arrivals and arrivals[-1][0] == decoded.source:
            arrivals[-1][1].extend(frames)
        else:
            arrivals.append((decoded.source, frames if alone else list(frames)))

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

    def store(self, now: Nanos, writes: Sequence[Write]) -> None:  # noqa: ARG002
        """On the disk of this host."""
        assert self._disk is not None, "a stack that was not told of a disk wants to write"
        self._disk.write(writes)

    def send(self, now: Nanos, sends: Sequence[tuple[Dest, Frame]]) -> None:  # noqa: ARG002
        """No time passes in the middle of a turn: what is sent there leaves together."""
        self._sends += sends

    def flush(self, now: Nanos) -> None:
        """Put on the wire what was sent."""
        if self._sends:
            sends, self._sends = self._sends, []
            self._transmit(now, sends)
        if self._watches_buffers:
            held = self.stack.buffered()
            if held > self._high_water:
                self._high_water = held
                self._chronicle.held(now, held)

    def wake(self) -> None:
        """The application may look."""
        if not self.crashed:
            self.application.wake(running=self._running)

    def renew(self, member: MemberId) -> None:
        """Another incarnation goes on, on the same machine and with the same application."""
        self._timers.clear()
        self.application.reader.me = member
        if self._disk is not None:
            self._inbox = deque(each for each in self._inbox if not isinstance(each, Synced))
            self._disk.abandon()
        self.crashed = self.application.stopped = False

    def _transmit(self, now: Nanos, sends: Sequence[tuple[Dest, Frame]]) -> None:
        for dest, run in groupby(sends, key=_place):  # in order: a token may leave before packets
            members = dest if isinstance(dest, tuple) else (dest,)
            numbers = [None if each is None else self._numbers[each.name] for each in members]
            assert self.number not in numbers, "a stack sends to itself"
            for data in self._codec.encode(self.member, [frame for _, frame in run]):
                packet = Packet(self.number, data, self._codec.decode(data))
                for to in numbers:
                    self._spend(now, self._cpu.send)
                    self.stats.datagrams_out += 1
                    self.stats.bytes_out += len(data)
                    self._network.transmit(self._free_at if self._free_at > now else now, packet, to)

    def _spend(self, now: Nanos, cost: Nanos) -> None:
        if cost:
            self._free_at = (self._free_at if self._free_at > now else now) + cost
            self.stats.busy += cost


def _start(
    stack: Stack, now: Nanos, disk: HostDisk | None, records: Sequence[bytes] | None, first: int
) -> None:
    if records is not None:
        assert disk is not None
        stack.read_back = disk.read_back
        stack.recover(now, records, first)
    stack.start(now)


def _nothing(_stack: Stack, _now: Nanos) -> None:
    """The application did something: the turn itself looks what."""


def _place(send: tuple[Dest, Frame]) -> MemberId | tuple[MemberId, ...] | None:
    """Whom a frame is for; None for everybody: strangers are members of the same cluster here."""
    dest = send[0]
    return None if isinstance(dest, Reach) else dest
