"""A program in a causal domain, in a process of its own: it calls, tells others alone, and sends in order.

It prints a line for each call that was answered, and ends when its standard input does.
"""

import asyncio
import sys
from itertools import count

import semcast


async def run(name: str, domain: str, folder: str, key_file: str, members: int) -> None:
    """Everything in one loop; nobody reads, and calls are answered all the same."""
    async with semcast.domain(
        domain,
        engine="causal",
        name=name,
        record=folder,
        key_file=key_file,
        token_loss="500ms",  # noqa: S106 (a duration)
        minimum=2,
    ) as floor:
        shop = await floor.join("shop")

        @shop.on_call
        async def sell(request: semcast.CallRequest) -> bytes:
            await floor.send("yard", b"sold " + request.payload)
            return name.encode()

        yard = await floor.join("yard")
        await yard.wait_for(members, 30)
        over = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        for number in count():
            if over.done():
                break
            try:
                answer = await shop.call(str(number).encode(), replies="majority", timeout=5)
                print(answer.outcome, len(answer.replies), flush=True)
                for member in shop.members():
                    await floor.send_to(member, b"thanks", timeout=5)
                await yard.send(b"done", order="domain", timeout=5)
            except semcast.GroupError as error:
                print("error", error, flush=True)
            await asyncio.sleep(0.02)


if __name__ == "__main__":
    who, where, folder, key, members = sys.argv[1:]
    asyncio.run(run(who, where, folder, key, int(members)))
