"""What the family puts on the wire."""

from semcast.protocols.families import FAMILIES, Family
from semcast.protocols.gossip.frames import FRAMES

GOSSIP = FAMILIES.register(Family("gossip", FRAMES))
