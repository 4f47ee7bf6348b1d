"""Flags of the command line that belong to one stack. Each module registers its own."""

from semcast.cli.families import isis, ring, semantic, vsync
from semcast.cli.families.record import FAMILIES, Family, Flags, refuse_strange

__all__ = ["FAMILIES", "Family", "Flags", "isis", "refuse_strange", "ring", "semantic", "vsync"]
