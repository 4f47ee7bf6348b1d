"""Sockets at the meeting port. One serves the meeting points of many groups, and a kernel allows few to one.

Such a socket is bound to a port, not to one address, so it would also take what is sent to this host alone:
each datagram says where it was sent to, and only what was sent to a meeting point counts.
"""

import errno
import socket
import struct
from collections.abc import Callable, Iterable

from semcast.net.addresses import MEETING_PORT, Address, interface_of

_IP_MULTICAST_ALL = 49
_IPV6_MULTICAST_ALL = 29
_IP_PKTINFO = 8
_FULL = (errno.ENOBUFS, errno.ENOMEM)
"""The kernel allows no more memberships to this socket: 20 for IPv4, by default."""


class MeetingSockets:
    """Where an endpoint hears strangers.

    Args:
        family: of its addresses.
        host: the address whose interface they are heard at.
        own: the socket that speaks there.
        make: opens a socket of the family.
    """

    def __init__(
        self,
        family: socket.AddressFamily,
        host: str,
        own: socket.socket,
        make: Callable[[], socket.socket],
    ) -> None:
        self._six = family == socket.AF_INET6
        self._own = own
        self._make = make
        self._interface = b""  # found once something is to be heard there
        self._host = host
        self._points: dict[str, tuple[socket.socket, int]] = {}  # who is heard where, for how many groups
        self._names: frozenset[bytes] = frozenset()  # the addresses of these, as datagrams give them
        self.open: tuple[socket.socket, ...] = ()
        """Those that are open: they stay so, for there will be other groups."""

    def meet(self, point: Address) -> None:
        """Hear what is sent to this meeting point, too."""
        host = point[0]
        if host in self._points:
            at, groups = self._points[host]
            self._points[host] = at, groups + 1
            return
        self._prepare()
        for each in self.open:
            if self._join(each, host):
                break
        else:
            each = self._another()
            if not self._join(each, host):
                each.close()
                raise OSError(errno.ENOBUFS, "no room for a meeting point")
            self.open = (*self.open, each)
        self._points[host] = each, 1
        self._names |= {self._packed(host)}

    def part(self, point: Address) -> None:
        """A group less meets there; after the last it is not heard any more."""
        host = point[0]
        each, groups = self._points[host]
        if groups > 1:
            self._points[host] = each, groups - 1
            return
        del self._points[host]
        self._names -= {self._packed(host)}
        if self._six:
            each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_LEAVE_GROUP, self._membership(host))
        else:
            each.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, self._membership(host))

    def met(self, ancillary: Iterable[tuple[int, int, bytes]]) -> bool:
        """Whether a datagram that came with this was sent to a meeting point."""
        for level, kind, value in ancillary:
            if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
                return value[8:12] in self._names
            if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO:
                there = not any(self._interface) or value[16:20] == self._interface
                return there and value[:16] in self._names
        return False

    def close(self) -> None:
        """Close them all."""
        for each in self.open:
            each.close()

    def _prepare(self) -> None:
        """Let the own socket speak to meeting points, on one network and no further."""
        if self._interface:
            return
        own = self._own
        if self._six:
            self._interface = struct.pack("@I", interface_of(self._host))
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, self._interface)
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 1)
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
        else:
            self._interface = socket.inet_aton(self._host)
            own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, self._interface)
            own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)

    def _another(self) -> socket.socket:
        """A socket that hears the meeting points it joins, and not those of other sockets of this host."""
        made = self._make()
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self._six:
                made.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
                made.bind(("::", MEETING_PORT))
            else:
                made.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
                made.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
                made.bind(("", MEETING_PORT))
        except OSError:
            made.close()
            raise
        return made

    def _join(self, each: socket.socket, host: str) -> bool:
        """Have a socket hear this address; False if it has no room for another."""
        try:
            if self._six:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, self._membership(host))
            else:
                each.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, self._membership(host))
        except OSError as error:
            if error.errno in _FULL:
                return False
            raise
        return True

    def _membership(self, host: str) -> bytes:
        return self._packed(host) + self._interface

    def _packed(self, host: str) -> bytes:
        return socket.inet_pton(socket.AF_INET6 if self._six else socket.AF_INET, host)
