"""Watches a group without being in it: listens to what its members say of themselves.

It sends nothing, unless an operator has something to tell them (`tell_to_go_on`).
"""

import select
import time
from collections.abc import Callable
from types import TracebackType

import msgspec

from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.net.addresses import Address
from semcast.net.exchange import Sockets
from semcast.wire import Datagram, DatagramCodec, Malformed
from semcast.wire.status import GoOn, Status

SILENCE: Nanos = 4 * SECOND
"""Who has said nothing for so long is no longer there."""
_MOST = 1024


class Sighting(msgspec.Struct, frozen=True):
    """A member, what it said last, and what it said before that."""

    member: MemberId
    address: Address
    at: Nanos
    status: Status
    before: Status | None = None

    def rate(self, counter: str) -> float | None:
        """How fast a counter of the status grew, a second of the member's own time; None after one report."""
        if self.before is None:
            return None
        grown: int = getattr(self.status, counter) - getattr(self.before, counter)
        return max(0, grown) * SECOND / (self.status.uptime - self.before.uptime)


class Observer:
    """The members that announce themselves.

    Args:
        endpoint: sockets at the group's meeting point.
        codec: of the group, with its key where it has one.
        name: of whoever watches.
        tend: called once a second: looks after the keys.
        clock: the time in nanoseconds.
    """

    def __init__(
        self,
        endpoint: Sockets,
        codec: DatagramCodec,
        name: MemberId,
        *,
        tend: Callable[[], None] | None = None,
        clock: Callable[[], Nanos] = time.monotonic_ns,
    ) -> None:
        self.malformed: dict[Malformed, int] = {}
        """Datagrams that could not be read, and why."""
        self._endpoint = endpoint
        self._codec = codec
        self._name = name
        self._tend = tend
        self._tend_at: Nanos = 0
        self._clock = clock
        self._seen: dict[MemberId, Sighting] = {}

    def __enter__(self) -> "Observer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the sockets."""
        self._endpoint.close()

    def listen(self, seconds: float) -> None:
        """Take in what arrives in the next `seconds`."""
        until = self._clock() + round(seconds * SECOND)
        while (left := until - self._clock()) > 0:
            self.wait(left / SECOND)

    def wait(self, seconds: float) -> None:
        """Take in what has arrived; wait for something if nothing has, but not longer than this."""
        select.select(self._endpoint.filenos(), (), (), seconds)
        now = self._clock()
        if self._tend is not None and now >= self._tend_at:
            self._tend_at = now + SECOND
            self._tend()
        for data, address, _ in self._endpoint.receive(self._endpoint.filenos()):
            datagram = self._codec.decode(data)
            if isinstance(datagram, Malformed):
                self.malformed[datagram] = self.malformed.get(datagram, 0) + 1
            else:
                self._on_datagram(now, datagram, address)

    def members(self) -> list[Sighting]:
        """Those who are there, in the order of their names."""
        now = self._clock()
        self._seen = {
            member: sighting for member, sighting in self._seen.items() if now - sighting.at <= SILENCE
        }
        return [self._seen[member] for member in sorted(self._seen)]

    def tell_to_go_on(self, sighting: Sighting) -> None:
        """Vouch to a member, as long as it is in that view, that whoever it cannot reach is gone."""
        frames = [GoOn(sighting.status.view)]
        self._endpoint.send(self._codec.encode(self._name, frames), [sighting.address])

    def _on_datagram(self, now: Nanos, datagram: Datagram, address: Address) -> None:
        for frame in datagram.frames:
            if isinstance(frame, Status):
                self._on_status(now, datagram.source, address, frame)

    def _on_status(self, now: Nanos, member: MemberId, address: Address, status: Status) -> None:
        last = self._seen.get(member)
        if status.phase == "left":
            self._seen.pop(member, None)
        elif last is None:
            if len(self._seen) >= _MOST:
                return
            self._seen[member] = Sighting(member, address, now, status)
        elif status.uptime > last.status.uptime:  # otherwise it is late, or a copy
            self._seen[member] = Sighting(member, address, now, status, last.status)
