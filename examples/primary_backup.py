"""A primary with backups: the first member of the view serves, and the others follow what it did.

`semcast.live` runs the pattern `PrimaryBackup` in a group with agreed views. The primary works out what a
request does and multicasts the result; backups only apply results. Delivery is uniform, so what was answered
survives the primary. Who joins is given the state.
"""

import asyncio
import json
from collections.abc import Mapping
from random import Random
from typing import Any

import semcast
from semcast.patterns import BackupReply, Executed, PrimaryBackup

SETTINGS: dict[str, Any] = {"uniform": True, "minimum": 2, "token_loss": "2s"}
GROUP = "example-accounts"
Accounts = semcast.Live[PrimaryBackup]


def transfer(state: Mapping[str, bytes], request: bytes) -> Executed:
    """Executed at the primary alone: nobody else could come to another result."""
    source, target, amount = json.loads(request)
    balances = {who: int(state.get(who, b"100")) for who in (source, target)}
    amount = min(amount, balances[source])
    count = int(state.get("transfers", b"0")) + 1
    changes: dict[str, bytes | None] = {
        source: b"%d" % (balances[source] - amount),
        target: b"%d" % (balances[target] + amount),
        "transfers": b"%d" % count,
    }
    return Executed(changes, b"transfer %d: %d" % (count, amount))


def accounts(name: str) -> Accounts:
    """One copy of the accounts."""
    return semcast.live(GROUP, lambda me: PrimaryBackup(me, transfer), name=name, **SETTINGS)


async def ask(replica: Accounts, source: str, target: str, amount: int) -> bytes:
    """A client's request, made at any replica; returns once it is sure to last."""
    answer = await replica.answer(replica.pattern.request(json.dumps([source, target, amount]).encode()))
    assert isinstance(answer, BackupReply)
    return answer.reply


async def main() -> None:
    """Three replicas; the primary leaves in the middle, and a new one joins."""
    rng = Random(7)
    replicas = [accounts(name) for name in "abc"]
    await asyncio.gather(*(each.__aenter__() for each in replicas))
    await asyncio.gather(*(each.group.wait_for(3) for each in replicas))
    for _ in range(20):
        pair = rng.choice([("ann", "bob"), ("bob", "ann")])
        await ask(rng.choice(replicas), *pair, rng.randint(1, 50))
    primary = next(each for each in replicas if each.pattern.primary == each.group.member)
    print(f"{primary.group.member.name} executed 20 transfers")
    await primary.close()
    replicas.remove(primary)
    for _ in range(5):
        await ask(replicas[0], "ann", "bob", 1)
    successor = replicas[0].pattern.primary
    assert successor is not None
    print(f"{successor.name} took over: {dict(replicas[0].pattern.state)}")
    async with accounts("d") as late:
        await late.until(lambda pattern: pattern.state.get("transfers") == b"25")
        balances = dict(late.pattern.state)
        print(f"d joined and knows of {int(balances.pop('transfers'))} transfers: {balances}")
        assert sum(map(int, balances.values())) == 200
    await asyncio.gather(*(each.close() for each in replicas))


if __name__ == "__main__":
    asyncio.run(main())
