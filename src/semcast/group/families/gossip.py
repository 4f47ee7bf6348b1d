"""Gossip and loggers, live: members and loggers find each other, and come and go."""

from random import Random
from typing import cast, get_args

from semcast.core.ids import MILLISECOND, SECOND, MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError
from semcast.group.registry import FAMILIES, PACKET_OVERHEAD, Asked, Family, Site
from semcast.group.settings import GroupSettings, parse_duration, parse_size
from semcast.obsolescence import Purging
from semcast.protocols.gossip import (
    GOSSIP,
    GossipSettings,
    LogClient,
    Logger,
    Member,
    Protocol,
    Retention,
    Seeker,
)
from semcast.protocols.gossip.settings import MAX_FILTER, MAX_REGION, MAX_SPONSORS, StartMode

_KIND = (MemberId("gossip"),)
"""Tells its datagrams from those of other families."""
_MESSAGE = 1 << 15
"""Bytes of a message, at most: it fits into a datagram."""
_PERIOD = 100 * MILLISECOND
_REPORT = SECOND
_RESEND = 250 * MILLISECOND
_PRESENCE = SECOND
_SEARCH = 500 * MILLISECOND
"""How long a member that starts looks for a logger before it goes on without."""
_WINDOW = 1 << 13
_REPAIRS = 1_000_000
_KEPT = 1 << 16
"""Messages that a member keeps for others."""


class GossipGroupSettings(GroupSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set about a group with gossip and loggers."""

    protocol: str = Protocol.RPBCAST.value
    """`rpbcast`: peers repair, then loggers; `lbrm`: loggers alone; `pbcast`: peers alone."""
    logger: bool = False
    """Be a logger: keep in `data` what is sent. `semcast logger` runs one."""
    durable: bool = False
    """Wait for a logger where there is none, instead of going on with pbcast's promise until one comes."""
    loggers: tuple[str, ...] = ()
    """Names of all loggers, where there are several, the same everywhere; one is found without."""
    home: str = ""
    """The logger that this member would rather have, because it is near; any, without."""
    region: str = ""
    """Where this member is, such as a site: it prefers the loggers and peers that say the same."""
    sponsors: int = 3
    """Members that must take in who joins where no logger does; so many less one may crash. Where there are
    loggers, and all are away, fewer never do. 0: who joins waits for a logger, or begins with what it hears.
    The same at all members."""
    client: bool = False
    """Be no member, and only ask a logger: `semcast.log` does."""
    log_acks: int = 1
    """Loggers that must have a message on disk before it counts as logged; the same at all members."""
    retention: str = Retention.LIVE.value
    """What a logger keeps: `live`, `stable` or `limits`."""
    log_messages: int = 1 << 20
    """Messages of a stream that a logger keeps at most under `limits`."""
    log_bytes: str = "0"
    """Bytes of messages that a logger keeps at most under `limits`; 0 for no bound."""
    log_age: str = ""
    """How long a logger keeps messages under `limits`, such as 60m; empty for no bound."""
    start: str = "new"
    """Where a session begins that its logger does not know: `new` (with what comes), `all` (with what there
    is), `compacted` (with what there is and nothing replaced), `acknowledged` (nowhere: it must be known),
    `position`, `time`."""
    start_at: int = 0
    """The position of the log to begin with, or the time of day in nanoseconds."""
    filter: str = ""
    """Of messages about an item, the program is given those whose item begins with it."""
    stays: bool = False
    """Whether the session goes on when this member leaves, for the next one of its name."""
    explicit: bool = False
    """Whether the program says what it is through with (`subscribe`), and not by reading on."""
    at_most_once: bool = False
    """Whether a session that comes back after a crash begins anew, instead of where it had acknowledged."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("protocol", self.protocol, [each.value for each in Protocol])
        _check_choice("retention", self.retention, [each.value for each in Retention])
        _check_choice("start", self.start, list(get_args(StartMode)))
        if self.start_at < 0:
            raise ConfigurationError(f"start_at {self.start_at}: at least 0")
        if self.stays and not self.name:
            raise ConfigurationError("stays needs a name: by it the next program finds its session")
        if self.policy == "leave":
            raise ConfigurationError("policy 'leave': no slow program holds anybody back here; set purge")
        if (parse_size(self.log_bytes) or self.log_age) and self.retention != Retention.LIMITS.value:
            raise ConfigurationError("log_bytes and log_age are for retention 'limits'")
        if len(self.filter) > MAX_FILTER:
            raise ConfigurationError(f"filter of {len(self.filter)} characters: at most {MAX_FILTER}")
        if self.logger and not self.data:
            raise ConfigurationError("data: a logger needs a folder for its log")
        if self.data and not self.logger:
            raise ConfigurationError("data: only a logger keeps something on disk; set logger")
        if not 1 <= self.log_acks <= max(1, len(self.loggers)):
            raise ConfigurationError(f"log_acks {self.log_acks}: from 1 to as many as `loggers` names")
        if self.loggers and self.logger is not (self.name in self.loggers):
            role = "is not among" if self.logger else "is one of"
            raise ConfigurationError(f"name {self.name!r} {role} the loggers {', '.join(self.loggers)}")
        if self.loggers and self.home and self.home not in self.loggers:
            raise ConfigurationError(f"home {self.home!r} is none of the loggers {', '.join(self.loggers)}")
        if len(self.region) > MAX_REGION:
            raise ConfigurationError(f"region of {len(self.region)} characters: at most {MAX_REGION}")
        if not 0 <= self.sponsors <= MAX_SPONSORS:
            raise ConfigurationError(f"sponsors {self.sponsors}: from 0 to {MAX_SPONSORS}")
        if self.log_messages < 1:
            raise ConfigurationError(f"log_messages {self.log_messages}: at least 1")
        if self.protocol == Protocol.PBCAST.value and (self.logger or self.durable):
            raise ConfigurationError("protocol 'pbcast' knows no loggers: choose rpbcast or lbrm")


def _check_choice(name: str, found: str, known: list[str]) -> None:
    if found not in known:
        raise ConfigurationError(f"{name} {found!r}: there are {', '.join(known)}")


def gossip_settings(settings: GroupSettings, frame_bytes: int) -> GossipSettings:
    """The stack's."""
    assert isinstance(settings, GossipGroupSettings)
    return GossipSettings(
        protocol=Protocol(settings.protocol),
        durable=settings.protocol != Protocol.PBCAST.value,
        presence=_PRESENCE,
        loggers=settings.loggers,
        log_acks=settings.log_acks,
        home=settings.home,
        sponsors=settings.sponsors,
        region=settings.region,
        gossip_period=_PERIOD,
        resend=_RESEND,
        report=_REPORT,
        repairs_per_second=_REPAIRS,
        gossip_messages=_KEPT,
        window=_WINDOW,
        frame_bytes=frame_bytes,
        hold=2 * _WINDOW,
        queue_messages=settings.queue_messages,
        purging=Purging.OFF if settings.policy == "block" else Purging.LAZY,
        start=cast("StartMode", settings.start),
        start_at=settings.start_at,
        stays=settings.stays,
        filter=settings.filter,
        explicit=settings.explicit,
        at_most_once=settings.at_most_once,
        retention=Retention(settings.retention),
        log_messages=settings.log_messages,
        log_bytes=parse_size(settings.log_bytes),
        log_age=parse_duration(settings.log_age, "log_age") if settings.log_age else 0,
    )


def _build(site: Site, rng: Random, out: Outbox) -> Stack:
    settings, chosen = site.settings, gossip_settings(site.settings, site.datagram - PACKET_OVERHEAD)
    assert isinstance(settings, GossipGroupSettings)
    if settings.client:
        return LogClient(site.member, settings.home, rng, out)
    if settings.logger:
        logger = Logger(site.member, (), chosen, rng, out)
        logger.placing.epoch = site.epoch
        return logger
    if settings.durable or settings.loggers or chosen.protocol is not Protocol.RPBCAST:
        return Member(site.member, (), chosen, rng, out)
    return Seeker(site.member, (), chosen, _SEARCH, rng, out)


def _alike(_settings: GroupSettings) -> tuple[MemberId, ...]:
    return _KIND


def _asked(settings: GroupSettings) -> Asked:
    assert isinstance(settings, GossipGroupSettings)
    return Asked(stack=settings.protocol)


def _largest(_site: Site) -> int:
    return _MESSAGE


FAMILY = FAMILIES.register(
    Family(
        name="gossip",
        runs=tuple(each.value for each in Protocol),
        protocol=GOSSIP,
        settings=GossipGroupSettings,
        build=_build,
        alike=_alike,
        kinds=(_KIND,),
        asked=_asked,
        largest=_largest,
        splits=False,
        confirms=("delivered", "logged"),
        instead_of_safe="; see logged",
        keeps=True,
        tailing="purge",
    )
)
