"""A bank with branches: a hierarchical group. The head office says which branch has an account.

Clerks are servers: each is in the root group and in the one branch that needed it most. Customers ask the
root once which branch has their account, and deal with that branch from then on: the clerks of the other one
hear nothing of them. Every clerk of a branch has the same balances, so that one may be lost.
"""

import asyncio

import semcast

CLERKS = ("ann", "ben", "cleo", "dan")
CUSTOMERS = {"eve": 30, "fay": 7, "gus": 12, "hal": 5}
BRANCHES = 2
WAIT = 60


def domain(name: str) -> semcast.Domain:
    """The bank, as one of its programs."""
    return semcast.domain("example-bank", engine="causal", name=name)


async def clerk(name: str, closing: asyncio.Event) -> dict[str, int]:
    """Keeps the accounts of a branch, and answers a deposit with the balance."""
    async with domain(name) as bank:
        tree = await semcast.hierarchy(bank, "bank", role="server", leaves=BRANCHES, timeout=WAIT)
        branch = tree.leaf
        assert branch is not None
        balances: dict[str, int] = {}

        @branch.on_call
        async def deposit(request: semcast.CallRequest) -> bytes:
            customer, amount = request.payload.decode().split()
            balances[customer] = balances.get(customer, 0) + int(amount)
            return b"%d" % balances[customer]

        await closing.wait()
        return {f"{branch.name}:{name}": balances[name] for name in sorted(balances)}


async def customer(name: str, amount: int) -> None:
    """Pays in, one by one: every clerk of its branch says the same balance."""
    async with domain(name) as bank:
        tree = await semcast.hierarchy(bank, "bank", role="client", timeout=WAIT)
        branch = await tree.leaf_of(name.encode())
        await branch.wait_for(len(CLERKS) // BRANCHES, WAIT)
        for paid in range(1, amount + 1):
            answer = await branch.call(f"{name} 1".encode(), timeout=WAIT)
            assert set(answer.replies.values()) == {b"%d" % paid}, answer.replies
        print(f"{name} has {amount} at {branch.name}, as {len(answer.replies)} clerks say")


async def main() -> None:
    """All of them in one program; in a bank they are many."""
    closing = asyncio.Event()
    clerks = [asyncio.create_task(clerk(name, closing)) for name in CLERKS]
    await asyncio.gather(*(customer(name, amount) for name, amount in CUSTOMERS.items()))
    closing.set()
    books = [book for book in await asyncio.gather(*clerks) if book]
    kept = {account for book in books for account in book.items()}
    assert len(kept) == len(CUSTOMERS), "every account is in one branch, with one balance"


if __name__ == "__main__":
    asyncio.run(main())
