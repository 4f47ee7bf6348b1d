"""A host of a simulated world: a place on its network, and how fast programs are there."""

from semcast.testing.disk import Platter
from semcast.testing.lan import Lan
from semcast.testing.scratch import Scratch


class WorldHost:
    """One machine.

    Args:
        name: as tests and programs call it.
        number: on the network.
        lan: the network.
        scratch: where its files are.
    """

    def __init__(self, name: str, number: int, lan: Lan, scratch: Scratch) -> None:
        self.name = name
        self.number = number
        self.lan = lan
        self.scratch = scratch
        self.platters: dict[tuple[str, str, str], Platter] = {}
        """What members keep, by folder, group and name: it outlives their processes."""
        self.slowness = 0.0
        """Seconds that a program takes for each message it is given, besides its own."""
