"""Addresses of members, how people write them, and where strangers meet."""

import hashlib
import ipaddress
import re
import socket
from pathlib import Path

Address = tuple[str, int]
"""A numeric address and a port. A link-local IPv6 address names its interface: `fe80::1%2`."""

LOOPBACK = "127.0.0.1"
LOOPBACK6 = "::1"
MEETING_PORT = 23750
"""Of all meeting points: one socket serves those of many groups."""
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?")
_FORMS = "write 192.0.2.7:5000, [2001:db8::7]:5000 or host.example:5000"


class AddressError(ValueError):
    """Text that is no address; says what is wrong with it."""


def split_address(text: str, *, any_port: bool = False) -> Address:
    """A host, as an address or by name, and a port. Asks nobody whether there is such a host.

    >>> split_address("[::1]:5000")
    ('::1', 5000)
    >>> split_address("db.example:0", any_port=True)
    ('db.example', 0)
    """
    host, colon, port = text.rpartition(":")
    least = 0 if any_port else 1
    if not colon or not (port.isascii() and port.isdigit()) or not least <= int(port) < 1 << 16:
        raise AddressError(f"{text!r} is not an address and a port: {_FORMS}")
    if host.startswith("[") and host.endswith("]"):
        if _version(host[1:-1]) != 6:
            raise AddressError(f"{text!r}: there is no IPv6 address in the brackets: {_FORMS}")
        return host[1:-1], int(port)
    if ":" in host:
        raise AddressError(f"{text!r}: an IPv6 address stands in brackets: {_FORMS}")
    if _version(host) != 4 and (_NAME.fullmatch(host) is None or re.fullmatch(r"[0-9.]+", host)):
        raise AddressError(f"{text!r}: {host!r} is neither an address nor the name of a host: {_FORMS}")
    return host, int(port)


def find_address(text: str, family: socket.AddressFamily | None = None, *, any_port: bool = False) -> Address:
    """The numeric address, of a family if one is given; names are looked up, now.

    >>> find_address("127.0.0.1:5000")
    ('127.0.0.1', 5000)
    """
    host, port = split_address(text, any_port=any_port)
    if host == "localhost":  # whatever a table of hosts says (RFC 6761)
        return (LOOPBACK6 if family == socket.AF_INET6 else LOOPBACK), port
    try:
        found = socket.getaddrinfo(host, port, family or socket.AF_UNSPEC, socket.SOCK_DGRAM)
    except OSError as error:
        other = _version(host)
        if other and family is not None and family != _FAMILIES[other]:
            raise AddressError(
                f"{text!r} is an IPv{other} address, and this member is bound to one of"
                f" IPv{_VERSIONS[family]}: see bind"
            ) from error
        what = "" if family is None else f"an IPv{_VERSIONS[family]} address of "
        raise AddressError(f"{text!r}: cannot find {what}host {host!r}: {error.strerror}") from error
    # Names often have addresses of both families, and loopback is bound to the older one by default.
    found.sort(key=lambda each: each[0] != socket.AF_INET)
    return plain(found[0][4])


def plain(address: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]) -> Address:
    """What the socket module calls an address, as host and port."""
    host, port, *more = address
    assert isinstance(host, str)
    assert isinstance(port, int)
    scope = more[1] if len(more) > 1 else 0
    return (f"{host.partition('%')[0]}%{scope}" if scope else host), port


def written(address: Address) -> str:
    """As people write it.

    >>> written(("::1", 5000))
    '[::1]:5000'
    """
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def family_of(host: str) -> socket.AddressFamily:
    """Of a numeric address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def valid_host(text: str) -> bool:
    """Whether it is the numeric address of one host."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not address.is_multicast and not address.is_unspecified and str(address) != "255.255.255.255"


def meeting_point(group: str) -> Address:
    """The multicast address and port at which the members of a group find each other.

    The address is drawn from the name, in the range for private use; a clash with another group costs some
    work, no more: datagrams of other groups are dropped. The port is the same for all.
    """
    digest = _digest(group)
    return f"239.255.{digest[4]}.{digest[5]}", MEETING_PORT


def meeting_point6(group: str) -> Address:
    """The same for IPv6, on one link (RFC 4291: transient, link-local scope)."""
    digest = _digest(group)
    return str(ipaddress.IPv6Address(b"\xff\x12" + bytes(10) + digest[4:])), MEETING_PORT


def meeting_point_of(group: str, host: str) -> Address | None:
    """Where members bound to this address meet: nowhere on IPv6's loopback, which carries no multicasts."""
    if family_of(host) == socket.AF_INET:
        return meeting_point(group)
    return None if host == LOOPBACK6 else meeting_point6(group)


def interface_of(host: str) -> int:
    """The number of the interface that has this IPv6 address; 0 where none has."""
    address, _, scope = host.partition("%")
    if scope:
        return int(scope) if scope.isdigit() else socket.if_nametoindex(scope)
    wanted = ipaddress.IPv6Address(address).packed.hex()
    for line in Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines():
        found, number, *_ = line.split()
        if found == wanted:
            return int(number, 16)
    return 0


def local_address() -> str:
    """The address of this host on the network that multicasts leave by; loopback where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("239.255.0.1", MEETING_PORT))  # nothing is sent
        except OSError:
            return LOOPBACK
        address: str = probe.getsockname()[0]
        return address


def is_loopback(address: Address) -> bool:
    """Whether it cannot be reached from another host."""
    return address[0].startswith("127.") or address[0] == LOOPBACK6


_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
_VERSIONS = {socket.AF_INET: 4, socket.AF_INET6: 6}


def _version(text: str) -> int:
    """4 or 6 for an address of that version of IP, 0 for what is none."""
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        return 0


def _digest(group: str) -> bytes:
    return hashlib.blake2b(group.encode(), digest_size=8).digest()
