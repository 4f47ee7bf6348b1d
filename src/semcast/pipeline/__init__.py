"""Jobs on Spark (extra `semcast[pipeline]`): what a traffic's obsolescence is, how groups behave, what they kept.

Nothing is imported here, so that the rest of the package works where Spark is not installed.
"""
