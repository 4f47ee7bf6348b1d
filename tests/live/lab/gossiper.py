"""A member of a gossip group in a process of its own: `python -m tests.live.lab.gossiper GROUP SETTINGS`.

It sends a number every few milliseconds, and says what it is given, a JSON object a line.
"""

import asyncio
import json
import sys
from itertools import count
from typing import Any

import semcast

_PAUSE = 0.02


def say(event: str, **about: Any) -> None:
    print(json.dumps({"event": event, **about}), flush=True)


async def send(group: semcast.Group) -> None:
    """Until it ends."""
    for number in count(1):
        await group.send(b"%d" % number)
        await asyncio.sleep(_PAUSE)


async def main() -> None:
    name, given = sys.argv[1], json.loads(sys.argv[2])
    async with semcast.join(name, stack="gossip", **given) as group, asyncio.TaskGroup() as tasks:
        say("joined", me=str(group.member))
        tasks.create_task(send(group))
        async for event in group:
            if isinstance(event, semcast.Message) and event.sender != group.member:
                say("message", sender=str(event.sender), seq=event.id.seq)
            elif isinstance(event, semcast.Lost):
                say("lost", sender=str(event.sender), first=event.first, last=event.last)
            elif isinstance(event, semcast.Away | semcast.Back):
                say(type(event).__name__.lower())


if __name__ == "__main__":
    asyncio.run(main())
