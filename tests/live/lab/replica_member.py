"""A server that is nothing but a member of a group: what it is given, it hashes."""

import asyncio
import json
import sys
from typing import Any

from tests.live.lab.replicas import chain

import semcast


class Member:
    def __init__(self, group: semcast.Group) -> None:
        self.group = group
        self.chains = [""]
        self.mine: set[bytes] = set()
        self.moved = asyncio.Event()

    async def read(self) -> None:
        async for event in self.group:
            if isinstance(event, semcast.Message):
                self.chains.append(chain(self.chains[-1], event.payload))
                self.mine.discard(event.payload)
                self.moved.set()

    async def wait(self, line: int) -> None:
        while len(self.chains) <= line or self.mine:
            self.moved.clear()
            await self.moved.wait()

    async def obey(self, command: dict[str, Any]) -> Any:
        if "send" in command:
            payloads = [text.encode() for text in command["send"]]
            self.mine |= set(payloads)
            await self.group.send_many(payloads, order="safe")
        if "upto" in command:
            await self.wait(command["upto"])
        return {"line": len(self.chains) - 1, "chain": self.chains[-1]}


async def main() -> None:
    settings = json.loads(sys.argv[1])
    lines = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with semcast.join("replicas", stack="replication", **settings) as group:
        member = Member(group)
        reading = asyncio.create_task(member.read())
        print(json.dumps("up"), flush=True)
        while line := await lines.readline():
            print(json.dumps(await member.obey(json.loads(line))), flush=True)
    await reading


asyncio.run(main())
