"""A chat: everybody sees who is there, and all messages in the same order."""

import asyncio

import semcast


async def chatter(name: str, lines: list[str], *, size: int) -> list[str]:
    """Say some lines once everybody is there, and return what was seen."""
    seen: list[str] = []
    async with semcast.join("example-chat", name=name) as group:
        spoken = False
        async for event in group:
            match event:
                case semcast.ViewChange(view=view):
                    names = ", ".join(sorted(member.name for member in view.members))
                    print(f"[{name}] here: {names}")
                    if len(view.members) == size and not spoken:
                        spoken = True
                        for line in lines:
                            await group.send(f"{name}: {line}".encode())
                case semcast.Message(payload=payload):
                    seen.append(payload.decode())
                    print(f"[{name}] {seen[-1]}")
            if len(seen) == 2 * size:
                return seen
    return seen


async def main() -> None:
    """Three people."""
    people = {"ann": ["hello", "how are you?"], "bob": ["hi", "fine"], "cleo": ["hey", "bye"]}
    logs = await asyncio.gather(*(chatter(name, lines, size=3) for name, lines in people.items()))
    assert logs[0] == logs[1] == logs[2]
    print("everybody saw the same conversation")


if __name__ == "__main__":
    asyncio.run(main())
