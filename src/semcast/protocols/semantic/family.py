"""What the family puts on the wire."""

from semcast.protocols.families import FAMILIES, Family
from semcast.protocols.semantic.frames import FRAMES

SEMANTIC = FAMILIES.register(Family("semantic", FRAMES))
