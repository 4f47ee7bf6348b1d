"""The stacks a program can choose. Each module registers its own."""

from semcast.group.families import ring, semantic, vsync
from semcast.group.registry import FAMILIES, Asked, Family, Renewed, Site

__all__ = ["FAMILIES", "Asked", "Family", "Renewed", "Site", "ring", "semantic", "vsync"]
