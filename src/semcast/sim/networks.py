"""Simulated networks: who gets a packet, when, and how many times.

A network decides arrival times; the hosts decide what to do with what arrives. Faults that belong to the
network (loss, duplicates, reordering, cuts, slow or delayed links) are conditions that can change at
any time. Hosts are numbered from 0.
"""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import chain
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
    """Of what arrives: each host that a multicast reaches loses it, or does not, by itself."""
    duplication: float = 0.0
    jitter: Nanos = 0
    """Up to so much extra delay, drawn anew for each packet: packets overtake each other."""
    mtu: int | None = None
    """Datagrams that are larger with their IP and UDP headers do not pass, without a word."""
    link_loss: float = 0.0
    """Of what crosses a link: a multicast that is lost there is lost for every host behind that link."""


class Network(ABC):
    """Base: faults, counters, and arrival of packets. Subclasses know the wires."""

    def __init__(self, scheduler: Scheduler, rng: Random, hosts: int, conditions: Conditions) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self.hosts = hosts
        self.conditions = conditions
        self._cuts: Counter[tuple[int, int]] = Counter()  # by how many faults
        self._away = [False] * hosts
        self._host_loss = [0.0] * hosts
        self._host_delay = [0] * hosts
        self._troubled = False  # whether any of these says something
        self._spared = [0] * hosts  # packets up to so many bytes are neither lost nor delayed at this host
        self._receive: list[Callable[[Packet], None] | None] = [None] * hosts
        self.packets = 0
        self.bytes = 0
        self.lost = 0
        self.oversized = 0

    def attach(self, host: int, receive: Callable[[Packet], None]) -> None:
        """Packets for `host` go to `receive`."""
        self._receive[host] = receive

    def transmit(self, at: Nanos, packet: Packet, dest: int | None) -> None:
        """Put one packet on the wire for one host, or, with None, for every other host."""
        if self._away[packet.source]:
            self.lost += self._count(dest)
            return
        self.packets += 1
        self.bytes += packet.size
        mtu = self.conditions.mtu
        if mtu is not None and len(packet.data) + IP_OVERHEAD > mtu:
            self.oversized += 1
            return
        self._route(at, packet, dest)

    def cut(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Let nothing pass from the first to the second of each pair, from now on."""
        self._cuts.update(pairs)
        self._look_for_trouble()

    def mend(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Undo cuts; what another fault has cut, too, stays so."""
        self._cuts.subtract(pairs)
        self._cuts = +self._cuts  # without those that no fault has cut
        self._look_for_trouble()

    def unplug(self, host: int) -> None:
        """Its links are down: it sends nothing from now on, and nothing reaches it."""
        self._away[host] = True
        self._look_for_trouble()

    def plug_in(self, host: int) -> None:
        """Its links are up again."""
        self._away[host] = False
        self._look_for_trouble()

    def disturb_host(
        self, host: int, *, loss: float | None = None, delay: Nanos | None = None, above: int = 0
    ) -> None:
        """Lose or delay what goes to and from one host and is larger than `above` bytes."""
        self._spared[host] = above
        if loss is not None:
            self._host_loss[host] = loss
        if delay is not None:
            self._host_delay[host] = delay
        self._look_for_trouble()

    def limit_host(self, host: int, bandwidth: int) -> None:
        """Give the link of one host another bandwidth, in bits a second."""
        raise ValueError(
            f"{type(self).__name__} has no link for each host, so none of {bandwidth} bit/s for {host}"
        )

    def disturb_link(self, a: int, b: int, loss: float) -> None:
        """Lose what crosses one wire, in both directions: all of it with 1, as much as elsewhere with 0."""
        raise ValueError(f"{type(self).__name__} has no wire {a}-{b}, so none that loses {loss:.0%}")

    @abstractmethod
    def _route(self, at: Nanos, packet: Packet, dest: int | None) -> None:
        """Carry the packet from its source, from `at` on, and let it `_arrive` or count it as lost.

        A link is asked only when the packet gets to it: asked ahead of time, a packet that is still far
        away would stand in the way of those that come first.
        """

    def _dests(self, packet: Packet, dest: int | None) -> Iterable[int]:
        """Whom a packet is for, in order of their numbers."""
        if dest is not None:
            return (dest,)
        return chain(range(packet.source), range(packet.source + 1, self.hosts))

    def _count(self, dest: int | None) -> int:
        """How many hosts a packet is for."""
        return self.hosts - 1 if dest is None else 1

    def _cross(self, link: "Link", at: Nanos, size: int, behind: int) -> Nanos | None:
        """Send a packet over a link behind which so many hosts wait for it; None if it is lost there.

        What is lost on the wire has used it all the same.
        """
        through = link.carry(at, size)
        if through is not None:
            loss = link.loss or self.conditions.link_loss
            if not loss or self._rng.random() >= loss:
                return through
            link.lost += 1
        self.lost += behind
        return None

    def _look_for_trouble(self) -> None:
        self._troubled = bool(self._cuts or any(self._away) or any(self._host_loss) or any(self._host_delay))

    def _arrive(self, packet: Packet, dest: int, arrival: Nanos) -> None:
        """Hand a packet to a host, unless something happens to it at the last moment."""
        conditions, receive = self.conditions, self._receive[dest]
        if arrival <= self._scheduler.now:
            self._land(packet, dest)
        elif self._troubled or conditions.loss or conditions.duplication or conditions.jitter:
            self._arrive_in_trouble(packet, dest, arrival)
        elif receive is not None:
            self._scheduler.at(arrival, receive, packet)

    def _land(self, packet: Packet, dest: int) -> None:
        """The packet is there: another event for the same moment would only cost time."""
        conditions = self.conditions
        if self._troubled or conditions.loss or conditions.duplication or conditions.jitter:
            self._arrive_in_trouble(packet, dest, self._scheduler.now)
            return
        receive = self._receive[dest]
        if receive is not None:
            receive(packet)

    def _arrive_in_trouble(self, packet: Packet, dest: int, arrival: Nanos) -> None:
        conditions = self.conditions
        if self._cut_off(packet.source, dest) or self._lost(packet, dest):
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

    def _cut_off(self, source: int, dest: int) -> bool:
        return self._away[dest] or (bool(self._cuts) and (source, dest) in self._cuts)

    def _lost(self, packet: Packet, dest: int) -> bool:
        loss = self.conditions.loss
        if loss and self._rng.random() < loss:
            return True
        hosts = (packet.source, dest)
        loss = max(self._host_loss[host] if packet.size > self._spared[host] else 0.0 for host in hosts)
        return bool(loss) and self._rng.random() < loss


class Link:
    """One direction of a wire: packets queue for it, and a full queue drops them.

    Args:
        bandwidth: in bits a second.
        queue_bytes: what may wait for it.
        queue_packets: how many packets may wait behind the one under way; None for as many as fit.
    """

    __slots__ = (
        "_bandwidth",
        "_free_at",
        "_leave_at",
        "_queue_bytes",
        "_queue_packets",
        "bytes",
        "dropped",
        "loss",
        "lost",
        "packets",
        "queued",
    )

    def __init__(self, bandwidth: int, queue_bytes: int, queue_packets: int | None = None) -> None:
        self._bandwidth = bandwidth
        self._queue_bytes = queue_bytes
        self._queue_packets = queue_packets
        self._leave_at: deque[Nanos] = deque()  # of what is in the queue or under way, where that is counted
        self._free_at: Nanos = 0
        self.loss = 0.0
        """How much of what crosses this link is lost; 0 for as much as on any other."""
        self.packets = 0
        """Carried, those included that were lost on the way."""
        self.bytes = 0
        """Of those."""
        self.lost = 0
        """Carried, and lost on the way."""
        self.queued = 0
        """Carried, and had to wait first."""
        self.dropped = 0
        """Not carried, because the queue was full."""

    def set_bandwidth(self, now: Nanos, bandwidth: int) -> None:
        """From now on; what is in the queue goes at the new speed, too."""
        backlog = max(self._free_at - now, 0)
        self._free_at = now + backlog * self._bandwidth // bandwidth
        slower = [now + max(at - now, 0) * self._bandwidth // bandwidth for at in self._leave_at]
        self._leave_at = deque(slower)
        self._bandwidth = bandwidth

    def carry(self, at: Nanos, size: int) -> Nanos | None:
        """When the last bit is through; None if the packet was dropped."""
        start = self._free_at
        if start > at:
            if self._full(at, start - at):
                self.dropped += 1
                return None
            self.queued += 1
        else:
            start = at
            if self._leave_at:
                self._leave_at.clear()
        self.packets += 1
        self.bytes += size
        self._free_at = start + size * 8 * SECOND // self._bandwidth
        if self._queue_packets is not None:
            self._leave_at.append(self._free_at)
        return self._free_at

    def _full(self, at: Nanos, backlog: Nanos) -> bool:
        """Whether there is no room in the queue, which it takes so long to send."""
        if backlog * self._bandwidth > self._queue_bytes * 8 * SECOND:
            return True
        if self._queue_packets is None:
            return False
        while self._leave_at and self._leave_at[0] <= at:
            self._leave_at.popleft()
        return len(self._leave_at) > self._queue_packets


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

    def _route(self, at: Nanos, packet: Packet, dest: int | None) -> None:
        at_switch = self._cross(self._up[packet.source], at, packet.size, self._count(dest))
        if at_switch is not None:
            self._scheduler.at(at_switch + self._latency, self._switch, packet, dest)

    def _switch(self, packet: Packet, dest: int | None) -> None:
        now, size = self._scheduler.now, packet.size
        for each in self._dests(packet, dest):
            through = self._cross(self._down[each], now, size, 1)
            if through is not None:
                self._arrive(packet, each, through)


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

    def _route(self, at: Nanos, packet: Packet, dest: int | None) -> None:
        through = self._cross(self._wire, at, packet.size + FRAME_GAP, self._count(dest))
        if through is not None:
            for each in self._dests(packet, dest):
                self._arrive(packet, each, through + self._latency)
