"""What a command raises when the user asked for something impossible."""


class UsageError(Exception):
    """Shown as one line; the program exits with 2."""
