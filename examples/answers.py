"""A service that answers from its handler: each question is answered where it is read, in the same task."""

import asyncio
from typing import Any

import semcast

QUESTIONS = 500


async def service(group: semcast.Group) -> None:
    """Answer every question. While an answer waits to be sent, nothing is read: that stops nobody."""
    async for event in group:
        if isinstance(event, semcast.Message) and event.payload.startswith(b"?"):
            await group.send(b"!" + event.payload[1:] + b" from " + group.member.name.encode())


async def client(group: semcast.Group) -> int:
    """Ask, in a task of its own, and count the answers."""

    async def ask() -> None:
        for number in range(QUESTIONS):
            await group.send(b"?%d" % number)

    asking, answers = None, 0
    async for event in group:
        match event:
            case semcast.ViewChange(view=view) if len(view.members) == 3 and asking is None:
                asking = asyncio.create_task(ask())
            case semcast.Message(payload=payload) if payload.startswith(b"!"):
                answers += 1
                if answers == 2 * QUESTIONS:
                    return answers
    return answers


async def main() -> None:
    """Two services, which answer everything, and a client. The queues are small, so that all have to wait."""
    settings: dict[str, Any] = {"queue_messages": 16, "send_messages": 4}
    async with (
        semcast.join("example-answers", name="client", **settings) as asks,
        semcast.join("example-answers", name="one", **settings) as one,
        semcast.join("example-answers", name="two", **settings) as two,
        asyncio.TaskGroup() as tasks,
    ):
        services = [tasks.create_task(service(each)) for each in (one, two)]
        print(f"{QUESTIONS} questions, {await client(asks)} answers")
        for each in services:
            each.cancel()


if __name__ == "__main__":
    asyncio.run(main())
