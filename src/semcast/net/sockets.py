"""UDP from Python, in bursts: one socket of one's own, and one at the meeting port."""

import errno
import socket
import struct
import sys
from collections.abc import Collection, Iterable, Sequence

import msgspec

from semcast.net import filters
from semcast.net.addresses import Address, family_of, is_loopback, plain
from semcast.net.meeting import MeetingSockets

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

# Not in the socket module of every Python.
_SOL_UDP = 17
_UDP_SEGMENT = 103
_UDP_GRO = 104
_SO_MEMINFO = 55
_MEMINFO = struct.Struct("=9I")
_DROPS_AT = 8
_IP_MTU_DISCOVER = 10
_IPV6_MTU_DISCOVER = 23
_PMTUDISC_DO = 2
_IPV6_DONTFRAG = 62


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
    kept_out: int = 0
    """Datagrams that the kernel dropped because their sources flood this member."""
    send_errors: int = 0


class Account:
    """What went wrong and what went well for one of those who send over an endpoint."""

    __slots__ = ("refused", "stats")

    def __init__(self) -> None:
        self.stats = SocketStatistics()
        self.refused: set[Address] = set()
        """Where this host itself does not send datagrams that large."""


class Endpoint:
    """Sockets: of one member, or of several, each of another group.

    Args:
        bind: the address of its own; port 0 for any.
        meeting: multicast address where strangers meet; None where peers are listed.
        offload: let the kernel cut and join datagrams, where it can; the same datagrams travel either way.
    """

    def __init__(self, bind: Address, meeting: Address | None = None, *, offload: bool = True) -> None:
        self.account = Account()
        """Of all that is sent on nobody's account, and of all that comes."""
        self.offload = False
        self.family = family_of(bind[0])
        self._own = _udp(self.family)
        self._meetings = MeetingSockets(self.family, bind[0], self._own, self._one_more)
        self._filtered = False
        self._drops: dict[socket.socket, int] = {}
        try:
            self._own.bind(bind)
            self.offload = offload and _enable_offload(self._own)
            if meeting is not None:
                self.meet(meeting)
        except OSError:
            self.close()
            raise
        self.address: Address = plain(self._own.getsockname())

    def _one_more(self) -> socket.socket:
        made = _udp(self.family)
        if self.offload:
            _enable_offload(made)
        return made

    @property
    def stats(self) -> SocketStatistics:
        """What is not counted for somebody else."""
        return self.account.stats

    def meet(self, point: Address) -> None:
        """Hear strangers at this meeting point, too. There may be another socket to wait for then."""
        self._meetings.meet(point)

    def part(self, point: Address) -> None:
        """Hear them there no more."""
        self._meetings.part(point)

    @property
    def datagram_bytes(self) -> int:
        """How large a datagram may be: never so large that the network has to cut it."""
        return LOOPBACK_DATAGRAM if is_loopback(self.address) else NETWORK_DATAGRAM

    def filenos(self) -> list[int]:
        """What to wait for."""
        return [each.fileno() for each in self._sockets()]

    def _sockets(self) -> Sequence[socket.socket]:
        return self._own, *self._meetings.open

    def send(
        self,
        datagrams: Sequence[bytes],
        dests: Iterable[Address],
        account: Account | None = None,
        *,
        probing: bool = False,
    ) -> None:
        """Send each datagram to each of several members. What cannot be sent is lost, as on any network.

        It is counted on the `account`. With `probing` it is no error if this host itself refuses to send
        something that large.
        """
        account = account or self.account
        if len(datagrams) == 1:
            bursts: Sequence[Sequence[bytes]] = (datagrams,)
        else:
            bursts = _bursts(datagrams) if self.offload else [[each] for each in datagrams]
        stats, sendmsg = account.stats, self._own.sendmsg
        calls = [_call(burst) for burst in bursts]
        for dest in dests:  # all for one, then all for the next: who is woken finds more than one
            for burst, segment, size in calls:
                try:
                    sendmsg(burst, segment, 0, dest)
                except OSError as error:
                    if error.errno == errno.EMSGSIZE or (segment and error.errno == errno.EINVAL):
                        account.refused.add(dest)
                        if probing:
                            continue
                    _note(error, stats)
                else:
                    stats.datagrams_out += len(burst)
                    stats.bytes_out += size

    def receive(self, ready: Collection[int]) -> list[Arrival]:
        """What has arrived at the sockets that are ready, up to a burst for each."""
        found: list[Arrival] = []
        for each in self._sockets():
            if each.fileno() in ready:
                self._drain(each, found)
        self.stats.datagrams_in += len(found)
        return found

    def _drain(self, each: socket.socket, found: list[Arrival]) -> None:
        """Everything that is there, up to a burst: a token may stand behind the garbage of others."""
        receive, stats, meeting = each.recvmsg, self.stats, each is not self._own
        short = self.family == socket.AF_INET  # an address is what the socket says it is
        total = 0
        for _ in range(_BURST):
            try:
                data, ancillary, _, address = receive(_LARGEST, _ANCILLARY)
            except BlockingIOError:
                break
            except OSError as error:
                _note(error, stats)
                break
            if not short:
                address = plain(address)
            if meeting:
                if address == self.address:
                    continue  # one's own words
                if not self._meetings.met(ancillary):
                    data = b""  # said to this host alone: of no use, whatever it is
            length = size = len(data)
            total += length
            for level, kind, value in ancillary:
                if level == _SOL_UDP and kind == _UDP_GRO:
                    size = int.from_bytes(value[:2], sys.byteorder)
            if size >= length:
                found.append((data, address, meeting))
            else:
                found += [(data[at : at + size], address, meeting) for at in range(0, length, size)]
        stats.bytes_in += total

    def keep_out(self, nuisances: Sequence[Address], members: Sequence[Address], *, few: bool) -> None:
        """Let the kernel drop what comes from these; of others than members, with `few`, most of it.

        With nobody to keep out everything comes in. Where the kernel takes no such orders, nothing changes.
        """
        self.count_drops()
        self._filtered = bool(nuisances) or few
        let_in = members[: filters.MOST_NAMED - len(nuisances)]
        steps = filters.program(self.family, let_in, nuisances, few=few)
        for each in self._sockets():
            if self._filtered:
                filters.attach(each, steps)
            else:
                filters.detach(each)

    def count_drops(self) -> int:
        """Note what the kernel dropped since, as it was told or for want of room; returns how much."""
        new = 0
        for each in self._sockets():
            try:
                told = each.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
            except OSError:  # an older kernel does not tell
                return 0
            drops = _MEMINFO.unpack(told)[_DROPS_AT]
            new += (drops - self._drops.get(each, 0)) & 0xFFFFFFFF
            self._drops[each] = drops
        if self._filtered:
            self.stats.kept_out += new
        else:
            self.stats.kernel_drops += new
        return new

    def close(self) -> None:
        """Close the sockets."""
        self._own.close()
        self._meetings.close()


def _note(error: OSError, stats: SocketStatistics) -> None:
    """A datagram was lost on the way out: links, routes and addresses come and go, and filters refuse.

    Only what cannot be the network's doing is an error of ours.
    """
    if error.errno in (errno.EBADF, errno.ENOTSOCK, errno.EFAULT):
        raise error
    stats.send_errors += 1


def _call(burst: Sequence[bytes]) -> tuple[Sequence[bytes], list[tuple[int, int, bytes]], int]:
    """A burst, how the kernel cuts it, and how many bytes it has."""
    if len(burst) == 1:
        return burst, [], len(burst[0])
    return burst, [(_SOL_UDP, _UDP_SEGMENT, struct.pack("H", len(burst[0])))], sum(map(len, burst))


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


def _udp(family: socket.AddressFamily) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, RECEIVE_BUFFER)
    if family == socket.AF_INET:
        made.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_DO)
    else:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_DO)
        made.setsockopt(socket.IPPROTO_IPV6, _IPV6_DONTFRAG, 1)
    return made
