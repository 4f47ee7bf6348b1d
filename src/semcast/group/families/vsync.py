"""Virtual synchrony, live."""

from random import Random

from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError
from semcast.group.registry import FAMILIES, Asked, Family, Site
from semcast.group.settings import GroupSettings, parse_duration, parse_size
from semcast.obsolescence import Purging
from semcast.protocols.vsync import (
    VSYNC,
    DetectorSettings,
    Engine,
    Flush,
    Order,
    Reform,
    VirtualSynchrony,
    VsyncSettings,
)
from semcast.protocols.vsync.numbers import note_room
from semcast.wire.limits import MAX_MESSAGE

BUFFER_MESSAGES = 1 << 16
BUFFER_BYTES = 16 << 20
WINDOW_BYTES = 2 << 20
"""Bytes under way of all members together, about: half of what a receiver's socket holds."""
REPAIR_BYTES = WINDOW_BYTES // 2
_RTO_MIN = 20 * MILLISECOND
"""A busy machine takes its time to answer."""
_LAG = 50 * MILLISECOND
_PATIENCE = SECOND
"""How long one member waits for the others, at most."""
_CHOICES = {
    "order": ("fifo", "causal", "total"),
    "engine": ("token", "consensus"),
    "flush": ("coordinator", "all"),
    "reform": ("automatic", "manual"),
}
_FEWEST = 64
_KIND = (MemberId("vsync"),)
"""Tells its datagrams from those of other families; who has set otherwise what must be alike is told so."""


class SynchronySettings(GroupSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a group with stack `vsync`: agreed views, one primary partition."""

    order: str = ""
    """Message order: `fifo` (default), `causal` or `total`. The same at all members."""
    engine: str = ""
    """How a total order is decided: `token` (default) or `consensus`. The same at all members."""
    uniform: bool = False
    """Deliver a message only once a majority has it, so that it survives the crash of any minority. The same
    at all members."""
    flush: str = ""
    """Who announces a view change: the `coordinator` (default) or `all` members. The same at all members."""
    minimum: int = 0
    """How many members form the first view together: more than half of all founders (2 of 3, 3 of 5). 0: only
    join an existing group."""
    reform: str = ""
    """When the survivors of a lost majority form a new view: `automatic` (default), once every other member
    of the last view is back under its name; `manual`, when `Group.reform` is called."""
    bootstrap: bool = False
    """Form the first view alone. Set it at one member only, and only for the first start of the group."""
    expel_after: str = ""
    """Expel a member that has lagged this long. Off by default."""
    expel_when_full: bool = False
    """Expel a lagging member as soon as the messages it lacks fill the others' buffers."""
    buffer_messages: int = 0
    """Messages a member retains until all members have them; 0 for 65536. The same at all members."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in _CHOICES.items():
            if getattr(self, name) not in ("", *known):
                raise ConfigurationError(f"{name} {getattr(self, name)!r}: choose one of {', '.join(known)}")
        if self.engine and self.order != "total":
            raise ConfigurationError(f"engine {self.engine!r} needs order = total")
        if self.minimum < 0 or (self.bootstrap and self.minimum > 1):
            raise ConfigurationError(
                f"minimum {self.minimum}: must be 0 or more, and at most 1 with bootstrap"
            )
        if self.expel_after:
            parse_duration(self.expel_after)
        if self.buffer_messages and self.buffer_messages < _FEWEST:
            raise ConfigurationError(
                f"buffer_messages must be at least {_FEWEST}, not {self.buffer_messages}"
            )


def vsync_settings(settings: GroupSettings, packet: int, *, state: bool) -> VsyncSettings:
    """The stack for packets of a size."""
    assert isinstance(settings, SynchronySettings)
    silence = parse_duration(settings.token_loss)
    return VsyncSettings(
        order=Order(settings.order or Order.FIFO),
        engine=Engine(settings.engine or Engine.TOKEN),
        flush=Flush(settings.flush or Flush.COORDINATOR),
        uniform=settings.uniform,
        minimum=1 if settings.bootstrap else settings.minimum,
        reform=Reform(settings.reform or Reform.AUTOMATIC),
        state=state,
        purging=Purging.OFF if settings.policy == "block" else Purging.LAZY,
        buffer_messages=settings.buffer_messages or BUFFER_MESSAGES,
        buffer_bytes=BUFFER_BYTES,
        queue_messages=settings.queue_messages,
        queue_bytes=parse_size(settings.queue_bytes),
        reserve_bytes=parse_size(settings.reserve),
        lag=_LAG,
        fair=True,
        window_bytes=WINDOW_BYTES,
        repair_bytes=REPAIR_BYTES,
        rto_min=_RTO_MIN,
        frame_bytes=packet,
        greeting=_PATIENCE,
        linger=_PATIENCE,
        expel_after=parse_duration(settings.expel_after) if settings.expel_after else 0,
        expel_when_full=settings.expel_when_full,
        leave_after=_PATIENCE if settings.policy == "leave" else 0,
        detector=detector_settings(silence),
    )


def detector_settings(silence: Nanos) -> DetectorSettings:
    """Nobody is suspected before it was silent for so long; who pauses often may be for longer."""
    heartbeat = max(min(silence // 10, 50 * MILLISECOND), 1)
    return DetectorSettings(
        heartbeat=heartbeat,
        timeout_initial=silence,
        timeout_min=silence,
        timeout_max=max(10 * silence, 5 * SECOND),
        margin=max(silence // 5, 1),
    )


def largest_message(settings: GroupSettings, packet: int) -> int:
    """Bytes: its pieces must find room together."""
    assert isinstance(settings, SynchronySettings)
    return min(MAX_MESSAGE, packet * ((settings.buffer_messages or BUFFER_MESSAGES) // 4))


def _build(site: Site, rng: Random, out: Outbox) -> Stack:
    chosen = vsync_settings(site.settings, site.packet, state=site.state)
    return VirtualSynchrony(site.member, chosen, rng, out)


def _alike(_settings: GroupSettings) -> tuple[MemberId, ...]:
    return _KIND


def _asked(settings: GroupSettings) -> Asked:
    assert isinstance(settings, SynchronySettings)
    return Asked(settings.order or Order.FIFO.value, settings.uniform)


def _forgets(settings: GroupSettings) -> int:
    assert isinstance(settings, SynchronySettings)
    return 0 if settings.data else settings.minimum


def _advice(settings: GroupSettings) -> str:
    """A group without founders never begins, which no member can see from where it is."""
    assert isinstance(settings, SynchronySettings)
    if settings.bootstrap or settings.minimum:
        return f"do {max(1, settings.minimum)} founders run, with the same settings and keys?"
    return (
        "it may join a group, but not form one. To form the first view, set minimum= at all members (more"
        " than half of those that start), or bootstrap=True at one of them"
    )


def _largest(site: Site) -> int:
    return largest_message(site.settings, site.packet)


FAMILY = FAMILIES.register(
    Family(
        name="vsync",
        protocol=VSYNC,
        settings=SynchronySettings,
        calls=True,
        build=_build,
        alike=_alike,
        kinds=(_KIND,),
        asked=_asked,
        largest=_largest,
        note_room=note_room,
        instead_of_safe="; see uniform",
        renumbers=True,
        keeps=True,
        transfers=True,
        admits=True,
        forgets=_forgets,
        advice=_advice,
        visiting={"minimum": 0, "bootstrap": False},
        tailing="purge",
    )
)
