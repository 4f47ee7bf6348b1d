"""What a server outside of the group and those inside say to each other, beside the group communication."""

from semcast.core.outbox import Frame
from semcast.replication.actions import Run
from semcast.replication.ids import Number, Server
from semcast.replication.pull import Image


class Wanted(Frame, frozen=True, array_like=True, tag=60, gc=False):
    """A server outside has green actions up to a position. Who is asked directly sends what follows."""

    server: Server
    position: Number
    directly: bool


class Offered(Frame, frozen=True, array_like=True, tag=61, gc=False):
    """What this server has, and of its green actions those that follow a position."""

    image: Image
    position: Number
    runs: list[Run]


class HandedIn(Frame, frozen=True, array_like=True, tag=62, gc=False):
    """Reds of a server that has too many of them for an exchange: they are to be multicast for it."""

    runs: list[Run]


FRAMES: tuple[type[Frame], ...] = (Wanted, Offered, HandedIn)
