"""Semcast beside what people would use instead: the same work, in one run, on this host."""

from semcast.bench.compare.running import CONTESTANTS, Missing, Standing, compare

__all__ = ["CONTESTANTS", "Missing", "Standing", "compare"]
