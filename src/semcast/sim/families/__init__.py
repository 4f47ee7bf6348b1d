"""The stacks a simulation can run. Each module registers its own."""

from semcast.sim.families import calls, gossip, isis, lightweight, replication, ring, semantic, vsync
from semcast.sim.families.record import FAMILIES, Family

__all__ = [
    "FAMILIES",
    "Family",
    "calls",
    "gossip",
    "isis",
    "lightweight",
    "replication",
    "ring",
    "semantic",
    "vsync",
]
