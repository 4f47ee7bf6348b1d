"""LBRM, pbcast and rpbcast (Sun 2000): unreliable multicast, repaired by a logger, by gossip, or by both."""

from semcast.protocols.gossip.client import LogClient
from semcast.protocols.gossip.family import GOSSIP
from semcast.protocols.gossip.logger import Logger
from semcast.protocols.gossip.member import Member
from semcast.protocols.gossip.seeking import Seeker
from semcast.protocols.gossip.settings import Choice, GossipSettings, Protocol, Retention

__all__ = [
    "GOSSIP",
    "Choice",
    "GossipSettings",
    "LogClient",
    "Logger",
    "Member",
    "Protocol",
    "Retention",
    "Seeker",
]
