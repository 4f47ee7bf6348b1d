"""Waits for the database, and says in the words of HTTP what it means if that does not end well."""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar, cast

from semcast.engine import ActionError, ForgottenError, RefusedError, RequestError
from semcast.engine.levels import READS, UPDATES, ReadLevel, UpdateLevel
from semcast.group.errors import GroupError
from semcast.server.problems import ProblemError, malformed
from semcast.sql.errors import DatabaseError, StatementError

T = TypeVar("T")


def update_level(level: str) -> UpdateLevel:
    """A level of updates, if there is such a one."""
    _check("updates", level, UPDATES)
    return cast("UpdateLevel", level)


def read_level(level: str) -> ReadLevel:
    """A level of queries, if there is such a one."""
    _check("queries", level, READS)
    return cast("ReadLevel", level)


def _check(what: str, level: str, known: Sequence[str]) -> None:
    if level not in known:
        raise malformed(f"there is no level {level[:40]!r} for {what}: choose one of {', '.join(known)}")


async def updated(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """What an update did."""
    sentence = (
        f"no outcome within {seconds:g} s: the update is kept, and may be done yet. Ask again with the same "
        "client and number; where there is no primary, level queued is answered at once"
    )
    return await _explained(work, ProblemError(504, "pending", sentence))


async def answered(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """What a query gave."""
    sentence = (
        f"no answer within {seconds:g} s: where there is no primary, only the levels weak and dirty are "
        "answered at once"
    )
    return await _explained(work, ProblemError(504, "timeout", sentence))


async def _explained(work: Coroutine[Any, Any, T], late: ProblemError) -> T:
    try:
        return await work
    except TimeoutError:
        raise late from None
    except ActionError as error:
        raise ProblemError(422, "failed", str(error), position=error.position) from error
    except StatementError as error:
        raise ProblemError(422, "refused", str(error)) from error
    except RequestError as error:
        raise malformed(str(error)) from error
    except RefusedError as error:
        raise ProblemError(409, "elsewhere", f"this server cannot take it now: {error}") from error
    except ForgottenError as error:
        raise ProblemError(410, "forgotten", str(error)) from error
    except (DatabaseError, GroupError) as error:
        raise ProblemError(503, "stopped", f"this server cannot go on: {error}") from error
