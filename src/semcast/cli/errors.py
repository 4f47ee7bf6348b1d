"""What a command raises when it cannot do what was asked."""


class UsageError(Exception):
    """The user asked for something impossible. Shown as one line; the program exits with 2."""


class JobError(Exception):
    """What was asked for was begun and failed, or its output is missing. One line; exit code 3."""
