"""One process of the demo with a logger: `python -m semcast.demo.logged '{"role": "publish", ...}'`.

It says on its standard output what it has done, a JSON object a line, and stops when it is told to.
"""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

import semcast
from semcast.processes import Line

_ITEMS = 20
_PATIENCE = 3.0
"""Seconds to leave in, when nobody gives orders any more."""
_EVERY = 10
"""Of so many messages one is a trade, which nothing replaces."""


class KeptFile(msgspec.Struct):
    """What a subscriber makes of what it reads; it is in a file, since its process may be killed."""

    prices: dict[str, str] = {}
    trades: dict[str, int] = {}
    """How many of each publisher; its trades are numbered."""
    again: int = 0
    """Trades that came again."""


def say(event: str, **about: Any) -> None:
    """A line for the supervisor."""
    print(json.dumps({"event": event, **about}), flush=True)


class DemoOrders(asyncio.StreamReaderProtocol):
    """Whoever gives them may be killed: then a process leaves, and ends where that does not help."""

    def __init__(self, reader: asyncio.StreamReader, work: "asyncio.Task[None]") -> None:
        super().__init__(reader)
        self._work = work

    def eof_received(self) -> bool:
        """There are no more: the logger is gone, too, so that what waits for it would wait for ever."""
        asyncio.get_running_loop().call_later(_PATIENCE, self._work.cancel)
        return bool(super().eof_received())


async def orders() -> asyncio.StreamReader:
    """Standard input: a line to stop, and for publishers another one to leave."""
    reader, work = asyncio.StreamReader(), asyncio.current_task()
    assert work is not None
    await asyncio.get_running_loop().connect_read_pipe(lambda: DemoOrders(reader, work), sys.stdin)
    return reader


async def publish(order: Line) -> None:
    """Quotes, and a trade now and then."""
    told = await orders()
    stopped = asyncio.create_task(told.readline())
    prices: dict[str, str] = {}
    trades = sent = 0
    async with semcast.join(order["group"], receive=False, **order["settings"]) as group:
        say("ready")
        name = group.member.name
        while not stopped.done():
            for _ in range(max(1, order["rate"] // 50)):
                sent += 1
                if sent % _EVERY == 0:
                    trades += 1
                    await group.send(f"{name} trade {trades}".encode())
                else:
                    item = f"{name}.{sent % _ITEMS}"
                    prices[item] = str(sent)
                    await group.send(prices[item].encode(), item=item)
            await asyncio.sleep(0.02)
            say("report", sent=sent)
        await group.send(b"end", logged=True)
        say("done", sent=sent, prices=prices, trades=trades)
        await told.readline()


async def read(order: Line) -> None:
    """Keep what comes, and acknowledge it when it is kept."""
    file = Path(order["file"])
    kept = msgspec.json.decode(file.read_bytes(), type=KeptFile) if file.exists() else KeptFile()
    stopped = asyncio.create_task((await orders()).readline())
    received = lost = 0
    subscription = semcast.subscribe(
        order["group"], durable=order["name"], start=order["start"], ack="explicit", **order["settings"]
    )
    async with subscription:
        say("ready")
        reading = aiter(subscription)
        while not stopped.done():
            following = asyncio.ensure_future(anext(reading))
            await asyncio.wait((following, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                break
            batch = following.result()
            for message in batch:
                take(kept, message)
            file.with_suffix(".new").write_bytes(msgspec.json.encode(kept))
            file.with_suffix(".new").replace(file)
            await batch.ack()
            received, lost = received + len(batch), lost + len(batch.lost)
            say("report", received=received, lost=lost, **msgspec.to_builtins(kept))


def take(kept: KeptFile, message: semcast.Message) -> None:
    """A price, or a trade, which may come again after a crash."""
    words = message.payload.decode().split()
    if isinstance(message.annotation, semcast.Item):
        kept.prices[message.annotation.item] = words[0]
    elif words[1:2] == ["trade"]:
        publisher, number = words[0], int(words[2])
        before = kept.trades.get(publisher, 0)
        kept.again += number <= before
        kept.trades[publisher] = max(before, number)


def main() -> None:
    """Do what the argument says."""
    order: Line = json.loads(sys.argv[1])
    with suppress(asyncio.CancelledError):
        asyncio.run(publish(order) if order["role"] == "publish" else read(order))


if __name__ == "__main__":
    main()
