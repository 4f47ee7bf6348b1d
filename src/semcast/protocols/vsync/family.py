"""What the family puts on the wire."""

from semcast.protocols.families import FAMILIES, Family
from semcast.protocols.vsync.frames import FRAMES

VSYNC = FAMILIES.register(Family("vsync", FRAMES))
