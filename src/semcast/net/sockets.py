"""UDP from Python, in bursts: one socket of one's own, and one at the meeting point."""

import errno
import socket
import struct
import sys
from collections.abc import Collection, Iterable, Sequence

import msgspec

from semcast.net.addresses import Address, is_loopback

RECEIVE_BUFFER = 4 << 20
LOOPBACK_DATAGRAM = 60_000
"""Bytes of a datagram where nothing cuts it in pieces."""
NETWORK_DATAGRAM = 1400
_LARGEST = 65_535
_BURST = 64
_SEGMENTS = 64
_SEGMENTED = 65_000
"""Bytes that one call may hand to the kernel to be cut into datagrams."""
_ANCILLARY = 128
_SMALL = 512

# Not in the socket module of every Python.
_SOL_UDP = 17
_UDP_SEGMENT = 103
_UDP_GRO = 104
_SO_RXQ_OVFL = 40
_IP_MULTICAST_ALL = 49
_IP_MTU_DISCOVER = 10
_IP_PMTUDISC_DO = 2


Arrival = tuple[bytes, Address, bool]
"""A datagram, where it came from, and whether it came to the meeting point."""


class SocketStatistics(msgspec.Struct):
    """What went over the wire."""

    datagrams_in: int = 0
    datagrams_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    kernel_drops: int = 0
    """Datagrams that came faster than they were read."""
    send_errors: int = 0


class Endpoint:
    """The sockets of one member.

    Args:
        bind: the address of its own; port 0 for any.
        meeting: multicast address where strangers meet; None where peers are listed.
        offload: let the kernel cut and join datagrams, where it can; the same datagrams travel either way.
    """

    def __init__(self, bind: Address, meeting: Address | None = None, *, offload: bool = True) -> None:
        self.stats = SocketStatistics()
        self.offload = False
        self._own = _udp()
        self._meeting_socket: socket.socket | None = None
        self._meeting = meeting
        try:
            self._own.bind(bind)
            self.offload = offload and _enable_offload(self._own)
            if meeting is not None:
                self._open_meeting(bind, meeting)
        except OSError:
            self.close()
            raise
        self.address: Address = self._own.getsockname()

    def _open_meeting(self, bind: Address, meeting: Address) -> None:
        interface = socket.inet_aton(bind[0])
        self._own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
        self._own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        self._own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        self._meeting_socket = _udp()
        self._meeting_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._meeting_socket.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        self._meeting_socket.bind(meeting)
        if self.offload:
            _enable_offload(self._meeting_socket)
        membership = struct.pack("4s4s", socket.inet_aton(meeting[0]), interface)
        self._meeting_socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)

    @property
    def meets(self) -> bool:
        """Whether there is a meeting point."""
        return self._meeting is not None

    @property
    def datagram_bytes(self) -> int:
        """How large a datagram may be: never so large that the network has to cut it."""
        return LOOPBACK_DATAGRAM if is_loopback(self.address) else NETWORK_DATAGRAM

    def filenos(self) -> list[int]:
        """What to wait for."""
        sockets = [self._own, self._meeting_socket]
        return [each.fileno() for each in sockets if each is not None]

    def send(self, datagrams: Sequence[bytes], dests: Iterable[Address]) -> None:
        """Send each datagram to each of several members. What cannot be sent is lost, as on any network."""
        bursts = _bursts(datagrams) if self.offload else [[each] for each in datagrams]
        for burst in bursts:
            size = sum(map(len, burst))
            segment = [] if len(burst) == 1 else [(_SOL_UDP, _UDP_SEGMENT, struct.pack("H", len(burst[0])))]
            for dest in dests:
                try:
                    self._own.sendmsg(burst, segment, 0, dest)
                except OSError as error:
                    self._note(error)
                else:
                    self.stats.datagrams_out += len(burst)
                    self.stats.bytes_out += size

    def announce(self, datagrams: Sequence[bytes]) -> None:
        """Send to everybody at the meeting point, if there is one."""
        if self._meeting is not None:
            self.send(datagrams, [self._meeting])

    def receive(self, ready: Collection[int]) -> list[Arrival]:
        """What has arrived at the sockets that are ready, up to a burst for each."""
        found: list[Arrival] = []
        for each in (self._own, self._meeting_socket):
            if each is not None and each.fileno() in ready:
                self._drain(each, found)
        self.stats.datagrams_in += len(found)
        return found

    def _drain(self, each: socket.socket, found: list[Arrival]) -> None:
        receive, stats, met = each.recvmsg, self.stats, each is self._meeting_socket
        for _ in range(_BURST):
            try:
                data, ancillary, _, address = receive(_LARGEST, _ANCILLARY)
            except BlockingIOError:
                return
            except OSError as error:
                self._note(error)
                return
            if met and address == self.address:
                continue  # one's own words
            stats.bytes_in += len(data)
            size = len(data)
            for level, kind, value in ancillary:
                if level == _SOL_UDP and kind == _UDP_GRO:
                    size = int.from_bytes(value[:2], sys.byteorder)
                elif level == socket.SOL_SOCKET and kind == _SO_RXQ_OVFL:
                    stats.kernel_drops = max(stats.kernel_drops, int.from_bytes(value[:4], sys.byteorder))
            if size >= len(data):
                found.append((data, address, met))
                if size < _SMALL:
                    return  # a token, or little else: no need to ask whether there is more
            else:
                found += [(data[at : at + size], address, met) for at in range(0, len(data), size)]

    def _note(self, error: OSError) -> None:
        """A datagram was lost on the way out: links, routes and addresses come and go, and filters refuse.

        Only what cannot be the network's doing is an error of ours.
        """
        if error.errno in (errno.EBADF, errno.ENOTSOCK, errno.EFAULT):
            raise error
        self.stats.send_errors += 1

    def close(self) -> None:
        """Close the sockets."""
        self._own.close()
        if self._meeting_socket is not None:
            self._meeting_socket.close()


def _bursts(datagrams: Sequence[bytes]) -> list[list[bytes]]:
    """Runs of datagrams that one call can send: all of one size, but for a shorter last one."""
    sizes = list(map(len, datagrams))
    bursts: list[list[bytes]] = []
    start, count = 0, len(datagrams)
    while start < count:
        size = sizes[start]
        limit = min(count, start + max(1, min(_SEGMENTS, _SEGMENTED // max(size, 1))))
        stop = start + 1
        while stop < limit and sizes[stop] == size:
            stop += 1
        if stop < limit and sizes[stop] < size:
            stop += 1  # nothing may follow one that is shorter than the first
        bursts.append(list(datagrams[start:stop]))
        start = stop
    return bursts


def _enable_offload(own: socket.socket) -> bool:
    try:
        own.getsockopt(_SOL_UDP, _UDP_SEGMENT)
        own.setsockopt(_SOL_UDP, _UDP_GRO, 1)
    except OSError:
        return False
    return True


def _udp() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, RECEIVE_BUFFER)
    made.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
    made.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)
    return made
