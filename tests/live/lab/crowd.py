"""Several members in one process: `python -m tests.live.lab.crowd GROUP FIRST COUNT ALL`.

Each joins once all are there, sends three messages, and says how many members its last view has when it got
everything. They stay until the standard input is closed.
"""

import asyncio
import sys

import semcast

EACH = 3
LOSS = "2s"
"""Many threads on few cores: each may wait for its turn for long."""


async def take_part(group: str, name: str, everybody: int) -> None:
    async with semcast.join(group, name=name, minimum=everybody, token_loss=LOSS) as member:
        for number in range(EACH):
            await member.send(f"{name}/{number}".encode())
        got, view = 0, 0
        async for event in member:
            if isinstance(event, semcast.ViewChange):
                view = len(event.view.members)
            elif isinstance(event, semcast.Message):
                got += 1
            if got == EACH * everybody:
                break
        print(name, view, flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def main() -> None:
    group, first, count, everybody = sys.argv[1], *map(int, sys.argv[2:5])
    names = [f"worker-{number:03}.production.example" for number in range(first, first + count)]
    await asyncio.gather(*(take_part(group, name, everybody) for name in names))


if __name__ == "__main__":
    asyncio.run(main())
