"""How large a datagram may be on the way to each address: what was proved, and nothing else.

Some networks carry less than others and do not say so: a datagram that is too large is lost, however often
it is sent again. So a way begins with the smallest size, and a padded probe goes along it for each larger
one; the answer proves that the size arrives. Proofs are renewed, since ways change; without answers a smaller
size is used again.
"""

from collections.abc import Callable, Iterable

from semcast.core.ids import SECOND, Nanos
from semcast.net.addresses import Address

SMALLEST = 500
"""Every network carries this and the headers (RFC 791: 576 bytes)."""
COMMON = 1200
"""All networks with IPv6, and most others, carry this (RFC 8200: 1280 bytes)."""
_RENEWAL: Nanos = 2 * SECOND
_AGAIN: Nanos = SECOND
_PATIENCE = 3
"""Probes without an answer before a size counts as too large."""
_MOST = 1024

Probe = tuple[Address, int, int]
"""Where to, its number, and how large it is."""


class _Path:
    """What is known of one way."""

    __slots__ = ("asked", "at", "level", "unanswered")

    def __init__(self) -> None:
        self.level = 0
        self.at: Nanos = 0  # when to probe
        self.unanswered = 0  # probes of the current size in a row
        self.asked: dict[int, int] = {}  # levels by the numbers of probes


class Paths:
    """All ways of a member.

    Args:
        full: bytes of the largest datagram that it would like to send.
        draw: gives numbers for probes that nobody can guess.
    """

    def __init__(self, full: int, draw: Callable[[], int]) -> None:
        self._sizes = [*(size for size in (SMALLEST, COMMON) if size < full), full]
        self._draw = draw
        self._paths: dict[Address, _Path] = {}
        self.full = full

    def size(self, address: Address) -> int:
        """How large a datagram may be that goes there."""
        path = self._paths.get(address)
        return self._sizes[0] if path is None else self._sizes[path.level]

    def least(self, addresses: Iterable[Address]) -> int:
        """How large it may be for all of these; as small as can be for nobody."""
        return min(map(self.size, addresses), default=self._sizes[0])

    def keep(self, addresses: Iterable[Address]) -> None:
        """Forget the ways to all others."""
        kept = set(addresses)
        for address in [address for address in self._paths if address not in kept]:
            del self._paths[address]

    def probes(self, now: Nanos, addresses: Iterable[Address]) -> list[Probe]:
        """What to send along these ways now: a probe of the size in use, and of the next larger."""
        found: list[Probe] = []
        for address in addresses:
            path = self._paths.get(address)
            if path is None:
                if len(self._paths) >= _MOST:
                    continue
                path = self._paths[address] = _Path()
            if now >= path.at:
                found += self._ask(now, address, path)
        return found

    def answered(self, now: Nanos, address: Address, number: int) -> list[Probe]:
        """A probe came back from there; returns what to try next."""
        path = self._paths.get(address)
        level = None if path is None else path.asked.pop(number, None)
        if path is None or level is None or level < path.level:
            return []
        path.unanswered = 0
        if level == path.level:
            return []
        path.level = level
        return self._ask(now, address, path) if level + 1 < len(self._sizes) else []

    def refused(self, address: Address) -> None:
        """This host itself does not send so much there any more."""
        path = self._paths.get(address)
        if path is not None and path.level:
            path.level, path.unanswered, path.at = 0, 0, 0
            path.asked.clear()

    def _ask(self, now: Nanos, address: Address, path: _Path) -> list[Probe]:
        if path.level and path.unanswered >= _PATIENCE:
            path.level -= 1
            path.unanswered = 0
        if path.level:
            path.unanswered += 1
        sure = path.level and path.unanswered == 1
        path.at = now + (_RENEWAL if sure else _AGAIN)
        path.asked.clear()
        for level in range(max(path.level, 1), min(path.level + 2, len(self._sizes))):
            path.asked[self._draw()] = level
        return [(address, number, self._sizes[level]) for number, level in path.asked.items()]
