"""Extended virtual synchrony on Spark: spans compared between stays, and small runs in memory."""

from semcast.pipeline.verify.evs.job import Synchrony
from semcast.pipeline.verify.evs.memory import IN_MEMORY, verdicts

__all__ = ["IN_MEMORY", "Synchrony", "verdicts"]
