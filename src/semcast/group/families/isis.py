"""Causal domains, live: many groups of virtual synchrony, one process in all of them."""

import time
from random import Random

from semcast.core.ids import MILLISECOND, SECOND, MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError
from semcast.group.families.vsync import BUFFER_BYTES, REPAIR_BYTES, WINDOW_BYTES, detector_settings
from semcast.group.registry import FAMILIES, Family, Site
from semcast.group.settings import GroupSettings, parse_duration, parse_size
from semcast.obsolescence import Purging
from semcast.protocols.isis import ISIS, Isis, IsisSettings, Policy
from semcast.protocols.isis.settings import ACK_DELAY
from semcast.protocols.isis.structure import Structure
from semcast.protocols.vsync import VsyncSettings

_WRAPPER = 32
"""Bytes that the name of the group takes in a packet, at most."""
_BUFFER_MESSAGES = 1 << 14
_RUN_BYTES = 1 << 20


class IsisGroupSettings(GroupSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set about a program in a causal domain."""

    between: str = "conservative"
    """How causal order is kept between groups, the same at all programs: `conservative`, `full`, `blocks` or
    `epochs`."""
    structure: str | tuple[tuple[str, ...], ...] = "any"
    """With `blocks`, how groups overlap: `any`, `acyclic`, or the sets of groups that one program may be in
    together. A join that contradicts it is refused. The same at all programs."""
    resilience: str = "safe"
    """Who must have the causes of a message before a program acts on them in another group: `safe`, `all`, or
    how many failures they must survive."""
    minimum: int = 1
    """So many programs found a group together. With 1, who asks for a group first founds it; then programs
    that cannot hear each other found two, and those of one are put out when they meet."""
    credit: int = 1024
    """Messages of one program in one group that some other has not taken, at most."""

    def __post_init__(self) -> None:
        super().__post_init__()
        known = [policy.value for policy in Policy]
        if self.between not in known:
            raise ConfigurationError(f"policy {self.between!r}: between groups there are {', '.join(known)}")
        try:
            Structure(self.structure)
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        if self.structure != "any" and self.between != Policy.BLOCKS.value:
            raise ConfigurationError(f"structure says something with policy blocks only, not {self.between}")
        if self.resilience not in ("safe", "all") and not self.resilience.isdecimal():
            raise ConfigurationError(
                f"resilience {self.resilience!r}: there are safe, all, or a number of failures"
            )
        if self.minimum < 0 or self.credit < 1:
            raise ConfigurationError("minimum must be at least 0, and credit at least 1")


_EPOCH = 1_735_689_600 * SECOND
"""The beginning of 2025: first views are numbered from there, and small numbers take fewer bytes."""


def isis_settings(settings: GroupSettings, packet: int = 1300) -> IsisSettings:
    """Those of the stack, for packets of a size."""
    assert isinstance(settings, IsisGroupSettings)
    return IsisSettings(
        policy=Policy(settings.between),
        resilience=settings.resilience,
        structure=settings.structure,
        credit=settings.credit,
        send_messages=settings.send_messages,
        send_bytes=parse_size(settings.send_bytes),
        run_bytes=_RUN_BYTES,
        beacon=SECOND if settings.minimum == 1 else 0,
        notes=bool(settings.record),
        origin=time.time_ns() - time.monotonic_ns() - _EPOCH,
        vsync=VsyncSettings(
            purging=Purging.OFF if settings.policy == "block" else Purging.LAZY,
            buffer_messages=_BUFFER_MESSAGES,
            buffer_bytes=BUFFER_BYTES,
            fair=True,
            window_bytes=WINDOW_BYTES,
            repair_bytes=REPAIR_BYTES,
            rto_min=20 * MILLISECOND,
            frame_bytes=packet - _WRAPPER,
            greeting=SECOND,
            linger=SECOND,
            ack_delay=ACK_DELAY,
            detector=detector_settings(parse_duration(settings.token_loss)),
        ),
    )


def _build(site: Site, rng: Random, out: Outbox) -> Stack:
    return Isis(site.member, isis_settings(site.settings, site.packet), rng, out)


def _alike(settings: GroupSettings) -> tuple[MemberId, ...]:
    assert isinstance(settings, IsisGroupSettings)
    return (MemberId(f"isis-{settings.between}"),)


def _largest(_site: Site) -> int:
    return _RUN_BYTES


FAMILY = FAMILIES.register(
    Family(
        name=ISIS.name,
        protocol=ISIS,
        settings=IsisGroupSettings,
        build=_build,
        alike=_alike,
        kinds=tuple((MemberId(f"isis-{policy.value}"),) for policy in Policy),
        largest=_largest,
        clients=True,
    )
)
