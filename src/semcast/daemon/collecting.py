"""The garbage collector of a process that is a daemon and nothing else.

Its map of clients and groups is large, lives long and has no cycles. With Python's usual thresholds the
collector went through it again and again: that took half of the time of a join.
"""

import gc

_YOUNG, _MIDDLE, _OLD = 10_000, 20, 20
"""Objects that are made until the youngest are looked through, and how often until older ones are, too."""


def collect_seldom() -> None:
    """Leave alone what is there already, and look for cycles in the rest now and then."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
