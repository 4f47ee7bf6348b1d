"""A simulated group: hosts on a network, workloads, faults, and the history of what happened."""

from collections.abc import Mapping, Sequence
from random import Random

from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.views import View
from semcast.history import History, Recorder, RunInfo
from semcast.protocols.backoff import CAP
from semcast.protocols.families import FAMILIES
from semcast.sim.absence import UNTOLD, Absence
from semcast.sim.disks import HostDisk
from semcast.sim.faults import AnyFault, ends_at
from semcast.sim.hosts import CpuModel, Host, Surroundings
from semcast.sim.injector import FaultInjector
from semcast.sim.networks import Network
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import StackFactory
from semcast.wire import Codec

GROUP = "sim"
DATAGRAM_LIMIT = 1400
QUIET: Nanos = 3 * SECOND
"""A healed group in which nothing is sent or delivered for so long has done all it will do.

Longer than any timeout of most protocols, and counted from the last fault or its detection; a family whose
members repeat something more seldom says so. Who is apart may be held off for `CAP` more.
"""


class Cluster:
    """Members 0..n-1 of one group.

    Everything that happens follows from the arguments: give the same ones, get the same history.

    Args:
        scheduler: virtual time.
        network: the wires.
        stack: makes the protocol of each member.
        size: how many members.
        rng: all chance but the network's.
        programs: what members send, and how they read.
        cpu: what hosts pay for datagrams.
        record: description of the history to record; None for none.
        announces: whether the stack says itself when a message leaves.
        datagram: bytes that frames share a datagram up to; with 1, each goes alone.
        disks: whether every host has one.
        name_bytes: how long the names of members are, at least.
        quiet: how long nothing happens to messages before all is done that will be.
        absence: what a program says to its stack that knows when its machine is away.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        network: Network,
        stack: StackFactory,
        *,
        size: int,
        rng: Random,
        programs: Programs,
        cpu: CpuModel | None = None,
        record: RunInfo | None = None,
        announces: bool = False,
        datagram: int = DATAGRAM_LIMIT,
        disks: bool = False,
        name_bytes: int = 0,
        quiet: Nanos = QUIET,
        absence: Absence = UNTOLD,
    ) -> None:
        self.scheduler = scheduler
        self.network = network
        self.members = member_names(size, name_bytes)
        self.recorder = None if record is None else Recorder(record)
        self.united_after: Nanos | None = None
        """How long after the last trouble all came to be in one view, and stayed there; None if never."""
        self._stack = stack
        self._rng = rng
        self._quiet = quiet
        self._over = False  # everybody reads from now on
        self._troubled_until: Nanos = 0
        codec = Codec(GROUP, self.members, datagram, tuple(FAMILIES.frames()))
        numbers = {member.name: number for number, member in enumerate(self.members)}
        around = (scheduler, network, numbers, codec, self.recorder, cpu or CpuModel())
        self._around = Surroundings(*around, programs, announces, self._renew)
        self._disks = [self._disk(number) for number in range(size if disks else 0)]
        self.hosts = [self._build(number, member) for number, member in enumerate(self.members)]
        self._injector = FaultInjector(
            scheduler, network, self.hosts, self._disks, rng, self._restart, absence
        )

    def set_sync_time(self, pace: Nanos) -> None:
        """Let syncs of all disks take about so long."""
        for disk in self._disks:
            disk.take_about(pace)

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
            self.scheduler.at(fault.at, self._injector.inflict, fault)

    def run(self, until: Nanos) -> None:
        """Let virtual time pass."""
        self.scheduler.run(until)

    def heal(self) -> None:
        """From now on nothing is lost or doubled, and everybody reads; faults under way end in their time."""
        self._injector.heal()
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
            elif self.scheduler.now - quiet_since >= self._quiet + (CAP if self.united_after is None else 0):
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
        there = [host for host in self.hosts if not host.crashed]
        views = [host.stack.view() for host in there]
        everybody = {host.member for host in there}
        if not views or (set(views[0].members) == everybody and all(view == views[0] for view in views)):
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

    def _build(self, number: int, member: MemberId) -> Host:
        stack = self._stack(member, self.members, Random(self._rng.getrandbits(64)), Outbox())
        bursts = self._around.programs.bursts
        rng = None if bursts is None else Random(self._rng.getrandbits(64))
        disk = self._disks[number] if self._disks else None
        host = Host(number, member, stack, self._around, rng, disk)
        if self._over:
            host.application.catch_up()
        return host

    def _disk(self, number: int) -> HostDisk:
        rng = Random(self._rng.getrandbits(64))
        return HostDisk(self.scheduler, rng, lambda: self._injector.crash(number, self.scheduler.now))

    def _restart(self, number: int) -> None:
        """Another incarnation takes the place of one that crashed."""
        former = self.hosts[number]
        again = MemberId(former.member.name, former.member.incarnation + 1)
        if self.recorder is not None:
            self.recorder.recover(self.scheduler.now, again)
        self.hosts[number] = self._build(number, again)
        self.hosts[number].after_turn = former.after_turn
        self.hosts[number].start()

    def _renew(self, former: MemberId) -> tuple[MemberId, Random]:
        """A process whose group went on without it comes back."""
        return MemberId(former.name, former.incarnation + 1), Random(self._rng.getrandbits(64))


def member_names(size: int, name_bytes: int = 0) -> tuple[MemberId, ...]:
    """p0, p1, ... with names that sort as they are numbered, and are as long as is asked for."""
    width = len(str(size - 1))
    return tuple(MemberId(f"p{number:0{width}}".ljust(name_bytes, "-")) for number in range(size))
