"""Where clients find servers."""

import ipaddress
from urllib.parse import urlsplit

import msgspec

from semcast.engine import RequestError
from semcast.net.addresses import AddressError, split_address


class KnownServer(msgspec.Struct, frozen=True):
    """A server, as a client knows it."""

    url: str
    local: bool
    """On this host."""

    @property
    def encrypted(self) -> bool:
        """Whether nobody on the way reads what is said."""
        return self.url.startswith("https://")


def parse(text: str, *, tls: bool) -> KnownServer:
    """A server from `host:port`, or from `http://host:port` or `https://host:port`.

    >>> parse("db.example:7420", tls=True).url
    'https://db.example:7420'
    """
    if not isinstance(text, str):
        raise RequestError(f"server {text!r}: write host:port")
    scheme = "https" if tls else "http"
    place = text
    if "://" in text:
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or parts.path.strip("/") or parts.query or parts.username:
            raise RequestError(f"server {text!r}: write host:port, or https://host:port")
        scheme, place = parts.scheme, parts.netloc
    try:
        host, port = split_address(place)
    except AddressError as error:
        raise RequestError(f"server {text!r}: {error}") from error
    shown = f"[{host}]" if ":" in host else host
    return KnownServer(f"{scheme}://{shown}:{port}", is_local(host))


def is_local(host: str) -> bool:
    """Whether a name or an address is this host's own for sure."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
