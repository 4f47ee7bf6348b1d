"""The daemon's own member: a ring, the lightweight groups above it, and their sockets."""

from random import Random

import msgspec

from semcast.core.handover import Handover
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.core.turn import Watcher
from semcast.group.families.lightweight import FAMILY, below_of
from semcast.group.registry import Family, Site
from semcast.group.settings import GroupSettings
from semcast.group.stacks import Parts, build_of
from semcast.net.hub import Hub
from semcast.net.seat import Seat
from semcast.protocols.lightweight import Lightweight, LightweightSettings


def family_of(light: LightweightSettings) -> Family:
    """That of all domains, with these settings: programs that are their own daemons are in the same ring."""

    def build(site: Site, rng: Random, out: Outbox) -> Stack:
        return Lightweight(site.member, light, below_of(site), rng, out)

    return msgspec.structs.replace(FAMILY, build=build)


class DaemonMember:
    """The stack of a daemon in its seat, at its hub. Whoever owns it drives the hub.

    Args:
        domain: its name.
        settings: of the member.
        light: of the lightweight groups.
        watchers: told of all that happens.
    """

    def __init__(
        self,
        domain: str,
        settings: GroupSettings,
        light: LightweightSettings,
        watchers: tuple[Watcher, ...] = (),
    ) -> None:
        self.parts: Parts = build_of(domain, settings, family_of(light))
        stack = self.parts.stack
        assert isinstance(stack, Lightweight)
        self.stack: Lightweight = stack
        handover = Handover(1, receives=False)
        self.seat = Seat(self.parts.member, stack, handover, wake_application=_nobody, watchers=watchers)
        self.hub = Hub(
            self.parts.member,
            self.parts.endpoint,
            self.parts.codec,
            self.parts.peers,
            datagram=settings.datagram,
            multicast=settings.fanout == "multicast",
            tend=self._tend,
        )
        self.hub.seat(self.seat)

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


def _nobody() -> None:
    """The daemon looks after every turn."""
