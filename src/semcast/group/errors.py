"""What can go wrong for a program that uses a group."""


class GroupError(Exception):
    """Base of all errors of this package."""


class GroupClosedError(GroupError):
    """The group was closed, or this member left it; says why."""


class ConfigurationError(GroupError):
    """A setting that makes no sense; says which, and what would."""
