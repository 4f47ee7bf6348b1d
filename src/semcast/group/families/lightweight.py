"""Daemons of lightweight groups, live: a ring below, and one program or many as clients."""

from random import Random

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError
from semcast.group.families.ring import ring_settings
from semcast.group.registry import FAMILIES, Family, Site
from semcast.group.settings import GroupSettings, parse_size
from semcast.protocols.lightweight import LIGHTWEIGHT, Lightweight, LightweightSettings
from semcast.protocols.lightweight.settings import MAX_RUN
from semcast.protocols.lightweight.stack import Below
from semcast.protocols.ring import Ring, SlowPolicy
from semcast.protocols.ring.frames import NAME_BYTES

_KIND = (MemberId("lightweight"),)
"""Tells its datagrams from those of a ring of the same name, whose members know no clients."""
RUN_BYTES = 1 << 20
"""Bytes of messages that are sent as one run."""


class LightweightGroupSettings(GroupSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a daemon, or of a program that joins a domain without a daemon."""

    queue_messages: int = 16_384
    """Events that may wait for a program. One with more is expelled and rejoins; nobody waits for it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.name.encode()) > NAME_BYTES:
            raise ConfigurationError(f"name of {len(self.name.encode())} bytes: at most {NAME_BYTES}")
        if "@" in self.name:
            raise ConfigurationError(f"name {self.name!r}: only clients of daemons have an @")
        if self.policy == "block":
            raise ConfigurationError("policy block is not available in a domain: choose purge or leave")


def lightweight_settings(settings: GroupSettings) -> LightweightSettings:
    """Those of the daemon itself."""
    return LightweightSettings(
        queue_messages=settings.queue_messages,
        queue_bytes=parse_size(settings.queue_bytes),
        send_messages=min(settings.send_messages, MAX_RUN),
        send_bytes=parse_size(settings.send_bytes),
        run_bytes=RUN_BYTES,
        notes=bool(settings.record),
    )


def below_of(site: Site) -> Below:
    """The ring of daemons. What it delivers is taken at once, so it never waits for a program."""
    ring = msgspec.structs.replace(ring_settings(site.settings, site.datagram), policy=SlowPolicy.BLOCK)

    def below(me: MemberId, rng: Random, out: Outbox) -> Stack:
        return Ring(me, ring, rng, out)

    return below


def _build(site: Site, rng: Random, out: Outbox) -> Stack:
    return Lightweight(site.member, lightweight_settings(site.settings), below_of(site), rng, out)


def _alike(_settings: GroupSettings) -> tuple[MemberId, ...]:
    return _KIND


def _largest(_site: Site) -> int:
    return RUN_BYTES


FAMILY = FAMILIES.register(
    Family(
        name=LIGHTWEIGHT.name,
        protocol=LIGHTWEIGHT,
        settings=LightweightGroupSettings,
        build=_build,
        alike=_alike,
        kinds=(_KIND,),
        largest=_largest,
        clients=True,
    )
)
