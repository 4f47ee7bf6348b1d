"""rqlite's requests, `/db/execute` and `/db/query`, so that its clients work here.

Its levels are ours under other names: `none` is weak, `weak` is session, `strong` and `linearizable` are
linear. Types of columns are told by the values, since a result does not know what was declared.
"""

import base64
from collections.abc import Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from semcast.engine.levels import ReadLevel, UpdateLevel
from semcast.server.answers import bounded, check_rows
from semcast.server.bodies import read_body
from semcast.server.interface import Database, QueryAnswer, Receipt, UpdateOutcome
from semcast.server.limits import MAX_SQL, Limits
from semcast.server.messages import DEFAULT_TIMEOUT, read, statements, values
from semcast.server.problems import ProblemError, malformed
from semcast.server.waiting import answered, updated
from semcast.sql.actions import Statement

LEVELS: Final[dict[str, ReadLevel]] = {
    "none": "weak",
    "weak": "session",
    "auto": "session",
    "strong": "linear",
    "linearizable": "linear",
}
_TYPES: Final = {int: "integer", float: "real", str: "text", bytes: "blob"}
_OF_STATEMENT: Final = ("failed", "refused", "too-large")
"""Problems of one statement: they stand among the results."""


class RqliteEndpoints:
    """What clients of rqlite ask.

    Args:
        database: that is served.
        limits: of what they may ask for.
    """

    def __init__(self, database: Database, limits: Limits) -> None:
        self._database = database
        self._limits = limits

    async def execute(self, request: Request) -> Response:
        """Do statements, one by one or together."""
        flags = request.query_params
        given = await self._statements(request)
        level: UpdateLevel = "queued" if "queue" in flags and "wait" not in flags else "strict"
        if "transaction" in flags and given:
            results = [await self._result(given, level)]
        else:
            results = [await self._result([each], level) for each in given]
        return bounded({"results": results}, self._limits)

    async def _result(self, given: Sequence[Statement], level: UpdateLevel) -> dict[str, object]:
        work = self._database.transaction(given, level=level, timeout=DEFAULT_TIMEOUT)
        try:
            return _outcome_json(await updated(work, DEFAULT_TIMEOUT))
        except ProblemError as problem:
            return _error(problem)

    async def query(self, request: Request) -> Response:
        """Answer queries."""
        asked = request.query_params.get("level", "weak")
        if asked not in LEVELS:
            raise malformed(f"there is no level {asked[:40]!r}: choose one of {', '.join(LEVELS)}")
        if request.method == "GET":
            sql = request.query_params.get("q", "")
            if not 0 < len(sql) <= MAX_SQL:
                raise malformed("q: the query is missing, or too long")
            given = [Statement(sql)]
        else:
            given = await self._statements(request)
        results = [await self._rows(each, LEVELS[asked]) for each in given]
        return bounded({"results": results}, self._limits)

    async def _rows(self, statement: Statement, level: ReadLevel) -> dict[str, object]:
        parameters = values(list(statement.parameters))
        work = self._database.query(statement.sql, parameters, level=level, timeout=DEFAULT_TIMEOUT)
        try:
            answer = await answered(work, DEFAULT_TIMEOUT)
            check_rows(len(answer.rows), self._limits)
            return _rows_json(answer)
        except ProblemError as problem:
            return _error(problem)

    async def _statements(self, request: Request) -> list[Statement]:
        given = read(await read_body(request, self._limits), list[str | list[Any]])
        for each in given:
            if isinstance(each, list) and any(isinstance(value, dict) for value in each):
                raise malformed("parameters with names are not taken here: use ? and a list")
        return statements(given, self._limits.statements)


def _error(problem: ProblemError) -> dict[str, object]:
    if problem.code not in _OF_STATEMENT:
        raise problem
    return {"error": problem.sentence}


def _outcome_json(outcome: UpdateOutcome | Receipt) -> dict[str, object]:
    if isinstance(outcome, Receipt):
        return {}
    found: dict[str, object] = {"rows_affected": outcome.changes}
    if outcome.last_rowid:
        found["last_insert_id"] = outcome.last_rowid
    return found


def _rows_json(answer: QueryAnswer) -> dict[str, object]:
    found: dict[str, object] = {"columns": list(answer.columns), "types": _types(answer)}
    if answer.rows:
        found["values"] = [[_value(value) for value in row] for row in answer.rows]
    return found


def _types(answer: QueryAnswer) -> list[str]:
    columns = zip(*answer.rows, strict=True) if answer.rows else [()] * len(answer.columns)
    return [
        next((_TYPES[type(value)] for value in column if type(value) in _TYPES), "") for column in columns
    ]


def _value(value: object) -> object:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value
