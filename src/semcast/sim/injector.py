"""Injects faults into a simulated group, when their time comes or where an ambush waits for its chance."""

from collections.abc import Callable
from random import Random

from semcast.core.events import Note
from semcast.core.ids import MICROSECOND, Nanos
from semcast.sim.absence import Absence
from semcast.sim.ambushes import caught_by
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
    Disconnect,
    DiskCopied,
    DiskFull,
    DiskLost,
    DiskPutBack,
    DiskStall,
    Leave,
    LinkDown,
    LinkLoss,
    Loss,
    Offline,
    Partition,
    Reconnect,
    Recover,
    Sleep,
    SlowLink,
    pairs,
)
from semcast.sim.hosts import Host
from semcast.sim.networks import Network
from semcast.sim.scheduler import Scheduler
from semcast.specs.replication.kinds import PUT_BACK


class FaultInjector:
    """Does to hosts, disks and network what faults say.

    Args:
        scheduler: virtual time.
        network: the wires.
        hosts: by number; who restarts takes the place of who crashed.
        disks: of the hosts; none if they have none.
        rng: chance.
        restart: starts the next incarnation of a member that crashed.
        absence: what a program says to its stack that knows when its machine is away.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        network: Network,
        hosts: list[Host],
        disks: list[HostDisk],
        rng: Random,
        restart: Callable[[int], None],
        absence: Absence,
    ) -> None:
        self._scheduler = scheduler
        self._network = network
        self._hosts = hosts
        self._disks = disks
        self._rng = rng
        self._restart = restart
        self._absence = absence
        self._ordinary_loss = network.conditions.loss
        self._ordinary_link_loss = network.conditions.link_loss
        self._close: dict[Ambush, Nanos] = {}  # those that look after every turn, and until when
        self._seen: list[tuple[str, ...]] = [()] * len(hosts)  # phases, after the turn before

    def heal(self) -> None:
        """From now on nothing is lost or doubled; faults under way end in their time."""
        conditions = self._network.conditions
        conditions.loss = conditions.duplication = self._ordinary_loss = 0.0
        conditions.link_loss = self._ordinary_link_loss = 0.0

    def inflict(self, fault: AnyFault) -> None:
        """Let a fault happen now."""
        now = self._scheduler.now
        match fault:
            case Crash(member=number, detected_after=after):
                self.crash(number, now + after)
            case CrashAll(window=window, detected_after=after):
                for number in range(len(self._hosts)):
                    at = now + self._rng.randint(0, window)
                    self._scheduler.at(at, self.crash, number, at + after)
            case Recover(member=number, with_disk=with_disk):
                self._recover(number, with_disk=with_disk)
            case Leave(member=number):
                self._hosts[number].leave()
                self._scheduler.at(now + LEAVE_PATIENCE, self._give_up, self._hosts[number])
            case Sleep(member=number, duration=duration):
                self._hosts[number].sleep(now + duration)
            case Disconnect(member=number, notice=None):
                self._network.unplug(number)
            case Disconnect(member=number, notice=int(notice)):
                self._hosts[number].call(self._absence.goes)
                self._scheduler.at(now + notice, self._network.unplug, number)
            case Reconnect(member=number, announced=announced):
                self._network.plug_in(number)
                if announced:
                    self._hosts[number].call(self._absence.returns)
            case Loss() | LinkLoss() | LinkDown() | Delay() | Cut() | Partition() | SlowLink():
                self._harm_network(fault)
            case DiskStall() | DiskFull() | DiskLost() | BitRot() | DiskCopied() | DiskPutBack():
                self._harm_disk(fault)
            case Offline(member=number, do=do):
                self.crash(number, now)
                if not self._disks[number].damaged:
                    self._disks[number].amend(do)
            case Deed(member=number, do=do):
                self._hosts[number].call(lambda _stack, at: do([host.stack for host in self._hosts], at))
            case Ambush() if fault.closely or fault.syncing:
                self._close[fault] = now + fault.patience
                self._look_closely()
            case Ambush():
                self._lurk(fault, fault.at + fault.patience, [()] * len(self._hosts))

    def _harm_network(self, fault: Loss | LinkLoss | LinkDown | Delay | Cut | Partition | SlowLink) -> None:
        """Until the fault is over."""
        network, over = self._network, self._scheduler.now + fault.duration
        match fault:
            case Loss(rate=rate, member=None):
                network.conditions.loss = max(self._ordinary_loss, rate)
                self._scheduler.at(over, self._end_loss)
            case Loss(rate=rate, member=int(number), above=above):
                network.disturb_host(number, loss=rate, above=above)
                self._scheduler.at(over, self._disturb, number, 0.0, None)
            case LinkLoss(rate=rate):
                network.conditions.link_loss = max(self._ordinary_link_loss, rate)
                self._scheduler.at(over, self._end_link_loss)
            case LinkDown(nodes=nodes):
                network.disturb_link(*nodes, 1.0)
                self._scheduler.at(over, network.disturb_link, *nodes, 0.0)
            case Delay(member=number, extra=extra, above=above):
                network.disturb_host(number, delay=extra, above=above)
                self._scheduler.at(over, self._disturb, number, None, 0)
            case Cut() | Partition():
                network.cut(pairs(fault))
                self._scheduler.at(over, network.mend, pairs(fault))
            case SlowLink(member=number, bandwidth=bandwidth, normal=normal):
                network.limit_host(number, bandwidth)
                self._scheduler.at(over, network.limit_host, number, normal)

    def _harm_disk(self, fault: DiskStall | DiskFull | DiskLost | BitRot | DiskCopied | DiskPutBack) -> None:
        if not self._disks:
            return
        disk, now = self._disks[fault.member], self._scheduler.now
        match fault:
            case DiskStall(duration=duration):
                disk.stall(now + duration)
            case DiskFull(duration=duration):
                disk.fill(now + duration)
            case DiskLost(member=number):
                self.crash(number, now)
                disk.replace()
            case BitRot():
                disk.rot()
            case DiskCopied():
                disk.copy()
            case DiskPutBack(member=number) if disk.copied and not self._hosts[number].crashed:
                self._hosts[number].note(Note(PUT_BACK.value))
                self.crash(number, now)
                disk.put_back()

    def _lurk(self, ambush: Ambush, until: Nanos, before: list[tuple[str, ...]]) -> None:
        """Look again and again; closely, while a recovery is under way."""
        now = self._scheduler.now
        phases, syncing = self._phases()
        if caught := caught_by(ambush, before, phases, syncing):
            self._strike(ambush, caught)
        elif now < until:
            pause = 10 * MICROSECOND if any("evs" in each for each in phases) else 200 * MICROSECOND
            self._scheduler.at(now + pause, self._lurk, ambush, until, phases)

    def _look_closely(self) -> None:
        """Called after every turn as long as an ambush wants that."""
        phases, syncing = self._phases()
        for ambush, until in list(self._close.items()):
            caught = caught_by(ambush, self._seen, phases, syncing)
            if caught or self._scheduler.now > until:
                del self._close[ambush]
            if caught:
                self._strike(ambush, caught)
        self._seen = phases
        for host in self._hosts:
            host.after_turn = self._look_closely if self._close else None

    def _phases(self) -> tuple[list[tuple[str, ...]], list[bool]]:
        """Of each member, none of one that crashed; and whose disk has a sync under way."""
        phases = [() if host.crashed else host.stack.phases() for host in self._hosts]
        return phases, [disk.syncing for disk in self._disks] or [False] * len(self._hosts)

    def _strike(self, ambush: Ambush, caught: list[int]) -> None:
        now = self._scheduler.now
        if ambush.duration is None:
            for number in caught if ambush.everybody else caught[:1]:
                self.crash(number, now)
                if ambush.back_after is not None:
                    self._scheduler.at(now + ambush.back_after, self._back, number)
            return
        rest = [number for number in range(len(self._hosts)) if number not in caught]
        split = pairs(Partition(now, ambush.duration, (tuple(caught), tuple(rest))))
        self._network.cut(split)
        self._scheduler.at(now + ambush.duration, self._network.mend, split)

    def crash(self, number: int, detected: Nanos) -> None:
        """A process ends; the others are told when that is detected."""
        host = self._hosts[number]
        if host.crashed:
            return
        host.crash()
        for other in self._hosts:
            if other is not host:
                self._scheduler.at(detected, other.member_failed, host.member)

    def _give_up(self, host: Host) -> None:
        """A process that wanted to leave ends, though its group has not let it go yet."""
        if self._hosts[host.number] is host:
            self.crash(host.number, self._scheduler.now)

    def _back(self, number: int) -> None:
        self._recover(number, with_disk=True)

    def _recover(self, number: int, *, with_disk: bool) -> None:
        if not self._hosts[number].crashed:
            return
        if self._disks and not with_disk:
            self._disks[number].replace()
        elif self._disks and self._disks[number].damaged:
            return  # its process says what is damaged, and ends
        self._restart(number)

    def _end_loss(self) -> None:
        self._network.conditions.loss = self._ordinary_loss

    def _end_link_loss(self) -> None:
        self._network.conditions.link_loss = self._ordinary_link_loss

    def _disturb(self, number: int, loss: float | None, delay: Nanos | None) -> None:
        self._network.disturb_host(number, loss=loss, delay=delay)
