"""What can go wrong for a program that uses a group."""


class GroupError(Exception):
    """Base of all errors of this package."""

    accepted: int = 0
    """Messages of the call that were accepted before it failed, from its first: these are sent."""


class GroupClosedError(GroupError):
    """The group was closed, or this member left it or was expelled; the text says why."""


class BacklogError(GroupError):
    """The program waits in `send` without reading, and its receive queue and reserve are full.

    Raised by every call that waits to send. Read first, then send again: only the first `accepted` messages
    of the call were accepted.
    """


class SendTimeoutError(GroupError, TimeoutError):
    """Flow control did not allow to send within `timeout`; the text names the cause."""


class UnconfirmedError(GroupError):
    """A message could not be confirmed as `confirm` asked; the text says why.

    The message was accepted: others may have it, or get it later.
    """


class ConfigurationError(GroupError):
    """An invalid setting; the text says which one, and what is allowed."""


class CallError(GroupError):
    """A call that cannot be made, or whose outcome will never be known; the text says why."""
