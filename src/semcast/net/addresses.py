"""Where members are: addresses, what is known of them, and where strangers meet."""

import hashlib
import ipaddress
import socket

from semcast.core.ids import SECOND, MemberId, Nanos

Address = tuple[str, int]

LOOPBACK = "127.0.0.1"
_FORGET: Nanos = 30 * SECOND
_MEET: Nanos = 3 * SECOND
"""Who was silent at the meeting point for so long may be deaf there, too; all speak once a second."""
_MOST = 1024
_PORTS = range(20000, 30000)


class AddressError(ValueError):
    """Text that is no address; says what is wrong with it."""


def parse_address(text: str) -> Address:
    """An IPv4 address and a port.

    >>> parse_address("127.0.0.1:5000")
    ('127.0.0.1', 5000)
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise AddressError(f"{text!r} is not an address: write 192.0.2.7:5000")
    try:
        return str(ipaddress.IPv4Address(host)), int(port)
    except ipaddress.AddressValueError as error:
        raise AddressError(f"{text!r} is not an address: {error}") from error


def valid_host(text: str) -> bool:
    """Whether it is the address of one host."""
    try:
        address = ipaddress.IPv4Address(text)
    except ipaddress.AddressValueError:
        return False
    return not address.is_multicast and not address.is_unspecified and str(address) != "255.255.255.255"


def meeting_point(group: str) -> Address:
    """The multicast address and port at which the members of a group find each other.

    Drawn from the name, in the range for private use; a clash with another group costs some work, no
    more: datagrams of other groups are dropped.
    """
    digest = hashlib.blake2b(group.encode(), digest_size=8).digest()
    port = _PORTS.start + int.from_bytes(digest[:4], "big") % len(_PORTS)
    return f"239.255.{digest[4]}.{digest[5]}", port


def local_address() -> str:
    """The address of this host on the network that multicasts leave by; loopback where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("239.255.0.1", _PORTS.start))  # nothing is sent
        except OSError:
            return LOOPBACK
        address: str = probe.getsockname()[0]
        return address


def is_loopback(address: Address) -> bool:
    """Whether it cannot be reached from another host."""
    return address[0].startswith("127.")


class AddressBook:
    """The addresses of those that were heard of. Bounded; who is silent for long is forgotten."""

    def __init__(self) -> None:
        self._known: dict[MemberId, Address] = {}
        self._heard: dict[MemberId, Nanos] = {}
        self._met: dict[MemberId, Nanos] = {}
        self._targets: list[Address] | None = None

    def heard(self, now: Nanos, member: MemberId, address: Address, *, met: bool = False) -> None:
        """A valid datagram of `member` came from there, to the meeting point if they `met`."""
        self._heard[member] = now
        if met:
            self._met[member] = now
        if self._known.get(member) != address:
            if len(self._known) >= _MOST and member not in self._known:
                oldest = min(self._heard, key=self._heard.__getitem__)
                self._drop(oldest)
            self._known[member] = address
            self._targets = None

    def introduced(self, now: Nanos, member: MemberId, address: Address) -> None:
        """Another member says that `member` is there: good until it is heard itself, or for a while."""
        if member not in self._known and len(self._known) < _MOST:
            self.heard(now - _FORGET // 2, member, address)

    def all_meet(self, now: Nanos) -> bool:
        """Whether everybody who is known was heard at the meeting point lately."""
        return all(now - self._met.get(member, -_MEET) < _MEET for member in self._known)

    def contacts(self, most: int) -> list[tuple[MemberId, Address]]:
        """Those heard last, and where they are."""
        recent = sorted(self._heard, key=self._heard.__getitem__, reverse=True)[:most]
        return [(member, self._known[member]) for member in recent]

    def find(self, member: MemberId) -> Address | None:
        """Where a member is, if that is known."""
        return self._known.get(member)

    def targets(self) -> list[Address]:
        """Where everybody is."""
        if self._targets is None:
            self._targets = sorted(set(self._known.values()))
        return self._targets

    def forget(self, now: Nanos) -> None:
        """Drop those that have been silent for too long."""
        for member in [member for member, at in self._heard.items() if now - at > _FORGET]:
            self._drop(member)

    def _drop(self, member: MemberId) -> None:
        self._heard.pop(member, None)
        self._met.pop(member, None)
        self._known.pop(member, None)
        self._targets = None
