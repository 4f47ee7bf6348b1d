"""What a stopped server keeps and perhaps nobody else: as lines of JSON, to be looked at and done again."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from semcast.engine.offline import stopped
from semcast.server.home import Home
from semcast.server.values import row_to_json
from semcast.sql.actions import SqlAction


def lost(data: Path, home: Home, after: int | None = None) -> Iterator[str]:
    """Actions without a place; with `after` also those that have one behind it.

    Args:
        data: folder of the server, which must not run.
        home: who it is.
        after: a position.
    """
    with stopped(data, home.database, home.server) as server:
        for told in server.actions(after):
            yield msgspec.json.encode({**told, "action": _shown(told["action"])}).decode()


def _shown(action: object) -> object:
    if not isinstance(action, SqlAction):
        return {"base64": action}
    statements = [[each.sql, row_to_json(each.parameters)] for each in action.statements]
    shown: dict[str, object] = {"statements": statements}
    if action.expect:
        shown["expect"] = [
            {
                "sql": each.sql,
                "params": row_to_json(each.parameters),
                "rows": [row_to_json(row) for row in each.rows],
            }
            for each in action.expect
        ]
    if action.deed is not None:
        shown["deed"] = type(action.deed).__name__.lower()
    return shown
