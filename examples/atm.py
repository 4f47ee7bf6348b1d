"""A bank whose cash machine goes on when its line is dead (Amir 1995, section 7.3).

The bank has two servers, `a` and `b`; the machine has one of its own, `c`. With the bank in reach every
withdrawal is strict. Without it the machine still pays small sums: they are queued, and its receipt shows two
balances, the last that the bank confirmed (weak) and the one that includes what waits here (dirty).
"""

import asyncio
import tempfile
from secrets import token_hex

import semcast
from semcast.engine.levels import ReadLevel

NAMES = ("a", "b", "c")
LIMIT = 50
WITHDRAW = "update account set balance = balance - ? where id = 1"
BALANCE = "select balance from account where id = 1"


async def balance(db: semcast.Database, level: ReadLevel) -> int:
    """What a server says."""
    found = await db.query(BALANCE, level=level)
    (amount,) = found.rows[0]
    assert isinstance(amount, int)
    return amount


async def withdraw(machine: semcast.Database, amount: int) -> None:
    """Pay, and print the receipt."""
    if machine.status().primary:
        await machine.execute(WITHDRAW, (amount,))
    elif amount > LIMIT:
        print(f"  {amount}: not without the bank")
        return
    else:
        await machine.execute(WITHDRAW, (amount,), level="queued")
    confirmed, expected = await balance(machine, "weak"), await balance(machine, "dirty")
    print(f"  {amount}: paid. Balance confirmed by the bank: {confirmed}; with what waits: {expected}")


async def main() -> None:
    """A day."""
    name = f"bank-{token_hex(4)}"
    with tempfile.TemporaryDirectory() as folder:

        def server(which: str) -> semcast.Database:
            return semcast.database(name, name=which, founders=NAMES, data=f"{folder}/{which}")

        a, b, machine = await asyncio.gather(*(server(each) for each in NAMES))
        await a.execute("create table account(id integer primary key, balance integer)")
        await a.execute("insert into account values (1, 1000)")
        print("the machine has a line to the bank")
        await withdraw(machine, 300)

        await b.close()
        await a.close()
        while machine.status().primary:
            await asyncio.sleep(0.05)
        print("the line is dead")
        await withdraw(machine, 40)
        await withdraw(machine, 300)

        a, b = await asyncio.gather(server("a"), server("b"))
        print("the line is back; the bank adds interest of one percent")
        await b.execute("update account set balance = balance * 101 / 100")
        amounts = {await balance(each, "linear") for each in (a, b, machine)}
        print(f"  all three say {amounts.pop()}")
        assert not amounts
        await asyncio.gather(a.close(), b.close(), machine.close())


asyncio.run(main())
