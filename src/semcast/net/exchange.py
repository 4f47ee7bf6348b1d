"""An endpoint that groups share: each datagram goes to the group that it names, and to no other.

The exchange reads the sockets; what is for a group waits in the inbox of its hub, which is bounded, until the
hub has its turn. So a group that is always busy does not keep the datagrams of others in the socket. Whom the
kernel keeps out is decided here, too, since it is kept from the socket.
"""

import socket
import threading
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, zip_longest
from typing import Protocol

from semcast.core.ids import SECOND, Nanos
from semcast.net.addresses import Address
from semcast.net.driving import Driving, Tenancy
from semcast.net.inbox import budget
from semcast.net.shield import KeepOut, Shield
from semcast.net.sockets import Account, Arrival, SocketStatistics
from semcast.wire import Malformed
from semcast.wire.datagrams import GROUP_AT

_HOUSEKEEPING: Nanos = SECOND
_GRACE: Nanos = 5 * SECOND
"""So long others may send to a group that nobody here is in yet, or any more: they do not mean to flood."""
_EXCUSED = 256
"""Groups that are remembered for that."""


class Sockets(Protocol):
    """What an exchange reads and hubs send by: an `Endpoint`, or that of a simulated host."""

    address: Address
    """Its own."""
    family: socket.AddressFamily

    @property
    def stats(self) -> SocketStatistics:
        """What is not counted for somebody else."""

    @property
    def datagram_bytes(self) -> int:
        """How large a datagram may be."""

    def filenos(self) -> list[int]:
        """What to wait for."""

    def meet(self, point: Address) -> None:
        """Hear strangers at this meeting point, too."""

    def part(self, point: Address) -> None:
        """Hear them there no more."""

    def send(
        self,
        datagrams: Sequence[bytes],
        dests: Iterable[Address],
        account: Account | None = None,
        *,
        probing: bool = False,
    ) -> None:
        """Send each datagram to each of several members. What cannot be sent is lost."""

    def receive(self, ready: Collection[int]) -> list[Arrival]:
        """What has arrived at the sockets that are ready."""

    def keep_out(self, nuisances: Sequence[Address], members: Sequence[Address], *, few: bool) -> None:
        """Drop what comes from these; of others than members, with `few`, most of it."""

    def count_drops(self) -> int:
        """Note what was dropped since; returns how much."""

    def close(self) -> None:
        """Close them."""


class HubLine(Protocol):
    """A group at an exchange: its hub."""

    def put(self, arrivals: Sequence[Arrival]) -> None:
        """These came for it."""

    def places(self) -> Sequence[Address]:
        """Where the members of its view are."""

    def failed(self, error: BaseException) -> None:
        """Nothing comes any more, because of this."""


class Exchange:
    """Sockets, and the groups whose datagrams come there. A tenant of the thread that drives their hubs.

    Args:
        endpoint: the sockets.
    """

    def __init__(self, endpoint: Sockets) -> None:
        self.endpoint = endpoint
        self.malformed: dict[Malformed, int] = {}
        """Datagrams that no group here could be found for, and why."""
        self.overrun = False
        """Whether datagrams were lost lately for want of room in the sockets."""
        self.budget = budget(1)
        """Bytes that one turn of one group takes in."""
        self.broken = False
        """Whether an error has ended it."""
        self._changing = threading.Lock()
        self._lines: dict[bytes, HubLine] = {}  # replaced, never changed: the loop looks at it meanwhile
        self._excused: dict[bytes, Nanos | None] = {}  # groups not yet or no longer here, and until when
        self._shield = Shield()
        self._verdict = KeepOut()
        self._let_in: list[Address] = []
        self._guarding = False  # somebody is kept out
        self._housekeeping_at: Nanos = 0
        self._boarding = threading.Lock()
        self._driver: Driving | None = None
        self._place: Tenancy | None = None
        self._riders = 0

    # Called by any thread

    def expect(self, group: bytes) -> None:
        """Somebody is about to be in this group."""
        with self._changing:
            self._excuse(group)

    def connect(self, group: bytes, line: HubLine) -> None:
        """From now on what names this group is for that line."""
        with self._changing:
            assert group not in self._lines, "a second member of a group has an endpoint of its own"
            self._lines = {**self._lines, group: line}
            self.budget = budget(len(self._lines))

    def disconnect(self, group: bytes) -> None:
        """Nobody here is in this group any more."""
        with self._changing:
            if group in self._lines:
                self._lines = {each: line for each, line in self._lines.items() if each != group}
                self.budget = budget(len(self._lines))
                self._excuse(group)

    def _excuse(self, group: bytes) -> None:
        self._excused.pop(group, None)
        if len(self._excused) >= _EXCUSED:
            del self._excused[next(iter(self._excused))]
        self._excused[group] = None

    def speaks_first(self, line: HubLine) -> bool:
        """Whether this is the line that tells what concerns all of them."""
        return next(iter(self._lines.values()), None) is line

    def meet(self, point: Address) -> None:
        """Hear strangers at this meeting point, too."""
        with self._boarding:
            before = len(self.endpoint.filenos())
            self.endpoint.meet(point)
            if self._driver is not None and self._place is not None and len(self.endpoint.filenos()) > before:
                self._driver.look_again(self._place)

    def part(self, point: Address) -> None:
        """Hear them there no more."""
        with self._boarding:
            self.endpoint.part(point)

    def board(self, driver: Driving) -> None:
        """One of its hubs begins to be driven by this thread, as all others are that have begun."""
        with self._boarding:
            self._riders += 1
            if self._driver is None:
                self._driver, self._place = driver, Tenancy(self, feeds=True)
                driver.add(self._place)
            assert self._driver is driver, "the hubs of an exchange are driven by one thread"

    def alight(self) -> None:
        """One of its hubs is driven no more."""
        with self._boarding:
            self._riders -= 1
            driver, place = self._driver, self._place
            if self._riders or driver is None or place is None:
                return
            self._driver = self._place = None
            driver.dismiss(place)
        driver.wait_for(place)

    # Turns: what a loop asks for

    def filenos(self) -> Collection[int]:
        """The sockets to wait for."""
        return self.endpoint.filenos()

    def start(self, now: Nanos) -> None:
        """There is nothing to do before something comes."""

    def run(self, now: Nanos, ready: Collection[int]) -> None:
        """Take in what came, and look after the sockets."""
        if ready:
            self._sort(now, self.endpoint.receive(ready))
        if self._shield.alarmed or self._guarding:
            self.guard(now)
        if now >= self._housekeeping_at:
            self._housekeeping_at = now + _HOUSEKEEPING
            self.overrun = self.endpoint.count_drops() > 0 and not self._guarding

    def relieve(self, now: Nanos) -> None:
        """Empty the sockets before the next group has its turn: they hold what one is sent, not all."""
        if len(self._lines) > 1:
            self._sort(now, self.endpoint.receive(self.endpoint.filenos()))

    def next_at(self) -> Nanos:
        """When there is something to do again."""
        return self._housekeeping_at

    def failed(self, error: BaseException) -> None:
        """The sockets are of no use any more: so all groups end."""
        self.broken = True
        for line in self._lines.values():
            line.failed(error)

    def close(self) -> None:
        """Close the sockets."""
        self.endpoint.close()

    def _sort(self, now: Nanos, arrivals: Sequence[Arrival]) -> None:
        lines = self._lines
        runs: dict[bytes, list[Arrival]] = {}
        for arrival in arrivals:
            group = arrival[0][GROUP_AT]
            run = runs.get(group)
            if run is None:
                if group not in lines:
                    self._refuse(now, group, arrival)
                    continue
                run = runs[group] = []
            run.append(arrival)
        for group, run in runs.items():
            lines[group].put(run)

    def _refuse(self, now: Nanos, group: bytes, arrival: Arrival) -> None:
        """It is for nobody here."""
        why = Malformed.GROUP if len(group) == GROUP_AT.stop - GROUP_AT.start else Malformed.TRUNCATED
        self.malformed[why] = self.malformed.get(why, 0) + 1
        if not self._is_excused(now, group):
            self.note(now, arrival[1])

    def _is_excused(self, now: Nanos, group: bytes) -> bool:
        if group not in self._excused:
            return False
        with self._changing:
            until = self._excused.get(group)
            if until is None:
                until = self._excused[group] = now + _GRACE
        return now < until

    # Who floods

    def note(self, now: Nanos, source: Address) -> None:
        """A datagram of no use came from there."""
        self._shield.note(now, source)

    def guard(self, now: Nanos) -> None:
        """Have those kept out who flood, and nobody else: who is in a view comes in whatever happens."""
        verdict = self._shield.verdict(now)
        let_in = self._places() if verdict else []
        if (verdict, let_in) != (self._verdict, self._let_in):
            self._verdict, self._let_in = verdict, let_in
            self._guarding = bool(verdict)
            self.endpoint.keep_out(verdict.keep_out, let_in, few=verdict.few)

    def _places(self) -> list[Address]:
        """Where the members of all views are, each once: some of every group where they are too many."""
        rows = zip_longest(*(line.places() for line in self._lines.values()))
        return list(dict.fromkeys(place for place in chain.from_iterable(rows) if place is not None))
