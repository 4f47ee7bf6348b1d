"""What the family puts on the wire."""

from semcast.protocols.families import FAMILIES, Family
from semcast.protocols.ring.frames import FRAMES

RING = FAMILIES.register(Family("ring", FRAMES))
