"""What daemons put on the wire: nothing but the frames of the ring below them."""

from semcast.protocols.families import FAMILIES, Family
from semcast.protocols.ring.family import RING

LIGHTWEIGHT = FAMILIES.register(Family("lightweight", RING.frames))
