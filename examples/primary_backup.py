"""A primary with backups: the first member of the view serves, and the others follow what it did.

The primary works out what a request does and multicasts the result; a backup only applies results. Views are
agreed on, so there is one primary; delivery is uniform, so what the primary applied survives it. Who joins is
given the state.
"""

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any

import semcast

SETTINGS: dict[str, Any] = {"stack": "vsync", "uniform": True, "minimum": 2, "token_loss": "2s"}


class Account:
    """The state: balances, and how many transfers made them."""

    def __init__(self) -> None:
        self.balances = {"ann": 100, "bob": 100}
        self.transfers = 0

    def export(self) -> bytes:
        """For who joins."""
        return json.dumps([self.balances, self.transfers]).encode()

    def restore(self, state: bytes) -> None:
        """Go on from there."""
        self.balances, self.transfers = json.loads(state)


class Replica:
    """One copy of the accounts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.account = Account()
        self.changed = asyncio.Condition()
        self.members: tuple[semcast.MemberId, ...] = ()

    async def run(self, group_name: str, stop: asyncio.Event) -> None:
        """Follow the group until told to stop."""
        async with semcast.join(group_name, name=self.name, state=self.account, **SETTINGS) as self.group:
            reader = asyncio.create_task(self._read())
            await stop.wait()
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read(self) -> None:
        async for event in self.group:
            match event:
                case semcast.ViewChange(view=view):
                    self.members = view.members
                case semcast.Minority() | semcast.Rejoining():
                    self.members = ()  # whoever is the primary now, it is not for this one to say
                case semcast.Message(payload=payload):
                    self.account.balances.update(json.loads(payload))
                    self.account.transfers += 1
            async with self.changed:
                self.changed.notify_all()

    def is_primary(self) -> bool:
        """Whether requests are for this one."""
        return bool(self.members) and self.members[0] == self.group.member

    async def transfer(self, source: str, target: str, amount: int) -> None:
        """Serve a request: decide here, tell everybody, and answer once it is sure to last."""
        balances = self.account.balances
        amount = min(amount, balances[source])  # nobody else repeats this, or could come to another result
        result = {source: balances[source] - amount, target: balances[target] + amount}
        done = self.account.transfers + 1
        await self.group.send(json.dumps(result).encode())
        await self.until(lambda: self.account.transfers >= done)

    async def until_members(self, count: int) -> None:
        """Wait for a view of a size."""
        await self.until(lambda: len(self.members) == count)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds here."""
        async with self.changed:
            await self.changed.wait_for(condition)


async def main() -> None:
    """Three replicas; the primary leaves in the middle, and a new one joins."""
    rng = Random(7)
    replicas = {name: Replica(name) for name in "abc"}
    stops = {name: asyncio.Event() for name in "abcd"}
    tasks = {name: asyncio.create_task(replicas[name].run("example-accounts", stops[name])) for name in "abc"}
    await asyncio.gather(*(each.until_members(3) for each in replicas.values()))
    primary = next(each for each in replicas.values() if each.is_primary())
    for _ in range(20):
        await primary.transfer(*rng.choice([("ann", "bob"), ("bob", "ann")]), rng.randint(1, 50))
    print(f"{primary.name} served 20 transfers: {primary.account.balances}")
    stops[primary.name].set()
    await tasks.pop(primary.name)
    del replicas[primary.name]
    await asyncio.gather(*(each.until_members(2) for each in replicas.values()))
    successor = next(each for each in replicas.values() if each.is_primary())
    assert successor.account.balances == primary.account.balances
    for _ in range(5):
        await successor.transfer("ann", "bob", 1)
    print(f"{successor.name} took over: {successor.account.balances}")
    late = replicas["d"] = Replica("d")
    tasks["d"] = asyncio.create_task(late.run("example-accounts", stops["d"]))
    await late.until_members(3)
    assert late.account.transfers == 25
    print(f"d joined and knows of {late.account.transfers} transfers: {late.account.balances}")
    assert sum(late.account.balances.values()) == 200
    for name in tasks:
        stops[name].set()
    await asyncio.gather(*tasks.values())


if __name__ == "__main__":
    asyncio.run(main())
