"""What can go wrong for a program that uses a group."""


class GroupError(Exception):
    """Base of all errors of this package."""

    accepted: int = 0
    """Messages of the call that were accepted before it failed, from its first: these are sent."""


class GroupClosedError(GroupError):
    """The group was closed, or this member left it; says why."""


class BacklogError(GroupError):
    """This program waits to send, and what it does not read meanwhile has filled queue and reserve.

    Raised by every call that waits. Whoever reads has to go on reading: what it wanted to send was not
    accepted, but for the first `accepted` messages of the call.
    """


class SendTimeoutError(GroupError, TimeoutError):
    """There was no room to send for as long as the call was to wait; says who or what is in the way."""


class UnconfirmedError(GroupError):
    """It is not known, or not true, that a message came as far as `confirm` asked for; says why.

    The message was accepted: others may have it, or get it yet.
    """


class ConfigurationError(GroupError):
    """A setting that makes no sense; says which, and what would."""


class CallError(GroupError):
    """A call that cannot be made, or of which nobody will know what came; says why."""
