"""Commands in total order: everybody executes the same commands in the same order, and can answer.

Commands are multicast in total order. A stock of goods is the machine: what a command does depends on all
that came before it, also who gets the last piece, and every replica comes to the same result by itself.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import semcast

SETTINGS: dict[str, Any] = {
    "stack": "vsync",
    "order": "total",
    "uniform": True,
    "minimum": 2,
    "token_loss": "2s",
}
GROUP = "example-stock"


class Stock:
    """The machine: deterministic, and nothing but commands changes it."""

    def __init__(self) -> None:
        self.pieces = 0
        self.sold: list[str] = []

    def execute(self, command: list[str]) -> str:
        """Execute one command; returns the answer."""
        what, who = command
        if what == "deliver":
            self.pieces += int(who)
            return f"{self.pieces} pieces"
        if self.pieces == 0:
            return "sold out"
        self.pieces -= 1
        self.sold.append(who)
        return f"piece {len(self.sold)}"

    def export(self) -> bytes:
        """For who joins."""
        return json.dumps([self.pieces, self.sold]).encode()

    def restore(self, state: bytes) -> None:
        """Go on from there."""
        self.pieces, self.sold = json.loads(state)


class Replica:
    """A machine, and the clients that wait for answers here."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stock = Stock()
        self.executed = 0
        self.members = 0
        self._waiting: dict[int, asyncio.Future[str]] = {}
        self._number = 0
        self._changed = asyncio.Condition()

    async def run(self, stop: asyncio.Event) -> None:
        """Execute what is delivered until told to stop."""
        async with semcast.join(GROUP, name=self.name, state=self.stock, **SETTINGS) as self.group:
            reader = asyncio.create_task(self._read())
            await stop.wait()
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read(self) -> None:
        async for event in self.group:
            match event:
                case semcast.ViewChange(view=view):
                    self.members = len(view.members)
                case semcast.Message(sender=sender, payload=payload):
                    number, *command = json.loads(payload)
                    answer = self.stock.execute(command)
                    self.executed += 1
                    if sender == self.group.member and number in self._waiting:
                        self._waiting.pop(number).set_result(answer)
            async with self._changed:
                self._changed.notify_all()

    async def ask(self, what: str, who: str) -> str:
        """A client's command: it is executed everywhere, and answered here."""
        self._number += 1
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = answer
        await self.group.send(json.dumps([self._number, what, who]).encode())
        return await answer

    async def until_members(self, count: int) -> None:
        """Wait for a view of a size."""
        await self.until(lambda: self.members == count)

    async def until_executed(self, count: int) -> None:
        """Wait until so many commands were executed here."""
        await self.until(lambda: self.executed == count)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds here."""
        async with self._changed:
            await self._changed.wait_for(condition)


async def main() -> None:
    """Clients of three replicas want the same few pieces at the same time."""
    replicas = [Replica(name) for name in "abc"]
    stop = asyncio.Event()
    tasks = [asyncio.create_task(replica.run(stop)) for replica in replicas]
    await asyncio.gather(*(replica.until_members(3) for replica in replicas))
    await replicas[0].ask("deliver", "10")
    customers = [
        (replica, f"customer {number} of {replica.name}") for replica in replicas for number in range(8)
    ]
    answers = await asyncio.gather(*(replica.ask("buy", who) for replica, who in customers))
    assert sorted(answers).count("sold out") == 14
    assert len({answer for answer in answers if answer != "sold out"}) == 10
    await asyncio.gather(*(replica.until_executed(25) for replica in replicas))
    assert replicas[0].stock.sold == replicas[1].stock.sold == replicas[2].stock.sold
    print("10 pieces for 24 customers; every replica sold them to the same ones:")
    print(", ".join(replicas[0].stock.sold))
    late = Replica("d")
    tasks.append(asyncio.create_task(late.run(stop)))
    await late.until_members(4)
    print(f"d joined, knows who got them, and answers: {await late.ask('buy', 'a late customer')}")
    assert late.stock.sold == replicas[0].stock.sold
    stop.set()
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(main())
