"""What the family puts on the wire besides the frames of the group communication below."""

from semcast.protocols.families import FAMILIES, Family
from semcast.replication.frames import FRAMES

REPLICATION = FAMILIES.register(Family("replication", FRAMES))
