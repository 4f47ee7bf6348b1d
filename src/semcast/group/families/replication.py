"""Replication servers, live: a ring below, and a folder for what must outlive a crash."""

from random import Random

import msgspec

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError
from semcast.group.families.ring import ring_settings
from semcast.group.registry import FAMILIES, PACKET_OVERHEAD, Family, Site
from semcast.group.settings import GroupSettings, check_name
from semcast.protocols.families import Family as Protocol
from semcast.protocols.ring import RING, Ring, SlowPolicy
from semcast.protocols.ring.frames import NAME_BYTES
from semcast.replication.family import REPLICATION
from semcast.replication.settings import Durability, ReplicationSettings
from semcast.replication.stack import Replication
from semcast.wire.limits import MAX_MESSAGE

_KIND = (MemberId("replication"),)
"""Tells its datagrams from those of other families: who does not take part in exchanges would stop them."""
_PIECE = 32_000
"""Bytes of a snapshot in one datagram, at most."""
_OVERHEAD = 4096
"""Bytes of a message besides its actions, at most."""


class ReplicationGroupSettings(GroupSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a server of a replicated service."""

    founders: tuple[str, ...] = ()
    """Names of all servers that found the group. The same list at every founder."""
    newcomer: bool = False
    """Join an existing group: wait until its servers add this one."""
    trim_every: int = 200_000
    """Take a snapshot and trim the log after this many actions; 0 for never."""
    retention: int = 100_000
    """Actions kept for lagging servers. A server that lags further gets a snapshot."""
    allow_mixed: bool = False
    """Accept writes also at servers whose SQLite version differs from that of the majority."""
    durability: str = "disk"
    """When a strict action is answered: once its position is synced to this server's `disk`, or as soon as it
    is ordered (`memory`)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.data:
            raise ConfigurationError("data: a replication server needs a folder for its log")
        if len(self.name.encode()) > NAME_BYTES:
            raise ConfigurationError(f"name of {len(self.name.encode())} bytes: at most {NAME_BYTES}")
        for name in self.founders:
            check_name(name)
        if len(set(self.founders)) != len(self.founders):
            raise ConfigurationError(f"founders {', '.join(self.founders)}: a name is listed twice")
        if self.founders and self.newcomer:
            raise ConfigurationError(
                "newcomer and founders exclude each other: set founders at the servers that found the group"
            )
        if not self.founders and not self.newcomer:
            raise ConfigurationError(
                "founders: name all servers that found the group, or set newcomer to join an existing one"
            )
        if self.founders and self.name not in self.founders:
            raise ConfigurationError(
                f"founders {', '.join(self.founders)}: {self.name!r} is not among them; set newcomer instead"
            )
        if self.durability not in (each.value for each in Durability):
            raise ConfigurationError(f"durability {self.durability!r}: choose disk or memory")
        for name in ("trim_every", "retention"):
            if getattr(self, name) < 0:
                raise ConfigurationError(f"{name} {getattr(self, name)}: at least 0")


def replication_settings(settings: GroupSettings, datagram: int) -> ReplicationSettings:
    """Those of the server itself, with datagrams of a size."""
    assert isinstance(settings, ReplicationGroupSettings)
    return ReplicationSettings(
        names=settings.founders,
        durability=Durability(settings.durability),
        buffer=settings.send_messages,
        notes=bool(settings.record),
        trim_every=settings.trim_every,
        retention=settings.retention,
        snapshots=True,
        piece_bytes=min(_PIECE, datagram - PACKET_OVERHEAD),
    )


def _build(site: Site, rng: Random, out: Outbox) -> Stack:
    ring = msgspec.structs.replace(ring_settings(site.settings, site.datagram), policy=SlowPolicy.BLOCK)

    def below(me: MemberId, rng: Random, out: Outbox) -> Stack:
        return Ring(me, ring, rng, out)

    settings = replication_settings(site.settings, site.datagram)
    stack = Replication(site.member, settings, below, rng, out, state=site.state)
    assert isinstance(site.settings, ReplicationGroupSettings)
    stack.vitals.allow_mixed = site.settings.allow_mixed
    return stack


def _alike(_settings: GroupSettings) -> tuple[MemberId, ...]:
    return _KIND


def _largest(_site: Site) -> int:
    return MAX_MESSAGE - _OVERHEAD


FAMILY = FAMILIES.register(
    Family(
        name=REPLICATION.name,
        protocol=Protocol(REPLICATION.name, (*RING.frames, *REPLICATION.frames)),
        settings=ReplicationGroupSettings,
        build=_build,
        alike=_alike,
        kinds=(_KIND,),
        largest=_largest,
        safe=True,
        announces=False,
        renumbers=True,
        keeps=True,
        transfers=True,
        admits=True,
    )
)
