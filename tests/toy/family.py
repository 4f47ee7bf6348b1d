"""The toy for the layer of protocols: what it puts on the wire."""

from tests.toy.frames import FRAMES

from semcast.protocols.families import FAMILIES, Family

TOY = FAMILIES.register(Family("toy", FRAMES))
