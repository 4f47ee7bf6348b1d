"""The stacks a simulation can run. Each module registers its own."""

from semcast.sim.families import (
    calls,
    gateway,
    gossip,
    isis,
    lightweight,
    replication,
    ring,
    semantic,
    sessions,
    source,
    vsync,
)
from semcast.sim.families.record import FAMILIES, Family

__all__ = [
    "FAMILIES",
    "Family",
    "calls",
    "gateway",
    "gossip",
    "isis",
    "lightweight",
    "replication",
    "ring",
    "semantic",
    "sessions",
    "source",
    "vsync",
]
