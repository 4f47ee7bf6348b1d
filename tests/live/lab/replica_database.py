"""A server of a replicated database, told what to do line by line."""

import asyncio
import json
import sys
from typing import Any

import semcast


async def obey(db: semcast.Database, command: dict[str, Any]) -> Any:
    if "execute" in command:
        await asyncio.gather(*(db.execute(*each) for each in command["execute"]))
    if "upto" in command:
        await db.query("select 1", position=command["upto"])
        while db.status().position < command["upto"]:
            await asyncio.sleep(0.01)
    rows = db.weak(command["query"]) if "query" in command else []
    return {"position": db.status().position, "digest": db.digest(), "rows": rows}


async def main() -> None:
    settings = json.loads(sys.argv[1])
    lines = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with semcast.database("bank", **settings) as db:
        print(json.dumps("up"), flush=True)
        while line := await lines.readline():
            print(json.dumps(await obey(db, json.loads(line))), flush=True)


asyncio.run(main())
