"""A group in memory: members, a wire that a test holds in its hands, and virtual time."""

from semcast.lab.application import Application, Keeper
from semcast.lab.disk import Disk
from semcast.lab.lab import Lab, Letter
from semcast.lab.measured import Counter, Forgetful, stateless
from semcast.lab.seat import EVERYTHING, Seat

__all__ = [
    "EVERYTHING",
    "Application",
    "Counter",
    "Disk",
    "Forgetful",
    "Keeper",
    "Lab",
    "Letter",
    "Seat",
    "stateless",
]
