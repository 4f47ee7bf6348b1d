"""A simulated group: hosts on a network, workloads, faults, and the history of what happened."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from semcast.core.handover import Handover
from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.views import View
from semcast.history import History, Recorder, RunInfo
from semcast.protocols.backoff import CAP
from semcast.protocols.families import FAMILIES
from semcast.sim.ambushes import caught_by
from semcast.sim.bursts import Bursts
from semcast.sim.disks import HostDisk
from semcast.sim.faults import (
    LEAVE_PATIENCE,
    Ambush,
    AnyFault,
    BitRot,
    Crash,
    CrashAll,
    Cut,
    Deed,
    Delay,
    DiskFull,
    DiskLost,
    DiskStall,
    Leave,
    Loss,
    Partition,
    Recover,
    Sleep,
    SlowLink,
    ends_at,
    pairs,
)
from semcast.sim.habits import READER, Habit
from semcast.sim.hosts import CpuModel, Host
from semcast.sim.networks import Network
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import StackFactory
from semcast.sim.workloads import Source
from semcast.wire import Codec

GROUP = "sim"
DATAGRAM_LIMIT = 1400
QUIET: Nanos = 3 * SECOND
"""A healed group in which nothing is sent or delivered for so long has done all it will do.

Longer than any timeout of the protocols, and counted from the last fault or its detection. Who is apart may
be held off for `CAP` more.
"""


class Cluster:
    """Members 0..n-1 of one group.

    Everything that happens follows from the arguments: give the same ones, get the same history.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        network: Network,
        stack: StackFactory,
        *,
        size: int,
        rng: Random,
        sources: dict[int, Source],
        app_delays: dict[int, Nanos] | None = None,
        cpu: CpuModel | None = None,
        record: RunInfo | None = None,
        observe: bool = True,
        announces: bool = False,
        transfers: bool = False,
        goes_on: bool = False,
        datagram: int = DATAGRAM_LIMIT,
        again: Callable[[int, MemberId], Source | None] | None = None,
        bursts: Bursts | None = None,
        habits: Mapping[int, Habit] | None = None,
        queue_messages: int = 1024,
        handover: type[Handover] = Handover,
        disks: bool = False,
        name_bytes: int = 0,
    ) -> None:
        """Put the hosts on the network.

        Args:
            scheduler: virtual time.
            network: the wires.
            stack: makes the protocol of each member.
            size: how many members.
            rng: all chance but the network's.
            sources: what members send.
            app_delays: how long applications take for a message.
            cpu: what hosts pay for datagrams.
            record: description of the history to record; None for none.
            observe: whether applications build up state.
            announces: whether the stack says itself when a message leaves.
            transfers: whether the stack hands over the state of applications.
            goes_on: whether they keep it where their member comes back as another incarnation.
            datagram: bytes that frames share a datagram up to; with 1, each goes alone.
            again: what a member sends that starts again as another incarnation.
            bursts: how inputs and messages are grouped; None for one at a time.
            habits: what programs do that do not just read.
            queue_messages: how many messages may wait for a program.
            handover: what lies between programs and stacks, or a mutant of it.
            disks: whether every host has one.
            name_bytes: how long the names of members are, at least.
        """
        self.scheduler = scheduler
        self.network = network
        self.members = member_names(size, name_bytes)
        self.recorder = None if record is None else Recorder(record)
        self._stack = stack
        self._rng = rng
        self._cpu = CpuModel() if cpu is None else cpu
        self._observe = observe
        self._announces = announces
        self._transfers = transfers
        self._goes_on = goes_on
        self._again = again
        self._bursts = bursts
        self._habits = habits or {}
        self._queue_messages = queue_messages
        self._handover = handover
        self._over = False  # everybody reads from now on
        self._ordinary_loss = network.conditions.loss
        self._troubled_until: Nanos = 0
        self.united_after: Nanos | None = None
        """How long after the last trouble all came to be in one view, and stayed there; None if never."""
        self._delays = app_delays or {}
        codec = Codec(GROUP, self.members, datagram, tuple(FAMILIES.frames()))
        self._codec = codec
        self._disks = [self._disk(number) for number in range(size if disks else 0)]
        self._close: dict[Ambush, Nanos] = {}  # those that look after every turn, and until when
        self._seen: list[tuple[str, ...]] = [()] * size  # phases, after the turn before
        self.hosts = [
            self._build(number, member, sources.get(number)) for number, member in enumerate(self.members)
        ]

    def start(self, late: Mapping[int, Nanos] | None = None) -> None:
        """Start every member; some of them later, if it says when."""
        times = late or {}
        for number, host in enumerate(self.hosts):
            if number in times:
                self._troubled_until = max(self._troubled_until, times[number])
                self.scheduler.at(times[number], self._start_late, host)
            else:
                host.start()

    def _start_late(self, host: Host) -> None:
        if not host.crashed:
            host.start()

    def schedule(self, faults: Sequence[AnyFault]) -> None:
        """Let faults happen when their time comes."""
        for fault in faults:
            self._troubled_until = max(self._troubled_until, ends_at(fault))
            self.scheduler.at(fault.at, self._inflict, fault)

    def run(self, until: Nanos) -> None:
        """Let virtual time pass."""
        self.scheduler.run(until)

    def heal(self) -> None:
        """From now on nothing is lost or doubled, and everybody reads; faults under way end in their time."""
        conditions = self.network.conditions
        conditions.loss = conditions.duplication = self._ordinary_loss = 0.0
        self._over = True
        for host in self.hosts:
            host.application.catch_up()

    def settle(self, patience: Nanos) -> bool:
        """Run until nothing more happens to messages; False if that takes longer than `patience`."""
        self.scheduler.run(min(self._troubled_until, self.scheduler.now + patience))
        healed = self.scheduler.now
        deadline = healed + patience
        seen, quiet_since = self._progress(), healed
        while self.scheduler.now < deadline:
            self.scheduler.run(self.scheduler.now + 50 * MILLISECOND)
            self._look_for_unity(healed)
            progress = self._progress()
            if progress != seen:
                seen, quiet_since = progress, self.scheduler.now
            elif self.scheduler.now - quiet_since >= QUIET + (CAP if self.united_after is None else 0):
                if not self._read_at_last():
                    return True
                quiet_since = self.scheduler.now
        return False

    def _read_at_last(self) -> bool:
        """Where nobody is stuck, programs that never read do now; returns whether there are any."""
        there = [host for host in self.hosts if not host.crashed]
        if any(host.waiting for host in there):
            return False
        began = [host.application.read_at_last() for host in there]  # all of them, not up to the first
        return any(began)

    def _look_for_unity(self, healed: Nanos) -> None:
        there = {host.member for host in self.hosts if not host.crashed}
        views = [host.stack.view() for host in self.hosts if not host.crashed]
        if all(view == views[0] and set(view.members) == there for view in views):
            if self.united_after is None:
                self.united_after = self.scheduler.now - healed
        else:
            self.united_after = None

    def finish(self, *, quiesced: bool) -> History:
        """Close the books."""
        assert self.recorder is not None, "a cluster without a recorder has no history"
        for host in self.hosts:
            if not host.crashed:
                host.finish()
        return self.recorder.close(quiesced=quiesced)

    def _progress(self) -> tuple[int, int, int, int, list[View | None]]:
        sent = sum(host.stack.stats.sent for host in self.hosts)
        delivered = sum(host.stack.stats.delivered for host in self.hosts)
        skipped = sum(host.stack.stats.skipped for host in self.hosts)
        read = sum(host.stats.read for host in self.hosts)
        return sent, delivered, skipped, read, [host.view for host in self.hosts]

    def _build(self, number: int, member: MemberId, source: Source | None) -> Host:
        others = {other.name: rank for rank, other in enumerate(self.members) if rank != number}
        rng = Random(self._rng.getrandbits(64))
        host = Host(
            number,
            member,
            self._stack(member, self.members, rng, Outbox()),
            others,
            self.scheduler,
            self.network,
            self._codec,
            self.recorder,
            cpu=self._cpu,
            app_delay=self._delays.get(number, 0),
            source=source,
            observe=self._observe,
            announces=self._announces,
            transfers=self._transfers,
            goes_on=self._goes_on,
            bursts=self._bursts,
            rng=None if self._bursts is None else Random(self._rng.getrandbits(64)),
            renew=self._renew,
            habit=self._habits.get(number, READER),
            queue_messages=self._queue_messages,
            handover=self._handover,
            disk=self._disks[number] if self._disks else None,
        )
        if self._over:
            host.application.catch_up()
        return host

    def _disk(self, number: int) -> HostDisk:
        rng = Random(self._rng.getrandbits(64))
        return HostDisk(self.scheduler, rng, lambda: self._crash(number, self.scheduler.now))

    def _renew(self, former: MemberId) -> tuple[MemberId, Random]:
        """A process whose group went on without it comes back."""
        return MemberId(former.name, former.incarnation + 1), Random(self._rng.getrandbits(64))

    def _inflict(self, fault: AnyFault) -> None:
        now = self.scheduler.now
        match fault:
            case Crash(member=number, detected_after=after):
                self._crash(number, now + after)
            case CrashAll(window=window, detected_after=after):
                for number in range(len(self.hosts)):
                    at = now + self._rng.randint(0, window)
                    self.scheduler.at(at, self._crash, number, at + after)
            case Recover(member=number, with_disk=with_disk):
                self._recover(number, with_disk=with_disk)
            case Leave(member=number):
                self.hosts[number].leave()
                self.scheduler.at(now + LEAVE_PATIENCE, self._give_up, self.hosts[number])
            case Sleep(member=number, duration=duration):
                self.hosts[number].sleep(now + duration)
            case Loss(duration=duration, rate=rate, member=None):
                self.network.conditions.loss = max(self._ordinary_loss, rate)
                self.scheduler.at(now + duration, self._end_loss)
            case Loss(duration=duration, rate=rate, member=int(number), above=above):
                self.network.disturb_host(number, loss=rate, above=above)
                self.scheduler.at(now + duration, self._disturb, number, 0.0, None)
            case Cut() | Partition():
                self.network.cut(pairs(fault))
                self.scheduler.at(now + fault.duration, self.network.mend, pairs(fault))
            case SlowLink(duration=duration, member=number, bandwidth=bandwidth, normal=normal):
                self.network.limit_host(number, bandwidth)
                self.scheduler.at(now + duration, self.network.limit_host, number, normal)
            case DiskStall() | DiskFull() | DiskLost() | BitRot():
                self._harm_disk(fault)
            case Deed(member=number):
                self.hosts[number].call(lambda _stack, at: fault.do([host.stack for host in self.hosts], at))
            case Ambush() if fault.closely or fault.syncing:
                self._close[fault] = now + fault.patience
                self._look_closely()
            case Ambush():
                self._lurk(fault, fault.at + fault.patience, [()] * len(self.hosts))
            case Delay(duration=duration, member=number, extra=extra, above=above):
                self.network.disturb_host(number, delay=extra, above=above)
                self.scheduler.at(now + duration, self._disturb, number, None, 0)

    def _harm_disk(self, fault: DiskStall | DiskFull | DiskLost | BitRot) -> None:
        if not self._disks:
            return
        disk, now = self._disks[fault.member], self.scheduler.now
        match fault:
            case DiskStall(duration=duration):
                disk.stall(now + duration)
            case DiskFull(duration=duration):
                disk.fill(now + duration)
            case DiskLost(member=number):
                self._crash(number, now)
                disk.replace()
            case BitRot():
                disk.rot()

    def _lurk(self, ambush: Ambush, until: Nanos, before: list[tuple[str, ...]]) -> None:
        """Look again and again; closely, while a recovery is under way."""
        now = self.scheduler.now
        phases, syncing = self._phases()
        if caught := caught_by(ambush, before, phases, syncing):
            self._strike(ambush, caught)
        elif now < until:
            pause = 10 * MICROSECOND if any("evs" in each for each in phases) else 200 * MICROSECOND
            self.scheduler.at(now + pause, self._lurk, ambush, until, phases)

    def _look_closely(self) -> None:
        """Called after every turn as long as an ambush wants that."""
        phases, syncing = self._phases()
        for ambush, until in list(self._close.items()):
            caught = caught_by(ambush, self._seen, phases, syncing)
            if caught or self.scheduler.now > until:
                del self._close[ambush]
            if caught:
                self._strike(ambush, caught)
        self._seen = phases
        for host in self.hosts:
            host.after_turn = self._look_closely if self._close else None

    def _phases(self) -> tuple[list[tuple[str, ...]], list[bool]]:
        """Of each member, none of one that crashed; and whose disk has a sync under way."""
        phases = [() if host.crashed else host.stack.phases() for host in self.hosts]
        return phases, [disk.syncing for disk in self._disks] or [False] * len(self.hosts)

    def _strike(self, ambush: Ambush, caught: list[int]) -> None:
        now = self.scheduler.now
        if ambush.duration is None:
            for number in caught if ambush.everybody else caught[:1]:
                self._crash(number, now)
                if ambush.back_after is not None:
                    self.scheduler.at(now + ambush.back_after, self._back, number)
            return
        rest = [number for number in range(len(self.hosts)) if number not in caught]
        split = pairs(Partition(now, ambush.duration, (tuple(caught), tuple(rest))))
        self.network.cut(split)
        self.scheduler.at(now + ambush.duration, self.network.mend, split)

    def _crash(self, number: int, detected: Nanos) -> None:
        host = self.hosts[number]
        if host.crashed:
            return
        host.crash()
        for other in self.hosts:
            if other is not host:
                self.scheduler.at(detected, other.member_failed, host.member)

    def _give_up(self, host: Host) -> None:
        """A process that wanted to leave ends, though its group has not let it go yet."""
        if self.hosts[host.number] is host:
            self._crash(host.number, self.scheduler.now)

    def _back(self, number: int) -> None:
        self._recover(number, with_disk=True)

    def _recover(self, number: int, *, with_disk: bool) -> None:
        host = self.hosts[number]
        if not host.crashed:
            return
        if self._disks and not with_disk:
            self._disks[number].replace()
        elif self._disks and self._disks[number].damaged:
            return  # its process says what is damaged, and ends
        again = MemberId(host.member.name, host.member.incarnation + 1)
        if self.recorder is not None:
            self.recorder.recover(self.scheduler.now, again)
        source = None if self._again is None else self._again(number, again)
        self.hosts[number] = self._build(number, again, source)
        self.hosts[number].after_turn = host.after_turn
        self.hosts[number].start()

    def _end_loss(self) -> None:
        self.network.conditions.loss = self._ordinary_loss

    def _disturb(self, number: int, loss: float | None, delay: Nanos | None) -> None:
        self.network.disturb_host(number, loss=loss, delay=delay)


def member_names(size: int, name_bytes: int = 0) -> tuple[MemberId, ...]:
    """p0, p1, ... with names that sort as they are numbered, and are as long as is asked for."""
    width = len(str(size - 1))
    return tuple(MemberId(f"p{number:0{width}}".ljust(name_bytes, "-")) for number in range(size))
