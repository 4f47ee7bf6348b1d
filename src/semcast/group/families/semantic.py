"""S-RM, live: the members and their addresses are known to all."""

from random import Random

from semcast.core.ids import MILLISECOND
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError
from semcast.group.registry import FAMILIES, PACKET_OVERHEAD, Family, Site
from semcast.group.settings import GroupSettings, parse_size
from semcast.obsolescence import Purging
from semcast.protocols.semantic import SEMANTIC, SemanticMulticast, Settings

STATIC_BYTES = 1 << 20
"""What a member of a fixed list keeps for others, at least: no more is under way than sockets hold."""
STATIC_MESSAGE = 1 << 15
"""Bytes of its messages, at most."""
STATIC_WINDOW = 1 << 15
"""How far a sender may run ahead: the same at all members, however long the queues of their programs are."""


class StaticSettings(GroupSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set about a group with a fixed list of members."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy == "leave":
            raise ConfigurationError(
                "policy 'leave': the members of s-rm are a fixed list that nobody leaves; set purge or block"
            )


def _build(site: Site, rng: Random, out: Outbox) -> Stack:
    chosen = Settings(
        buffer_messages=min(max(site.settings.queue_messages, len(site.members)), STATIC_WINDOW),
        queue_messages=site.settings.queue_messages,
        queue_bytes=parse_size(site.settings.queue_bytes),
        reserve_bytes=parse_size(site.settings.reserve),
        purging=Purging.OFF if site.settings.policy == "block" else Purging.EAGER,
        buffer_bytes=max(STATIC_BYTES, 2 * len(site.members) * STATIC_MESSAGE),
        max_message=STATIC_MESSAGE,
        window=STATIC_WINDOW,
        gossip_busy=2 * MILLISECOND,
        rto_min=20 * MILLISECOND,
        repair_bytes=STATIC_BYTES,
        hopeful=True,
        frame_bytes=site.datagram - PACKET_OVERHEAD,
    )
    return SemanticMulticast(site.member, site.members, chosen, rng, out)


def _largest(_site: Site) -> int:
    return STATIC_MESSAGE


FAMILY = FAMILIES.register(
    Family(
        name="s-rm",
        protocol=SEMANTIC,
        settings=StaticSettings,
        build=_build,
        fixed=True,
        largest=_largest,
        splits=False,
        takes_updates=False,
        announces=False,
    )
)
