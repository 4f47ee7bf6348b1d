"""What `semcast bench` measures: real processes on this host, delivered at the slowest member."""

from semcast.bench.case import Case
from semcast.bench.measuring import Figures, measure

__all__ = ["Case", "Figures", "measure"]
