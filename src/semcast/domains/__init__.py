"""Domains: many groups, one identity, one ordered stream."""

from semcast.core.messages import PrivateMessage
from semcast.domains.connecting import connect
from semcast.domains.domain import Domain
from semcast.domains.events import (
    DomainEvent,
    DomainMessage,
    DomainView,
    Undeliverable,
)
from semcast.domains.hierarchy import Hierarchy, hierarchy
from semcast.domains.light import Flavour, LightGroup
from semcast.domains.link import Link, Terms
from semcast.domains.opening import domain

__all__ = [
    "Domain",
    "DomainEvent",
    "DomainMessage",
    "DomainView",
    "Flavour",
    "Hierarchy",
    "LightGroup",
    "Link",
    "PrivateMessage",
    "Terms",
    "Undeliverable",
    "connect",
    "domain",
    "hierarchy",
]
