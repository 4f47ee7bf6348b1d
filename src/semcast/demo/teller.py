"""A client of one server: `python -m semcast.demo.teller DATABASE ADDRESS`.

It is told on its standard input what to ask, a JSON object a line with the name of a method and its
arguments, and says on its standard output what came of it. So a client can be on the side of a partition that
its server is on.
"""

import asyncio
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import semcast
from semcast.engine.database import SqlAnswer
from semcast.engine.results import SqlResult
from semcast.server.client import Client, Promise
from semcast.sql.digest import digest

ERRORS = (semcast.GroupError, semcast.ActionError, TimeoutError, ValueError)


async def main() -> None:
    """Until the end of the input."""
    database, address = sys.argv[1:]
    lines = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with semcast.database(database, servers=[address]) as db:
        promises: list[Promise] = []
        while line := await lines.readline():
            try:
                answer = await _do(db, promises, json.loads(line))
            except ERRORS as error:
                answer = {"error": type(error).__name__, "why": str(error)}
            print(json.dumps(answer), flush=True)


async def _do(db: Client, promises: list[Promise], asked: dict[str, Any]) -> dict[str, Any]:
    method, arguments = asked.pop("do"), asked
    if method == "digest":
        return {"digest": await _digest(db)}
    if method == "ordered":  # what became of what was answered early
        return {"positions": [(await promise.ordered()).position for promise in promises]}
    found = await getattr(db, method)(**arguments)
    if isinstance(found, Promise):
        promises.append(found)
        return {"kept": found.number}
    if isinstance(found, SqlResult):
        return {"position": found.position, "changes": found.changes}
    if isinstance(found, SqlAnswer):
        return {"rows": [list(row) for row in found.rows]}
    return dict(found)


async def _digest(db: Client) -> str:
    """Of all tables of the server, from a copy."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy"
        await db.backup(path)
        connection = sqlite3.connect(path)
        try:
            return digest(connection).hex()
        finally:
            connection.close()


if __name__ == "__main__":
    asyncio.run(main())
