"""A warehouse that counts on through a partition (Amir 1995, section 7.4: commutative updates).

Goods that come and go are sums: they come to the same in any order, and are answered at once everywhere. Only
what must not go below zero, an order of a customer, is strict, and says so itself in its statement.
"""

import asyncio
import tempfile
from secrets import token_hex

import semcast
from semcast.engine.levels import ReadLevel
from semcast.engine.results import SqlResult

NAMES = ("depot", "shop", "web")
BOLTS = {"part": "bolt"}
ORDER = "update stock set count = count - ? where part = 'bolt' and count >= ?"


async def bolts(db: semcast.Database, level: ReadLevel) -> object:
    """How many there are, as a server knows it."""
    found = await db.query("select count from stock where part = 'bolt'", level=level)
    return found.rows[0][0]


async def order(db: semcast.Database, count: int) -> bool:
    """Whether there were enough."""
    done = await db.execute(ORDER, (count, count))
    assert isinstance(done, SqlResult)
    return done.changes == 1


async def main() -> None:
    """A depot, a shop and a web site."""
    name = f"stock-{token_hex(4)}"
    with tempfile.TemporaryDirectory() as folder:

        def server(which: str) -> semcast.Database:
            return semcast.database(name, name=which, founders=NAMES, data=f"{folder}/{which}")

        depot, shop, web = await asyncio.gather(*(server(each) for each in NAMES))
        await depot.execute("create table stock(part text primary key, count integer not null)")
        await depot.execute("insert into stock values ('bolt', 100)")  # strict: all orders come after
        print("sold 30:", await order(web, 30))

        await shop.close()
        await depot.close()
        while web.status().primary:
            await asyncio.sleep(0.05)
        await web.add("stock", BOLTS, "count", 5)  # 5 came back by mail
        print(
            "the web site, alone, counts",
            await bolts(web, "dirty"),
            "and is sure of",
            await bolts(web, "weak"),
        )

        depot, shop = await asyncio.gather(server("depot"), server("shop"))
        await shop.add("stock", BOLTS, "count", -15)
        print("sold 80:", await order(depot, 80))
        counts = {await bolts(each, "linear") for each in (depot, shop, web)}
        print("all three count", counts)
        assert counts == {100 - 30 + 5 - 15}
        await asyncio.gather(depot.close(), shop.close(), web.close())


asyncio.run(main())
