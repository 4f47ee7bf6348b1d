"""One order of all that happens in a run, put together from the orders of its processes.

Rows are brought together by message, which gives each its rank (`windows`, `ranks`), and then by process,
where what follows the ranks is folded into few blocks (`paths`). The driver looks for circles among these
(`knots`), and says what that means (`outcome`).
"""

from semcast.pipeline.verify.large.line.job import judge_line
from semcast.pipeline.verify.large.line.outcome import AGREED, CAUSAL, ORDER

LINE = (*ORDER, CAUSAL, AGREED)
"""The specifications that are judged by it."""

__all__ = ["LINE", "judge_line"]
