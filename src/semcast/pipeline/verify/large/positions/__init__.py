"""Total order for runs of any size, by recorded positions."""

from semcast.pipeline.verify.large.positions.job import TOTAL_ORDER, in_one_order, judge_positions

__all__ = ["TOTAL_ORDER", "in_one_order", "judge_positions"]
