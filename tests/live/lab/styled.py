"""A program in a causal domain whose groups have clients, in a process of its own.

Servers answer orders and spread quotes; clients order and listen. It prints a line for each order that was
answered, or that it answered, and ends when its standard input does.
"""

import asyncio
import sys
from itertools import count
from typing import Literal

import semcast


async def run(name: str, policy: str, folder: str, key_file: str) -> None:
    """Servers are those with names from a to c."""
    async with semcast.domain(
        "floor",
        engine="causal",
        policy=policy,
        name=name,
        record=folder,
        key_file=key_file,
        token_loss="500ms",  # noqa: S106 (a duration)
        minimum=2,
    ) as floor:
        role: Literal["server", "client"] = "server" if name in "abc" else "client"
        orders = await floor.join("orders", kind="client-server", role=role, timeout=30)
        quotes = await floor.join("quotes", kind="diffusion", role=role, timeout=30)
        over = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        reading = asyncio.create_task(_read(floor))

        @orders.on_call
        async def sell(request: semcast.CallRequest) -> bytes:
            await floor.send(quotes.name, b"sold " + request.payload)
            return name.encode()

        for number in count():
            if over.done():
                break
            try:
                if role == "client":
                    answer = await orders.call(str(number).encode(), replies="first", timeout=5)
                    print(answer.outcome, flush=True)
                    await orders.send(b"thanks", timeout=5)
                else:
                    await orders.send(b"tick", timeout=5)
                    print("complete", flush=True)
            except semcast.GroupError as error:
                print("error", error, flush=True)
            await asyncio.sleep(0.05)
        reading.cancel()


async def _read(floor: semcast.Domain) -> None:
    async for _ in floor:
        pass


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
