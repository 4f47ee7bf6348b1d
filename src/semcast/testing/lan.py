"""The network of a simulated world: hosts with addresses, and the sockets of their processes.

Datagrams travel over the simulator's networks, so they queue, get lost, come twice and overtake each other.
A host reaches itself without the network.
"""

import errno
import os
import socket
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count

from semcast.core.ids import MICROSECOND, Nanos
from semcast.net.addresses import Address, is_loopback
from semcast.net.sockets import (
    LOOPBACK_DATAGRAM,
    NETWORK_DATAGRAM,
    RECEIVE_BUFFER,
    Account,
    Arrival,
    SocketStatistics,
)
from semcast.sim.networks import Network, Packet
from semcast.sim.scheduler import Scheduler

_INSIDE: Nanos = 10 * MICROSECOND
"""How long a datagram takes that does not leave its host."""
_FIRST_PORT = 40_000
_COST = 512
"""Bytes that a datagram takes in a buffer, besides its own."""


def address_of(number: int) -> str:
    """Of a host.

    >>> address_of(0), address_of(300)
    ('10.0.0.1', '10.0.1.45')
    """
    return f"10.0.{(number + 1) >> 8}.{(number + 1) & 255}"


class Lan:
    """Who is where.

    Args:
        scheduler: virtual time.
        network: that carries packets.
        names: of the hosts, in the order of their numbers.
    """

    def __init__(self, scheduler: Scheduler, network: Network, names: Sequence[str]) -> None:
        self.scheduler = scheduler
        self.network = network
        self._numbers = {address_of(number): number for number in range(len(names))}
        self._named = {name: address_of(number) for number, name in enumerate(names)}
        self._at: list[list[SimulatedSockets]] = [[] for _ in names]
        self._ports = [count(_FIRST_PORT) for _ in names]
        self._filenos = count(1)
        for number in range(len(names)):
            network.attach(number, lambda packet, number=number: self._receive(number, packet))  # type: ignore[misc]

    def lookup(self, host: str) -> str | None:
        """The address of a host, by its name."""
        return self._named.get(host)

    def open(
        self, number: int, bind: Address, meeting: Address | None, arrived: Callable[[int], None]
    ) -> "SimulatedSockets":
        """Sockets on a host. Raises OSError where the port is taken or the address is another's."""
        host, port = bind
        if host in ("0.0.0.0", "::"):  # noqa: S104 (nothing is listened to)
            host = address_of(number)
        if host != address_of(number) and not is_loopback(bind):
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        if any(each.address[1] == port for each in self._at[number]):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        port = port or next(self._ports[number])
        made = SimulatedSockets(self, number, (host, port), next(self._filenos), arrived)
        self._at[number].append(made)
        if meeting is not None:
            made.meet(meeting)
        return made

    def close(self, sockets: "SimulatedSockets") -> None:
        """Nothing comes there any more."""
        there = self._at[sockets.number]
        if sockets in there:
            there.remove(sockets)

    def carry(self, source: "SimulatedSockets", data: bytes, dest: Address) -> None:
        """Bring a datagram there, if the network does."""
        number, now = source.number, self.scheduler.now
        packet = Packet(number, data, (source, dest))
        inside, met = is_loopback(source.address), is_meeting(dest)
        to = self._numbers.get(dest[0])
        if met or is_loopback(dest) or to == number:
            self.scheduler.at(now + _INSIDE, self._receive, number, packet)
        if met and not inside:
            self.network.transmit(now, packet, None)
        elif to is not None and to != number and not inside:
            self.network.transmit(now, packet, to)

    def _receive(self, number: int, packet: Packet) -> None:
        assert isinstance(packet.decoded, tuple)
        source, dest = packet.decoded
        met = is_meeting(dest)
        inside = is_loopback(source.address)
        for each in list(self._at[number]):
            if each is source or is_loopback(each.address) != inside:
                continue
            if each.meets_at(dest) if met else each.address == dest:
                each.put((packet.data, source.address, met))


def is_meeting(address: Address) -> bool:
    """Whether it stands for all who meet there."""
    return address[0].startswith("239.")


class SimulatedSockets:
    """In the place of `semcast.net.sockets.Endpoint`. Made by `Lan.open`."""

    def __init__(
        self, lan: Lan, number: int, address: Address, fileno: int, arrived: Callable[[int], None]
    ) -> None:
        self.number = number
        """Of the host."""
        self.address = address
        self.family = socket.AF_INET
        self.account = Account()
        self._lan = lan
        self._fileno = fileno
        self._arrived = arrived
        self._points: dict[Address, int] = {}  # where strangers are met, for how many groups
        self._waiting: list[Arrival] = []
        self._size = 0
        self._drops = 0

    @property
    def stats(self) -> SocketStatistics:
        """What is not counted for somebody else."""
        return self.account.stats

    @property
    def datagram_bytes(self) -> int:
        """As on real networks."""
        return LOOPBACK_DATAGRAM if is_loopback(self.address) else NETWORK_DATAGRAM

    def filenos(self) -> list[int]:
        """One for all of them."""
        return [self._fileno]

    def meet(self, point: Address) -> None:
        """Hear strangers there, too."""
        self._points[point] = self._points.get(point, 0) + 1

    def part(self, point: Address) -> None:
        """Hear them there no more, after the last group."""
        self._points[point] -= 1
        if not self._points[point]:
            del self._points[point]

    def meets_at(self, point: Address) -> bool:
        """Whether strangers are heard there."""
        return point in self._points

    def send(
        self,
        datagrams: Sequence[bytes],
        dests: Iterable[Address],
        account: Account | None = None,
        *,
        probing: bool = False,  # noqa: ARG002 (a host refuses nothing)
    ) -> None:
        """Put each on the network, for each of these."""
        stats = (account or self.account).stats
        dests = list(dests)
        for data in datagrams:
            for dest in dests:
                self._lan.carry(self, data, dest)
                stats.datagrams_out += 1
                stats.bytes_out += len(data)

    def put(self, arrival: Arrival) -> None:
        """A datagram came. There is room for as much as a kernel keeps."""
        size = len(arrival[0]) + _COST
        if self._size + size > RECEIVE_BUFFER:
            self._drops += 1
            return
        self._waiting.append(arrival)
        self._size += size
        self._arrived(self._fileno)

    def receive(self, ready: Collection[int]) -> list[Arrival]:
        """What came."""
        if self._fileno not in ready:
            return []
        found, self._waiting, self._size = self._waiting, [], 0
        self.stats.datagrams_in += len(found)
        self.stats.bytes_in += sum(len(each[0]) for each in found)
        return found

    def keep_out(self, nuisances: Sequence[Address], members: Sequence[Address], *, few: bool) -> None:
        """Nobody: there are no filters here."""

    def count_drops(self) -> int:
        """How much there was no room for, since."""
        found, self._drops = self._drops, 0
        self.stats.kernel_drops += found
        return found

    def close(self) -> None:
        """Nothing comes any more."""
        self._lan.close(self)
        self._waiting = []
