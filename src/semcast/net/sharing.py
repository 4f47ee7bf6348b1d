"""Which exchange a group of this process uses: one with others, or one of its own.

Groups whose sockets would be alike share them. Two members of one group do not, nor does a member whose turns
may take long: they have threads of their own (`loop.py`), and an exchange belongs to one thread.
"""

import os
import threading
from collections.abc import Hashable

from semcast.net.addresses import Address
from semcast.net.exchange import Exchange
from semcast.net.sockets import Endpoint

Kind = tuple[Address, Hashable]
"""Where the sockets are bound, and what else has to agree."""

_LOCK = threading.RLock()  # a lease that nobody holds may be given back in the midst of anything
_open: dict[Kind, tuple[Exchange, int]] = {}
"""The exchanges that are shared, and by how many."""
_groups: set[str] = set()
"""Those that share one."""


class Lease:
    """A group's right to an exchange, until it is given back.

    Args:
        exchange: the sockets.
        meeting: where the group meets, if it does.
        group: its name, where the exchange may have other groups.
        kind: of the exchange.
    """

    def __init__(self, exchange: Exchange, meeting: Address | None, group: str, kind: Kind) -> None:
        self.exchange = exchange
        self.meeting = meeting
        self.shared = bool(group)
        """Whether other groups of this process may be there."""
        self._group = group
        self._kind = kind
        self._over = False

    def __del__(self) -> None:
        if not self._over:
            self.release()

    def release(self) -> None:
        """The group is not there any more; after the last the sockets are closed."""
        with _LOCK:
            if self._over:
                return
            self._over = True
            if not self.shared:
                self.exchange.close()
                return
            _groups.discard(self._group)
            if not _one_less(self._kind, self.exchange) and self.meeting is not None:
                self.exchange.part(self.meeting)


def lease(
    group: str, bind: Address, meeting: Address | None, alike: Hashable = (), *, alone: bool = False
) -> Lease:
    """Sockets for a group. Raises OSError where they cannot be opened.

    Args:
        group: its name.
        bind: the address of the endpoint; port 0 for any.
        meeting: where strangers meet; None where they do not.
        alike: what else two groups must have in common to share.
        alone: whether it shares with nobody.
    """
    kind = bind, alike
    with _LOCK:
        if alone or group in _groups:
            return Lease(Exchange(Endpoint(bind, meeting)), meeting, "", kind)
        exchange = _one_more(kind)
        try:
            if meeting is not None:
                exchange.meet(meeting)
        except OSError:
            _one_less(kind, exchange)
            raise
        _groups.add(group)
        return Lease(exchange, meeting, group, kind)


def _one_more(kind: Kind) -> Exchange:
    exchange, groups = _open.get(kind, (None, 0))
    if exchange is not None and exchange.broken:
        exchange.close()
        exchange = None
    if exchange is None:
        exchange, groups = Exchange(Endpoint(kind[0])), 0
    _open[kind] = exchange, groups + 1
    return exchange


def _one_less(kind: Kind, exchange: Exchange) -> bool:
    """Returns whether it was the last, and the sockets are closed."""
    known, groups = _open.get(kind, (None, 0))
    if known is not exchange:  # it was broken, and closed when another took its place
        return True
    if groups > 1:
        _open[kind] = exchange, groups - 1
        return False
    del _open[kind]
    exchange.close()
    return True


def _forget() -> None:
    """In a child process: the sockets that it inherited are those of its parent, and no thread reads them."""
    global _LOCK  # noqa: PLW0603 (another thread of the parent may have held it)
    _LOCK = threading.RLock()
    _open.clear()
    _groups.clear()


os.register_at_fork(after_in_child=_forget)
