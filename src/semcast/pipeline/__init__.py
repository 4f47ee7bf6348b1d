"""Jobs on Spark (extra `semcast[pipeline]`), for traces and histories of any size.

Nothing is imported here, so that the rest of the package works where Spark is not installed.
"""
