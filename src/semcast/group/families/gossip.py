"""Gossip and loggers, live: members and loggers find each other, and come and go."""

from random import Random
from typing import cast, get_args

from semcast.core.ids import MILLISECOND, SECOND, MemberId
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.group.errors import ConfigurationError
from semcast.group.registry import FAMILIES, PACKET_OVERHEAD, Asked, Family, Site
from semcast.group.settings import GroupSettings, check_name, parse_duration, parse_size
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
from semcast.wire.limits import MAX_SEQ

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
_LOG_MESSAGES = 1 << 20
"""Messages of a sender that a log keeps with retention `limits`, if not said otherwise."""
_KEPT = 1 << 16
"""Messages that a member keeps for others."""


class GossipGroupSettings(GroupSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a group with stack `gossip`: publish/subscribe, with loggers or without."""

    protocol: str = Protocol.RPBCAST.value
    """Who repairs lost messages: `rpbcast` (peers, then loggers), `lbrm` (loggers only) or `pbcast` (peers
    only)."""
    logger: bool = False
    """Act as a logger: write all messages to `data`. `semcast logger` runs one."""
    durable: bool = False
    """Wait for a logger before joining. Otherwise a member without a logger has only the guarantee of pbcast
    until one appears."""
    loggers: tuple[str, ...] = ()
    """Names of all loggers, the same at every member. Only needed if there are several."""
    home: str = ""
    """Preferred logger of this member, for example a nearby one. Default: any."""
    region: str = ""
    """Location of this member, such as a site. It prefers loggers and peers of the same region."""
    sponsors: int = 3
    """Members that admit a joiner while no logger is reachable. The joiner misses nothing unless all of them
    crash. With loggers, fewer sponsors never admit anyone. 0: a joiner waits for a logger, or starts with
    whatever it receives. The same at all members."""
    client: bool = False
    """Query a logger without becoming a member, as `semcast.log` does."""
    log_acks: int = 1
    """Number of loggers that must have a message on disk before it counts as logged. The same at all
    members."""
    retention: str = Retention.LIVE.value
    """What a logger keeps: `live` (what no newer message replaces), `stable` (what some session has not read)
    or `limits` (the latest `log_messages` of each sender). In each case within `log_bytes` and `log_age`."""
    log_messages: int = _LOG_MESSAGES
    """With retention `limits`: messages of each sender to keep."""
    log_bytes: str = "0"
    """Bytes of messages to keep at most, with any retention; the oldest leave. 0 for no limit."""
    log_age: str = ""
    """How long to keep messages at most, with any retention, such as 60m; empty for no limit."""
    start: str = "new"
    """Where a new session starts: `new` (with the next message), `all` (with the oldest in the log),
    `compacted` (the same, without obsolete messages), `position` or `time` (see `start_at`), `acknowledged`
    (fail unless the logger knows the session)."""
    start_at: int = 0
    """With start `position`: the position in the log. With start `time`: nanoseconds since 1970."""
    filter: str = ""
    """Deliver only messages whose item starts with this prefix, and messages without an item."""
    stays: bool = False
    """Keep the session when this member leaves, for the next program with its name."""
    explicit: bool = False
    """The program acknowledges messages itself (`subscribe`), instead of by asking for the next one."""
    at_most_once: bool = False
    """After a crash, continue with new messages instead of repeating those since the last acknowledgement."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("protocol", self.protocol, [each.value for each in Protocol])
        _check_choice("retention", self.retention, [each.value for each in Retention])
        _check_choice("start", self.start, list(get_args(StartMode)))
        if not 0 <= self.start_at <= MAX_SEQ:
            raise ConfigurationError(f"start_at {self.start_at}: from 0 to {MAX_SEQ}")
        if self.stays and not self.name:
            raise ConfigurationError("stays needs a name: the next program finds the session by it")
        if self.policy == "leave":
            raise ConfigurationError("policy = leave is not available with stack gossip: use purge")
        parse_size(self.log_bytes)
        if self.log_age:
            parse_duration(self.log_age, "log_age")
        if len(self.filter) > MAX_FILTER:
            raise ConfigurationError(f"filter of {len(self.filter)} characters: at most {MAX_FILTER}")
        if self.logger and not self.data:
            raise ConfigurationError("a logger needs data: the folder for its log")
        if self.data and not self.logger:
            raise ConfigurationError("data is for loggers only: set logger = true, or leave data out")
        if not 1 <= self.log_acks <= max(1, len(self.loggers)):
            raise ConfigurationError(f"log_acks {self.log_acks}: must be from 1 to the number of loggers")
        if not all(self.loggers) or len(set(self.loggers)) < len(self.loggers):
            raise ConfigurationError(f"loggers {', '.join(map(repr, self.loggers))}: each needs its own name")
        for logger in self.loggers:
            check_name(logger)
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
        if self.log_messages != _LOG_MESSAGES and self.retention != Retention.LIMITS.value:
            raise ConfigurationError("log_messages needs retention = limits; log_bytes and log_age do not")
        if self.protocol == Protocol.PBCAST.value and (self.logger or self.durable):
            raise ConfigurationError("protocol pbcast has no loggers: choose rpbcast or lbrm")


def _check_choice(name: str, found: str, known: list[str]) -> None:
    if found not in known:
        raise ConfigurationError(f"{name} {found!r}: choose one of {', '.join(known)}")


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
