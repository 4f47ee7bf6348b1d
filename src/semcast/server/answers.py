"""What clients are sent back, within bounds."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from semcast.server.interface import QueryAnswer, Receipt, UpdateOutcome
from semcast.server.limits import Limits
from semcast.server.problems import JSON, ProblemError
from semcast.server.values import rows_to_json


def outcome_json(outcome: UpdateOutcome | Receipt, limits: Limits) -> dict[str, object]:
    """An outcome, without a position where it has none yet.

    It happened, or will: what has too many rows is cut, and says so.
    """
    if isinstance(outcome, Receipt):
        return {"position": None}
    found: dict[str, object] = {
        "position": outcome.position,
        "changes": outcome.changes,
        "last_rowid": outcome.last_rowid,
        "columns": list(outcome.columns),
        "rows": rows_to_json(outcome.rows[: limits.rows]),
    }
    if len(outcome.rows) > limits.rows:
        found["truncated"] = True
    return found


def outcome_response(outcome: UpdateOutcome | Receipt, limits: Limits) -> Response:
    """The same, sent."""
    body = msgspec.json.encode(found := outcome_json(outcome, limits))
    if len(body) > limits.answer:
        body = msgspec.json.encode(found | {"rows": [], "truncated": True})
    return Response(body, media_type=JSON)


def members_json(status: Mapping[str, object]) -> dict[str, object]:
    """The servers, out of what a server says of itself."""
    return {key: status[key] for key in ("servers", "view", "strangers")}


def check_rows(count: int, limits: Limits) -> None:
    """Raise if an answer has too many rows."""
    if count > limits.rows:
        sentence = f"the result has more than {limits.rows} rows: ask for fewer, with LIMIT"
        raise ProblemError(422, "too-large", sentence)


def answer_response(answer: QueryAnswer, limits: Limits) -> Response:
    """What a query gave."""
    check_rows(len(answer.rows), limits)
    return bounded(
        {
            "position": answer.position,
            "seen": answer.seen,
            "columns": list(answer.columns),
            "rows": rows_to_json(answer.rows),
        },
        limits,
    )


def bounded(content: Mapping[str, object], limits: Limits) -> Response:
    """A JSON object, unless it is too large."""
    body = msgspec.json.encode(content)
    if len(body) > limits.answer:
        sentence = (
            f"the result has {len(body)} bytes, and at most {limits.answer} are sent: ask for fewer rows"
        )
        raise ProblemError(422, "too-large", sentence)
    return Response(body, media_type=JSON)
