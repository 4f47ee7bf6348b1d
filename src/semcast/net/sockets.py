"""UDP from Python, in bursts: one socket of one's own, and one at the meeting point."""

import errno
import socket
import struct
from collections.abc import Iterable

import msgspec

from semcast.net.addresses import Address, is_loopback

RECEIVE_BUFFER = 4 << 20
LOOPBACK_DATAGRAM = 60_000
"""Bytes of a datagram where nothing cuts it in pieces."""
NETWORK_DATAGRAM = 1400
_LARGEST = 65_535
_BURST = 64

# Not in the socket module of every Python.
_SO_RXQ_OVFL = 40
_IP_MULTICAST_ALL = 49
_IP_MTU_DISCOVER = 10
_IP_PMTUDISC_DO = 2


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
    """

    def __init__(self, bind: Address, meeting: Address | None = None) -> None:
        self.stats = SocketStatistics()
        self._own = _udp()
        self._meeting_socket: socket.socket | None = None
        self._meeting = meeting
        try:
            self._own.bind(bind)
            if meeting is not None:
                self._open_meeting(bind, meeting)
        except OSError:
            self.close()
            raise
        self.address: Address = self._own.getsockname()
        self._buffer = bytearray(_LARGEST)
        self._view = memoryview(self._buffer)
        self._drops: dict[int, int] = {}

    def _open_meeting(self, bind: Address, meeting: Address) -> None:
        interface = socket.inet_aton(bind[0])
        self._own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
        self._own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        self._own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        self._meeting_socket = _udp()
        self._meeting_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._meeting_socket.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        self._meeting_socket.bind(meeting)
        membership = struct.pack("4s4s", socket.inet_aton(meeting[0]), interface)
        self._meeting_socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)

    @property
    def datagram_bytes(self) -> int:
        """How large a datagram may be: never so large that the network has to cut it."""
        return LOOPBACK_DATAGRAM if is_loopback(self.address) else NETWORK_DATAGRAM

    def filenos(self) -> list[int]:
        """What to wait for."""
        sockets = [self._own, self._meeting_socket]
        return [each.fileno() for each in sockets if each is not None]

    def send(self, data: bytes, dests: Iterable[Address]) -> None:
        """Send one datagram to each of several members. What cannot be sent is lost, as on any network."""
        own, stats, size = self._own, self.stats, len(data)
        for dest in dests:
            try:
                own.sendto(data, dest)
            except OSError as error:
                self._note(error)
            else:
                stats.datagrams_out += 1
                stats.bytes_out += size

    def announce(self, data: bytes) -> None:
        """Send to the meeting point, if there is one."""
        if self._meeting is not None:
            self.send(data, [self._meeting])

    def receive(self) -> list[tuple[bytes, Address]]:
        """What has arrived, up to a burst for each socket."""
        found: list[tuple[bytes, Address]] = []
        for each in (self._own, self._meeting_socket):
            if each is not None:
                self._drain(each, found)
        return found

    def _drain(self, each: socket.socket, found: list[tuple[bytes, Address]]) -> None:
        receive = each.recvfrom
        for _ in range(_BURST):
            try:
                data, address = receive(_LARGEST)
            except BlockingIOError:
                return
            except OSError as error:
                self._note(error)
                return
            self.stats.datagrams_in += 1
            self.stats.bytes_in += len(data)
            found.append((data, address))

    def _note(self, error: OSError) -> None:
        """A datagram was lost on the way out. Anything else than that is an error of ours."""
        lossy = {
            errno.EAGAIN,
            errno.ENOBUFS,
            errno.ECONNREFUSED,
            errno.ENETUNREACH,
            errno.EHOSTUNREACH,
            errno.ENETDOWN,
            errno.EPERM,
            errno.EMSGSIZE,
        }
        if error.errno not in lossy:
            raise error
        self.stats.send_errors += 1

    def close(self) -> None:
        """Close the sockets."""
        self._own.close()
        if self._meeting_socket is not None:
            self._meeting_socket.close()


def _udp() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, RECEIVE_BUFFER)
    made.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
    return made
