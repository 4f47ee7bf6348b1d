"""What a server outside of the group and those inside say to each other, beside the group communication."""

import msgspec

from semcast.core.outbox import Frame
from semcast.replication.ids import Number, Server
from semcast.replication.knowledge import Prim

LOOK, TAIL, SNAPSHOT = 0, 1, 2
"""What is wanted: to know who is there; the green actions that follow; a snapshot in the place of those
before."""


class Wanted(Frame, frozen=True, array_like=True, tag=60, gc=False):
    """A server outside has green actions up to a position."""

    server: Server
    position: Number
    what: Number
    foundation: Number = 0
    """Of which group it is (`strangers.py`); 0 if of none yet."""


class Offer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How a server inside stands, for one outside."""

    line: Number
    """The green actions that it has on its disk."""
    start: Number
    """It has the actions themselves from here on."""
    founded: bool
    """Whether it knows a primary."""
    takes: bool
    """Whether it can multicast what it is handed."""
    welcome: bool
    """Whether who asks belongs to the group."""
    prim: Prim = Prim()
    """The last primary that it knows, on its disk."""
    foundation: Number = 0
    """Which group it is (`strangers.py`)."""


class Offered(Frame, frozen=True, array_like=True, tag=61, gc=False):
    """What a server has; with what was wanted in a parcel, if it was wanted and is there."""

    offer: Offer
    what: Number
    parcel: Number = 0
    size: Number = 0


class HandedIn(Frame, frozen=True, array_like=True, tag=62, gc=False):
    """Reds of a server that has too many of them for an exchange: they are to be multicast for it."""

    parcel: Number
    size: Number


class Fetch(Frame, frozen=True, array_like=True, tag=63, gc=False):
    """Send these bytes of a parcel."""

    parcel: Number
    begin: Number
    end: Number


class Piece(Frame, frozen=True, array_like=True, tag=64, gc=False):
    """Bytes of a parcel."""

    parcel: Number
    begin: Number
    data: bytes


FRAMES: tuple[type[Frame], ...] = (Wanted, Offered, HandedIn, Fetch, Piece)
