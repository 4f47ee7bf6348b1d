"""What the family puts on the wire."""

from semcast.protocols.families import FAMILIES, Family
from semcast.protocols.gossip.frames import FRAMES
from semcast.protocols.gossip.sponsor_frames import SPONSOR_FRAMES

GOSSIP = FAMILIES.register(Family("gossip", (*FRAMES, *SPONSOR_FRAMES)))
