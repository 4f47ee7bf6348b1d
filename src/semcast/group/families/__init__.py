"""The stacks a program can choose. Each module registers its own."""

from semcast.group.families import gossip, isis, lightweight, replication, ring, semantic, vsync
from semcast.group.registry import FAMILIES, Asked, Family, Site

__all__ = [
    "FAMILIES",
    "Asked",
    "Family",
    "Site",
    "gossip",
    "isis",
    "lightweight",
    "replication",
    "ring",
    "semantic",
    "vsync",
]
