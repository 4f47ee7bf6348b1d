"""Virtual synchrony for runs of any size: spans compared between the stays in a view."""

from semcast.pipeline.verify.large.views.job import judge_views

__all__ = ["judge_views"]
