"""The daemon's own member: a ring, the lightweight groups above it, and their sockets."""

from random import Random
from typing import TYPE_CHECKING

import msgspec

from semcast.core.handover import Handover
from semcast.core.ids import Nanos
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.families.lightweight import FAMILY, below_of
from semcast.group.metrics import Metrics, MetricsSnapshot
from semcast.group.registry import Family, Site
from semcast.group.settings import GroupSettings
from semcast.group.stacks import Parts, build_of
from semcast.net.alone import Alone
from semcast.net.hub import Hub
from semcast.net.seat import Seat
from semcast.protocols.lightweight import Lightweight, LightweightSettings

if TYPE_CHECKING:
    from semcast.group.recording import Recording


def family_of(light: LightweightSettings) -> Family:
    """That of all domains, with these settings: programs that are their own daemons are in the same ring."""

    def build(site: Site, rng: Random, out: Outbox) -> Stack:
        return Lightweight(site.member, light, below_of(site), rng, out)

    return msgspec.structs.replace(FAMILY, build=build)


class DaemonMember:
    """The stack of a daemon in its seat, at its hub. Whoever owns it drives these.

    Args:
        domain: its name.
        settings: of the member.
        light: of the lightweight groups.
    """

    def __init__(self, domain: str, settings: GroupSettings, light: LightweightSettings) -> None:
        self.parts: Parts = build_of(domain, settings, family_of(light))
        stack = self.parts.stack
        assert isinstance(stack, Lightweight)
        self.stack: Lightweight = stack
        self._recordings = _recordings(domain, settings, self.parts)
        self._metrics = Metrics(domain, settings.metrics)
        self.seat = Seat(
            self.parts.member,
            stack,
            Handover(1, receives=False),
            wake_application=_nobody,
            watchers=[*self._recordings, *self._metrics.watchers],
            certificates=self._recordings[0].certificates if self._recordings else None,
        )
        exchange = self.parts.lease.exchange
        self.hub = Hub(
            self.parts.member,
            exchange,
            self.parts.codec,
            self.parts.peers,
            meeting=self.parts.lease.meeting,
            datagram=settings.datagram,
            multicast=settings.fanout == "multicast",
            tend=self._tend,
        )
        self.hub.seat(self.seat)
        self.tenant = Alone(exchange, self.hub)
        """What its owner drives."""

    def reading(self, now: Nanos) -> MetricsSnapshot:
        """What is exported of it."""
        return self._metrics.reading(self.seat, self.hub, self.stack, now)

    def settle(self) -> None:
        """Clients did something: have the stack look at it in the next turn."""
        self.seat.call(lambda _stack, now: self.stack.settle(now))

    def reload(self) -> None:
        """Look at the file of keys now."""
        self._tend()

    def _tend(self) -> None:
        if self.parts.keys is not None:
            self.parts.keys.tend()

    def close(self) -> None:
        """Close the sockets."""
        self.hub.close()
        self.parts.lease.release()
        for recording in self._recordings:
            recording.close()


def _recordings(domain: str, settings: GroupSettings, parts: Parts) -> "list[Recording]":
    if not settings.record:
        return []
    from semcast.group.recording import open_recording  # noqa: PLC0415 (histories need pyarrow: slow to load)

    return [open_recording(domain, settings, parts)]


def _nobody() -> None:
    """The daemon looks after every turn."""
