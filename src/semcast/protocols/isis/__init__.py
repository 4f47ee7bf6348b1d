"""Many overlapping groups, causally (Birman, Schiper, Stephenson 1991, sections 6 and 7)."""

from semcast.protocols.isis.family import ISIS
from semcast.protocols.isis.settings import IsisSettings, Policy
from semcast.protocols.isis.stack import Isis, IsisTimer

__all__ = ["ISIS", "Isis", "IsisSettings", "IsisTimer", "Policy"]
