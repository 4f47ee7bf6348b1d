"""What can go wrong for who uses a replicated service."""

from semcast.group.errors import GroupError
from semcast.sql.errors import DatabaseError


class ReplicaError(GroupError):
    """This server has failed; the text says why. The others continue."""


class RequestError(GroupError, ValueError):
    """An invalid request; the text says which argument is wrong, and what is allowed."""


class RefusedError(GroupError):
    """The request was refused and will not be executed; the text says why."""


class ForgottenError(GroupError):
    """The request was executed before, and its outcome is no longer kept: the client had acknowledged it."""


def told(error: BaseException | None) -> str:
    """What an error says; of those that say it in a sentence nothing else."""
    return str(error) if isinstance(error, GroupError | DatabaseError) else repr(error)
