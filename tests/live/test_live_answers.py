"""Members in processes of their own that answer each message of one of them from their handlers."""

import asyncio
import sys
from pathlib import Path
from secrets import token_hex

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, sys
import semcast

name, group, stack, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
founds = {"bootstrap": name == "a"} if stack == "vsync" else {}


async def main() -> None:
    async with semcast.join(
        group, name=name, stack=stack, queue_messages=64, send_messages=8, token_loss="2s", **founds
    ) as joined:
        delivered, sending = 0, None

        async def send_all() -> None:
            for _ in range(count):
                await joined.send(b"x" * 16)

        async for event in joined:
            if isinstance(event, semcast.ViewChange):
                if len(event.view.members) == 3 and name == "a" and sending is None:
                    sending = asyncio.create_task(send_all())
            elif isinstance(event, semcast.Message):
                delivered += 1
                if name != "a" and event.sender.name == "a":
                    await joined.send(b"y" * 16)
                if delivered == 3 * count:
                    break
        if sending is not None:
            await sending
        await asyncio.sleep(0.5)  # the others may lack the last of what was sent here
    print(delivered)


asyncio.run(main())
"""


@pytest.mark.parametrize("stack", ["ring", "vsync"])
def test_answers_from_handlers_stop_no_group(stack: str) -> None:
    """With queues of this size it stood still for ever in most runs of some thousand messages."""

    async def member(name: str, group: str) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            PROGRAM,
            name,
            group,
            stack,
            "3000",
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return int(output)

    async def test() -> None:
        group = f"answers {token_hex(6)}"
        async with asyncio.timeout(90):
            assert await asyncio.gather(*(member(name, group) for name in "abc")) == [9000] * 3

    asyncio.run(test())
