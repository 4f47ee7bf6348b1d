"""Lightweight groups: many groups and clients over one ring of daemons (Amir 1995, 5.1)."""

from semcast.protocols.lightweight.family import LIGHTWEIGHT
from semcast.protocols.lightweight.machine import Machine
from semcast.protocols.lightweight.sessions import Refused, Session
from semcast.protocols.lightweight.settings import LightweightSettings
from semcast.protocols.lightweight.stack import Lightweight, LightweightTimer

__all__ = [
    "LIGHTWEIGHT",
    "Lightweight",
    "LightweightSettings",
    "LightweightTimer",
    "Machine",
    "Refused",
    "Session",
]
