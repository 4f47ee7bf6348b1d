"""What can go wrong between a client and its servers, besides what can go wrong in a program that is one."""

from semcast.engine import ActionError, ForgottenError, RefusedError, RequestError
from semcast.group.errors import GroupError
from semcast.sql.errors import StatementError


class AccessError(GroupError):
    """The token is unknown there, or does not allow this; says which role would."""


class UnreachableError(GroupError):
    """No server could be reached, or none took the request; says what each said."""


class PendingError(GroupError, TimeoutError):
    """No outcome in time: the update may be done yet, or not. Asked again with its number, it is done once.

    Args:
        sentence: why.
        number: of the update.
    """

    def __init__(self, sentence: str, number: int) -> None:
        super().__init__(sentence)
        self.number = number


_MEANING: dict[str, type[Exception]] = {
    "malformed": RequestError,
    "not-found": RequestError,
    "too-large": RequestError,
    "failed": ActionError,
    "refused": StatementError,
    "forgotten": ForgottenError,
    "unauthorized": AccessError,
    "forbidden": AccessError,
    "timeout": TimeoutError,
    "pending": TimeoutError,
    "stopped": TimeoutError,
    "bug": TimeoutError,
    "slow": TimeoutError,
    "elsewhere": RefusedError,
}

ELSEWHERE = frozenset({"busy", "stopped", "bug", "slow", "elsewhere", "pending", "timeout"})
"""Codes after which another server may do better."""


def meant(code: str, sentence: str, position: int = 0) -> Exception:
    """The error that a program gets that has the database in its own process."""
    error = _MEANING.get(code, UnreachableError)(sentence)
    if isinstance(error, ActionError):
        error.position = position
    return error
