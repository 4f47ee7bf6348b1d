"""Virtual synchrony: agreed views, and FIFO, causal or total order inside them."""

from semcast.protocols.vsync.detector import DetectorSettings
from semcast.protocols.vsync.family import VSYNC
from semcast.protocols.vsync.settings import Agreement, Engine, Flush, Order, Reform, VsyncSettings
from semcast.protocols.vsync.stack import VirtualSynchrony

__all__ = [
    "VSYNC",
    "Agreement",
    "DetectorSettings",
    "Engine",
    "Flush",
    "Order",
    "Reform",
    "VirtualSynchrony",
    "VsyncSettings",
]
