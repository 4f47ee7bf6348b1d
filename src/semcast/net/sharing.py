"""Which exchange a group of this process uses: one with others, or one of its own.

Groups whose sockets would be alike share them. Two members of one group do not, nor does a member whose turns
may take long: they have threads of their own (`loop.py`), and an exchange belongs to one thread.
"""

import os
import threading
from collections.abc import Callable, Hashable

from semcast.net.addresses import Address
from semcast.net.exchange import Exchange, Sockets
from semcast.net.sockets import Endpoint

Kind = tuple[Address, Hashable]
"""Where the sockets are bound, and what else has to agree."""


class Exchanges:
    """Those of a process.

    Args:
        open_sockets: at an address, and at a meeting point if there is one; a simulated host has its own.
    """

    def __init__(self, open_sockets: Callable[[Address, Address | None], Sockets] = Endpoint) -> None:
        self.open_sockets = open_sockets
        self._lock = threading.RLock()  # a lease that nobody holds may be given back in the midst of anything
        self._open: dict[Kind, tuple[Exchange, int]] = {}  # those that are shared, and by how many
        self._groups: set[str] = set()  # those that share one

    def lease(
        self,
        group: str,
        bind: Address,
        meeting: Address | None,
        alike: Hashable = (),
        *,
        alone: bool = False,
    ) -> "Lease":
        """Sockets for a group. Raises OSError where they cannot be opened.

        Args:
            group: its name.
            bind: the address of the endpoint; port 0 for any.
            meeting: where strangers meet; None where they do not.
            alike: what else two groups must have in common to share.
            alone: whether it shares with nobody.
        """
        kind = bind, alike
        with self._lock:
            if alone or group in self._groups:
                return Lease(self, Exchange(self.open_sockets(bind, meeting)), meeting, "", kind)
            exchange = self._one_more(kind)
            try:
                if meeting is not None:
                    exchange.meet(meeting)
            except OSError:
                self._one_less(kind, exchange)
                raise
            self._groups.add(group)
            return Lease(self, exchange, meeting, group, kind)

    def give_back(self, lease: "Lease") -> None:
        """The group of a lease is not there any more; after the last the sockets are closed."""
        with self._lock:
            if lease.over:
                return
            lease.over = True
            if not lease.shared:
                lease.exchange.close()
                return
            self._groups.discard(lease.group)
            if not self._one_less(lease.kind, lease.exchange) and lease.meeting is not None:
                lease.exchange.part(lease.meeting)

    def forget(self) -> None:
        """In a child process: the sockets that it inherited are its parent's, and no thread reads them."""
        self._lock = threading.RLock()  # another thread of the parent may have held it
        self._open.clear()
        self._groups.clear()

    def _one_more(self, kind: Kind) -> Exchange:
        exchange, groups = self._open.get(kind, (None, 0))
        if exchange is not None and exchange.broken:
            exchange.close()
            exchange = None
        if exchange is None:
            exchange, groups = Exchange(self.open_sockets(kind[0], None)), 0
        self._open[kind] = exchange, groups + 1
        return exchange

    def _one_less(self, kind: Kind, exchange: Exchange) -> bool:
        """Returns whether it was the last, and the sockets are closed."""
        known, groups = self._open.get(kind, (None, 0))
        if known is not exchange:  # it was broken, and closed when another took its place
            return True
        if groups > 1:
            self._open[kind] = exchange, groups - 1
            return False
        del self._open[kind]
        exchange.close()
        return True


class Lease:
    """A group's right to an exchange, until it is given back.

    Args:
        exchanges: of the process.
        exchange: the sockets.
        meeting: where the group meets, if it does.
        group: its name, where the exchange may have other groups.
        kind: of the exchange.
    """

    def __init__(
        self, exchanges: Exchanges, exchange: Exchange, meeting: Address | None, group: str, kind: Kind
    ) -> None:
        self.exchange = exchange
        self.meeting = meeting
        self.group = group
        self.kind = kind
        self.shared = bool(group)
        """Whether other groups of this process may be there."""
        self.over = False
        """Whether it was given back."""
        self._exchanges = exchanges

    def __del__(self) -> None:
        if not self.over:
            self.release()

    def release(self) -> None:
        """The group is not there any more; after the last the sockets are closed."""
        self._exchanges.give_back(self)


EXCHANGES = Exchanges()
"""Of this process."""
lease = EXCHANGES.lease
os.register_at_fork(after_in_child=EXCHANGES.forget)
