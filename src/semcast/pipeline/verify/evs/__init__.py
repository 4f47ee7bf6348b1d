"""Extended virtual synchrony on Spark: spans compared between stays."""

from semcast.pipeline.verify.evs.job import Synchrony

__all__ = ["Synchrony"]
