"""What can go wrong for a program that uses a group."""


class GroupError(Exception):
    """Base of all errors of this package."""


class GroupClosedError(GroupError):
    """The group was closed, or this member left it; says why."""


class UnconfirmedError(GroupError):
    """It is not known, or not true, that a message came as far as `confirm` asked for; says why.

    The message was accepted: others may have it, or get it yet.
    """


class ConfigurationError(GroupError):
    """A setting that makes no sense; says which, and what would."""
