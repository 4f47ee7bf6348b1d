"""Causal order inside views, for runs of any size (Pereira 2002, 4.6)."""

from semcast.pipeline.verify.large.causal.job import CAUSAL, judge_causal

__all__ = ["CAUSAL", "judge_causal"]
