"""Simulated networks: who gets a packet, when, and how many times.

A network decides arrival times; the hosts decide what to do with what arrives. Faults that belong to the
network (loss, duplicates, reordering, cuts, slow or delayed links) are conditions that can change at
any time. Hosts are numbered from 0.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

import msgspec

from semcast.core.ids import MICROSECOND, SECOND, Nanos
from semcast.sim.scheduler import Scheduler

FRAME_OVERHEAD = 46
"""Bytes of Ethernet, IP and UDP around every datagram."""

IP_OVERHEAD = 48
"""Bytes of IPv6 and UDP around a datagram, which count for the MTU."""

FRAME_GAP = 20
"""Preamble and gap of a frame on a shared wire, in bytes."""


class Packet(msgspec.Struct, frozen=True, gc=False):
    """A datagram under way. Its contents are decoded once, however many hosts get it."""

    source: int
    data: bytes
    decoded: object

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return len(self.data) + FRAME_OVERHEAD


class Conditions(msgspec.Struct):
    """What the network does to packets just now."""

    loss: float = 0.0
    duplication: float = 0.0
    jitter: Nanos = 0
    """Up to so much extra delay, drawn anew for each packet: packets overtake each other."""
    mtu: int | None = None
    """Datagrams that are larger with their IP and UDP headers do not pass, without a word."""


class Network(ABC):
    """Base: faults, counters, and arrival of packets. Subclasses know the wires."""

    def __init__(self, scheduler: Scheduler, rng: Random, hosts: int, conditions: Conditions) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self.hosts = hosts
        self.conditions = conditions
        self._cuts: Counter[tuple[int, int]] = Counter()  # by how many faults
        self._host_loss = [0.0] * hosts
        self._host_delay = [0] * hosts
        self._spared = [0] * hosts  # packets up to so many bytes are neither lost nor delayed at this host
        self._receive: list[Callable[[Packet], None] | None] = [None] * hosts
        self.packets = 0
        self.bytes = 0
        self.lost = 0
        self.oversized = 0

    def attach(self, host: int, receive: Callable[[Packet], None]) -> None:
        """Packets for `host` go to `receive`."""
        self._receive[host] = receive

    def transmit(self, at: Nanos, packet: Packet, dests: Iterable[int]) -> None:
        """Put one packet on the wire for one or many hosts."""
        self.packets += 1
        self.bytes += packet.size
        mtu = self.conditions.mtu
        if mtu is not None and len(packet.data) + IP_OVERHEAD > mtu:
            self.oversized += 1
            return
        self._route(at, packet, list(dests))

    def cut(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Let nothing pass from the first to the second of each pair, from now on."""
        self._cuts.update(pairs)

    def mend(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Undo cuts; what another fault has cut, too, stays so."""
        self._cuts.subtract(pairs)

    def disturb_host(
        self, host: int, *, loss: float | None = None, delay: Nanos | None = None, above: int = 0
    ) -> None:
        """Lose or delay what goes to and from one host and is larger than `above` bytes."""
        self._spared[host] = above
        if loss is not None:
            self._host_loss[host] = loss
        if delay is not None:
            self._host_delay[host] = delay

    def limit_host(self, host: int, bandwidth: int) -> None:
        """Give the link of one host another bandwidth, in bits a second."""
        raise ValueError(
            f"{type(self).__name__} has no link for each host, so none of {bandwidth} bit/s for {host}"
        )

    @abstractmethod
    def _route(self, at: Nanos, packet: Packet, dests: list[int]) -> None:
        """Carry the packet from its source, from `at` on, and let it `_arrive` or count it as lost.

        A link is asked only when the packet gets to it: asked ahead of time, a packet that is still far
        away would stand in the way of those that come first.
        """

    def _arrive(self, packet: Packet, dest: int, arrival: Nanos) -> None:
        conditions = self.conditions
        if self._cuts[packet.source, dest] > 0 or self._lost(packet, dest):
            self.lost += 1
            return
        for host in (packet.source, dest):
            if packet.size > self._spared[host]:
                arrival += self._host_delay[host]
        copies = 1
        if conditions.duplication and self._rng.random() < conditions.duplication:
            copies = 2
        for _ in range(copies):
            extra = self._rng.randrange(conditions.jitter + 1) if conditions.jitter else 0
            receive = self._receive[dest]
            if receive is not None:
                self._scheduler.at(arrival + extra, receive, packet)

    def _lost(self, packet: Packet, dest: int) -> bool:
        loss = self.conditions.loss
        if loss and self._rng.random() < loss:
            return True
        hosts = (packet.source, dest)
        loss = max(self._host_loss[host] if packet.size > self._spared[host] else 0.0 for host in hosts)
        return bool(loss) and self._rng.random() < loss


class Link:
    """One direction of a wire: packets queue for it, and a full queue drops them."""

    __slots__ = ("_bandwidth", "_free_at", "_queue_bytes")

    def __init__(self, bandwidth: int, queue_bytes: int) -> None:
        self._bandwidth = bandwidth
        self._queue_bytes = queue_bytes
        self._free_at: Nanos = 0

    def set_bandwidth(self, now: Nanos, bandwidth: int) -> None:
        """From now on; what is in the queue goes at the new speed, too."""
        backlog = max(self._free_at - now, 0)
        self._free_at = now + backlog * self._bandwidth // bandwidth
        self._bandwidth = bandwidth

    def carry(self, at: Nanos, size: int) -> Nanos | None:
        """When the last bit is through; None if the packet was dropped."""
        start = max(at, self._free_at)
        if (start - at) * self._bandwidth > self._queue_bytes * 8 * SECOND:
            return None
        self._free_at = start + size * 8 * SECOND // self._bandwidth
        return self._free_at


class SwitchedNetwork(Network):
    """Full duplex links to one switch; a multicast takes the sender's link once."""

    def __init__(
        self,
        scheduler: Scheduler,
        rng: Random,
        hosts: int,
        conditions: Conditions,
        *,
        bandwidth: int = 100_000_000,
        latency: Nanos = 20 * MICROSECOND,
        queue_bytes: int = 256 * 1024,
    ) -> None:
        super().__init__(scheduler, rng, hosts, conditions)
        self._latency = latency
        self._up = [Link(bandwidth, queue_bytes) for _ in range(hosts)]
        self._down = [Link(bandwidth, queue_bytes) for _ in range(hosts)]

    def limit_host(self, host: int, bandwidth: int) -> None:
        """Both directions of the host's link."""
        for link in (self._up[host], self._down[host]):
            link.set_bandwidth(self._scheduler.now, bandwidth)

    def _route(self, at: Nanos, packet: Packet, dests: list[int]) -> None:
        at_switch = self._up[packet.source].carry(at, packet.size)
        if at_switch is None:
            self.lost += len(dests)
        else:
            self._scheduler.at(at_switch + self._latency, self._switch, packet, dests)

    def _switch(self, packet: Packet, dests: list[int]) -> None:
        for dest in dests:
            through = self._down[dest].carry(self._scheduler.now, packet.size)
            if through is None:
                self.lost += 1
            else:
                self._arrive(packet, dest, through)


class SharedSegment(Network):
    """One wire for all, as in classic Ethernet: one packet at a time, heard by everybody."""

    def __init__(
        self,
        scheduler: Scheduler,
        rng: Random,
        hosts: int,
        conditions: Conditions,
        *,
        bandwidth: int = 10_000_000,
        latency: Nanos = 5 * MICROSECOND,
        queue_bytes: int = 512 * 1024,
    ) -> None:
        super().__init__(scheduler, rng, hosts, conditions)
        self._latency = latency
        self._wire = Link(bandwidth, queue_bytes)

    def _route(self, at: Nanos, packet: Packet, dests: list[int]) -> None:
        through = self._wire.carry(at, packet.size + FRAME_GAP)
        if through is None:
            self.lost += len(dests)
            return
        for dest in dests:
            self._arrive(packet, dest, through + self._latency)
