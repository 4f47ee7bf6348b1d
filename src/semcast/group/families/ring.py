"""The ring, live."""

from random import Random

from semcast.core.ids import MILLISECOND
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError
from semcast.group.registry import FAMILIES, PACKET_OVERHEAD, Family, Site
from semcast.group.settings import GroupSettings, parse_duration, parse_size
from semcast.protocols.ring import RING, Ring, RingSettings, SlowPolicy

SEARCH = 300 * MILLISECOND
"""How long a member that starts looks for others before it works alone."""
IDLE = 400 * MILLISECOND
"""How seldom an idle ring may move, and look for others: every word wakes everybody."""
LINGER = 3 * MILLISECOND
"""How long a member that sends little keeps the token, where nobody else wants it."""
WINDOW_BYTES = 2 << 20
"""Bytes of packets under way, at most: half of what a receiver's socket holds."""


class RingGroupSettings(GroupSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set about a group on a ring."""

    minimum: int = 0
    """Who joins waits until so many are there; a ring works with fewer, too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minimum < 0:
            raise ConfigurationError(f"minimum {self.minimum}: at least 1, or 0 to begin alone")


def ring_settings(settings: GroupSettings, datagram: int) -> RingSettings:
    """The ring for datagrams of a size: its window fits in a receiver's socket."""
    packet = datagram - PACKET_OVERHEAD
    window = settings.window or max(16, min(2048, WINDOW_BYTES // datagram))
    loss = parse_duration(settings.token_loss)
    return RingSettings(
        packet_bytes=packet,
        window=window,
        visit=max(min(64, window), window // 3),
        accelerated=max(16, window // 8),
        queue_messages=settings.queue_messages,
        reserve_bytes=parse_size(settings.reserve),
        send_messages=settings.send_messages,
        policy=SlowPolicy(settings.policy),
        token_loss=loss,
        retransmit=min(20_000_000, loss // 4),
        hold=min(IDLE, loss // 3),
        presence=IDLE,
        linger=min(LINGER, loss // 4),
        search=SEARCH,
    )


def _build(site: Site, rng: Random, out: Outbox) -> Stack:
    return Ring(site.member, ring_settings(site.settings, site.datagram), rng, out)


def _gathers(settings: GroupSettings) -> int:
    assert isinstance(settings, RingGroupSettings)
    return settings.minimum


FAMILY = FAMILIES.register(
    Family(
        name="ring",
        protocol=RING,
        settings=RingGroupSettings,
        build=_build,
        safe=True,
        gathers=_gathers,
        visiting={"minimum": 0},
    )
)
