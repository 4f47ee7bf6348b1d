"""What the user did wrong, as opposed to what we did."""


class UsageError(Exception):
    """Shown as one line, without a traceback; the program exits with 2."""
