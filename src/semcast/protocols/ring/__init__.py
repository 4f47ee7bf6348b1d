"""The ring: total order, safe delivery and extended virtual synchrony (Amir 1995, chapters 4 and 5)."""

from semcast.protocols.ring.family import RING
from semcast.protocols.ring.settings import RingSettings, SlowPolicy
from semcast.protocols.ring.stack import Ring
from semcast.protocols.ring.states import MOVES, Cause, State

__all__ = ["MOVES", "RING", "Cause", "Ring", "RingSettings", "SlowPolicy", "State"]
