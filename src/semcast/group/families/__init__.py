"""The stacks a program can choose. Each module registers its own."""

from semcast.group.families import gossip, lightweight, replication, ring, semantic, vsync
from semcast.group.registry import FAMILIES, Asked, Family, Site

__all__ = [
    "FAMILIES",
    "Asked",
    "Family",
    "Site",
    "gossip",
    "lightweight",
    "replication",
    "ring",
    "semantic",
    "vsync",
]
