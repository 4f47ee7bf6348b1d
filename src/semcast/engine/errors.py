"""What can go wrong for who uses a replicated service."""

from semcast.group.errors import GroupError
from semcast.sql.errors import DatabaseError


class ReplicaError(GroupError):
    """This server cannot go on; says why. The others do."""


class RequestError(GroupError, ValueError):
    """A request that makes no sense; says which argument, and what would."""


class RefusedError(GroupError):
    """The request was not taken here, and will not be done; says why."""


class ForgottenError(GroupError):
    """The request was done before, and its client said that it has the outcome: nobody keeps it any more."""


def told(error: BaseException | None) -> str:
    """What an error says; of those that say it in a sentence nothing else."""
    return str(error) if isinstance(error, GroupError | DatabaseError) else repr(error)
