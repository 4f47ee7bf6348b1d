"""A price ticker: a dashboard that is too slow for it skips outdated quotes, and only those."""

import asyncio
import time
from random import Random

import semcast

STOCKS = ["IBM", "SAP", "AMD", "ARM", "TSM"]
QUOTES = 3000


async def exchange(ready: asyncio.Event) -> dict[str, str]:
    """Send quotes as fast as the group takes them; returns the last of each stock."""
    rng = Random(7)
    last: dict[str, str] = {}
    async with semcast.join("example-ticker", name="exchange") as group:
        await ready.wait()
        for _ in range(QUOTES):
            stock = rng.choice(STOCKS)
            last[stock] = f"{rng.uniform(90, 110):.2f}"
            await group.send(f"{stock}={last[stock]}".encode(), item=stock)
        await group.send(b"closed")
        async for event in group:
            if isinstance(event, semcast.Message) and event.payload == b"closed":
                return last
    return last


async def dashboard(name: str, delay: float, ready: asyncio.Event) -> tuple[dict[str, str], int]:
    """Show quotes, each of which takes a while; returns what was shown last, and how many were."""
    shown: dict[str, str] = {}
    count = 0
    async with semcast.join("example-ticker", name=name, queue_messages=50) as group:
        async for event in group:
            if isinstance(event, semcast.ViewChange) and len(event.view.members) == 3:
                ready.set()
            elif isinstance(event, semcast.Message):
                if event.payload == b"closed":
                    break
                stock, _, price = event.payload.decode().partition("=")
                shown[stock] = price
                count += 1
                if delay:
                    time.sleep(delay)  # applications block; the group does not care
    return shown, count


async def main() -> None:
    """One exchange, a fast dashboard and a slow one."""
    ready = asyncio.Event()
    last, fast, slow = await asyncio.gather(
        exchange(ready), dashboard("fast", 0.0, ready), dashboard("slow", 0.005, ready)
    )
    print(f"the fast dashboard showed {fast[1]} quotes, the slow one {slow[1]}")
    assert fast[0] == slow[0] == last
    print("both ended with the last price of every stock")


if __name__ == "__main__":
    asyncio.run(main())
