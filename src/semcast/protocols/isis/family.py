"""What the family puts on the wire."""

from semcast.protocols.families import FAMILIES, Family
from semcast.protocols.isis.frames import FRAMES

ISIS = FAMILIES.register(Family("isis", FRAMES))
