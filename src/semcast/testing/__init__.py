"""A group in memory: members, a wire that a test holds in its hands, and virtual time."""

from semcast.testing.application import Application, Keeper
from semcast.testing.disk import Disk
from semcast.testing.lab import Lab, Letter
from semcast.testing.measured import Counter, Forgetful, stateless
from semcast.testing.seat import EVERYTHING, Seat

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
