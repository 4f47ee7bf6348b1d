"""One process of the demo: `python -m semcast.demo.member`.

It keeps a replicated table of prices, says every quarter of a second on its standard output how it is
doing, and obeys its standard input, `{"do": ...}`: `go` (send quotes), `stop`, `quit`.
"""

import argparse
import asyncio
import hashlib
import json
import sys
import time

import semcast
from semcast.demo.market import quotes
from semcast.group.dictionary import Entry, latest

REPORT_EVERY = 0.25


class TableMember:
    """The table, and what is known about how it is kept."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._delay = args.delay / 1000
        self._rate = args.rate
        self._newest = 0.0
        # Small buffers: without obsolescence, whatever they hold has to be worked off by the slow one.
        self.table = semcast.ReplicatedDict.join(
            args.group,
            merge=self._merge,
            name=args.name,
            policy=args.policy,
            record=args.record,
            queue_messages=64,
            send_messages=16,
            window=8,
        )
        self._going = asyncio.Event()
        self.sent = 0

    def _merge(self, key: str, here: Entry, came: Entry) -> Entry:
        """The later one wins; an application that is slow is slow here."""
        if self._delay:
            time.sleep(self._delay)
        self._newest = max(self._newest, came.stamp.at / 1e6)
        return latest(key, here, came)

    async def run(self) -> None:
        """Until told to quit."""
        async with self.table:
            workers = [asyncio.create_task(work) for work in (self._report(), self._send())]
            try:
                await self._obey()
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _obey(self) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        while True:
            line = await reader.readline()
            word = json.loads(line)["do"] if line else "quit"
            if word == "go":
                self._going.set()
            elif word == "stop":
                self._going.clear()
            elif word == "quit":
                return

    async def _send(self) -> None:
        """Quotes at a steady rate, or as fast as the group takes them."""
        market = quotes()
        pause = 0.005
        while True:
            await self._going.wait()
            for _ in range(max(1, int(self._rate * pause))):
                name, price = next(market)
                await self.table.set(name, price)
                self.sent += 1
            await asyncio.sleep(pause)

    async def _report(self) -> None:
        while True:
            self._say()
            await asyncio.sleep(REPORT_EVERY)

    def _say(self) -> None:
        stats = self.table.group.stats()
        view = self.table.group.view
        state = repr(sorted(self.table.items())).encode()
        report = {
            "sent": self.sent,
            "delivered": stats.stack.delivered,
            "purged": stats.stack.purged_delivery,
            "queue": stats.buffered,
            "stale_ms": round(1000 * (time.time() - self._newest)) if self._newest else None,
            "view": None if view is None else len(view.members),
            "items": len(self.table),
            "digest": hashlib.blake2b(state, digest_size=6).hexdigest(),
        }
        print(json.dumps(report), flush=True)


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("group")
    parser.add_argument("name")
    parser.add_argument("--policy", default="purge")
    parser.add_argument("--delay", type=float, default=0.0, help="milliseconds for each message")
    parser.add_argument("--rate", type=float, default=1000.0, help="messages a second")
    parser.add_argument("--record", default="")
    asyncio.run(_run(parser.parse_args()))


async def _run(args: argparse.Namespace) -> None:
    await TableMember(args).run()


if __name__ == "__main__":
    main()
