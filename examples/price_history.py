"""A price history: trades are kept, quotes are replaced; who comes late chooses what to read.

The whole log, the compacted log, what came after a moment, or only some items; and a folder that can be read
without any group.
"""

import asyncio
import tempfile
import time
from pathlib import Path
from secrets import token_hex

import semcast
from semcast.core.annotations import Item
from semcast.logger import log_folders


async def read(group: str, last: bytes, **how: object) -> list[semcast.Message]:
    """What a subscription gives, up to a message."""
    found: list[semcast.Message] = []
    async with semcast.subscribe(group, **how) as prices:  # type: ignore[arg-type]
        async for batch in prices:
            found += batch
            if found[-1].payload == last:
                break
    return found


async def main() -> None:
    """One feed, several readers that come late."""
    group = f"example-prices-{token_hex(4)}"
    with tempfile.TemporaryDirectory() as folder:
        log = semcast.join(group, stack="gossip", name="log", logger=True, data=folder, receive=False)
        async with log, semcast.join(group, stack="gossip", name="feed", receive=False) as feed:
            for number in range(1, 301):
                await feed.send(f"{100 + number % 7}".encode(), item=f"eu.{number % 5}")
                if number % 100 == 0:
                    await feed.send(f"trade {number}".encode())
            await feed.send(b"lunch", logged=True, timeout=20)
            lunch = time.time()
            await feed.send(b"99", item="us.ibm")
            await feed.send(b"close", logged=True, timeout=20)

            compacted = await read(group, b"close", start="compacted")
            print(f"compacted: {len(compacted)} of 306 messages: each item once, every trade")
            assert sum(isinstance(each.annotation, Item) for each in compacted) == 6
            afternoon = await read(group, b"close", start=lunch)
            print(f"since lunch: {[each.payload.decode() for each in afternoon]}")
            assert [each.payload for each in afternoon] == [b"99", b"close"]
            american = await read(group, b"close", start="all", filter="us.")
            items = {each.annotation.item for each in american if isinstance(each.annotation, Item)}
            print(f"only us.: {items}")
            assert items == {"us.ibm"}
        [kept] = log_folders(Path(folder))
        trades = [each.payload for each in kept.messages() if each.payload.startswith(b"trade")]
        print(f"in the folder, with nobody there: {len(trades)} trades")
        assert len(trades) == 3


if __name__ == "__main__":
    asyncio.run(main())
