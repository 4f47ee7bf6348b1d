"""The ring, live."""

from random import Random

from semcast.core.ids import MILLISECOND
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError
from semcast.group.registry import FAMILIES, PACKET_OVERHEAD, Family, Site
from semcast.group.settings import GroupSettings, parse_duration, parse_size
from semcast.protocols.ring import RING, Ring, RingSettings, SlowPolicy
from semcast.protocols.ring.frames import NAME_BYTES

SEARCH = 300 * MILLISECOND
"""How long a member that starts looks for others before it works alone."""
IDLE = 400 * MILLISECOND
"""How seldom an idle ring may move, and look for others: every word wakes everybody."""
LINGER = 3 * MILLISECOND
"""How long a member that sends little keeps the token, where nobody else wants it."""
WINDOW_BYTES = 2 << 20
"""Bytes of packets under way, at most: half of what a receiver's socket holds."""
CALM = 200 * MILLISECOND
"""How long a ring waits for further newcomers after each: programs that are started together take a while."""


class RingGroupSettings(GroupSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a group with stack `ring`."""

    minimum: int = 1
    """`join` returns, and this member sends, once it has been in a view of this many members."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minimum < 1:
            raise ConfigurationError(f"minimum {self.minimum}: at least 1")
        if len(self.name.encode()) > NAME_BYTES:
            raise ConfigurationError(f"name of {len(self.name.encode())} bytes: at most {NAME_BYTES}")


def ring_settings(settings: GroupSettings, datagram: int) -> RingSettings:
    """The ring for datagrams of a size: its window fits in a receiver's socket."""
    packet = datagram - PACKET_OVERHEAD
    window = settings.window or max(16, min(2048, WINDOW_BYTES // datagram))
    loss = parse_duration(settings.token_loss)
    minimum = settings.minimum if isinstance(settings, RingGroupSettings) else 1
    return RingSettings(
        minimum=minimum,
        packet_bytes=packet,
        window=window,
        visit=max(min(64, window), window // 3),
        accelerated=max(16, window // 8),
        queue_messages=settings.queue_messages,
        queue_bytes=parse_size(settings.queue_bytes),
        reserve_bytes=parse_size(settings.reserve),
        send_messages=settings.send_messages,
        policy=SlowPolicy(settings.policy),
        token_loss=loss,
        retransmit=min(20_000_000, loss // 4),
        hold=min(IDLE, loss // 3),
        presence=IDLE,
        linger=min(LINGER, loss // 4),
        search=SEARCH,
        calm=CALM,
        # Where a token takes long, so does everything else.
        gather=max(30 * MILLISECOND, loss // 16),
        join=max(20 * MILLISECOND, loss // 25),
        commit=max(120 * MILLISECOND, loss // 2),
    )


def _build(site: Site, rng: Random, out: Outbox) -> Stack:
    return Ring(site.member, ring_settings(site.settings, site.datagram), rng, out)


FAMILY = FAMILIES.register(
    Family(
        name="ring",
        protocol=RING,
        settings=RingGroupSettings,
        build=_build,
        calls=True,
        safe=True,
        visiting={"minimum": 1},
    )
)
