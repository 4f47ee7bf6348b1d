"""Semantically reliable multicast: S-SRM and S-RM (Pereira 2002, chapters 4 and 5.2)."""

from semcast.protocols.semantic.family import SEMANTIC
from semcast.protocols.semantic.settings import ChannelSettings, Settings
from semcast.protocols.semantic.srm import SemanticMulticast
from semcast.protocols.semantic.ssrm import SenderMulticast

__all__ = ["SEMANTIC", "ChannelSettings", "SemanticMulticast", "SenderMulticast", "Settings"]
