"""A trading floor in one causal domain: nobody hears of an effect before its cause, whatever the groups.

A feed publishes quotes. Desks buy when a quote is low, in another group; the exchange fills their orders.
Then the desk says in a third group what it holds, and the risk officers, who are in all three, add up. Nobody
looks at a clock or asks for what is missing: whoever is told of a holding has been told of the fill, and
whoever is told of an order has been told of the quote that it names.

`python examples/trading_floor.py DIR` records what everybody does: `semcast check DIR` judges it.
"""

import asyncio
import sys

import semcast

ROUNDS = 20
LIMIT = 100
DESKS = ("amy", "bob")
OFFICERS = ("ida", "otto")
WAIT = 60


def domain(name: str) -> semcast.Domain:
    """The domain, as one of its programs."""
    record = sys.argv[1] if len(sys.argv) > 1 else ""
    return semcast.domain("example-floor", engine="causal", name=name, record=record)


async def feed() -> None:
    """Says prices: even ones are low."""
    async with domain("feed") as floor:
        quotes = await floor.join("quotes")
        await quotes.wait_for(2 + len(DESKS) + len(OFFICERS), WAIT)
        for number in range(ROUNDS):
            price = LIMIT - 1 if number % 2 == 0 else LIMIT + 1
            await quotes.send(b"%d %d" % (number, price), item="IBM" if number % 2 else None)
        await floor.flush(WAIT)


async def exchange() -> None:
    """Fills orders. It is told of the quote before the order that names it."""
    async with domain("exchange") as floor:
        quotes, orders = await floor.join("quotes"), await floor.join("orders")
        await orders.wait_for(1 + len(DESKS) + len(OFFICERS), WAIT)
        seen: set[bytes] = set()
        filled = 0
        async for group, event in floor:
            if not isinstance(event, semcast.Message) or event.sender == floor.member:
                continue
            if group == quotes.name:
                seen.add(event.payload.split()[0])
            elif group == orders.name:
                desk, what, quote = event.payload.split()
                assert what == b"buy"
                assert quote in seen, "an order before its quote"
                await orders.send(desk + b" has " + quote)
                filled += 1
            if filled == len(DESKS) * ROUNDS // 2:
                break
        await floor.flush(WAIT)


async def desk(name: str) -> None:
    """Buys at every low quote, and says what it holds after every fill."""
    async with domain(name) as floor:
        quotes, orders = await floor.join("quotes"), await floor.join("orders")
        risk = await floor.join("risk")
        await risk.wait_for(len(DESKS) + len(OFFICERS), WAIT)
        held, mine = 0, name.encode()
        async for group, event in floor:
            if not isinstance(event, semcast.Message):
                continue
            words = event.payload.split()
            if group == quotes.name and int(words[1]) < LIMIT:
                await orders.send(mine + b" buy " + words[0])
            elif group == orders.name and words[:2] == [mine, b"has"]:
                held += 1
                await risk.send(mine + b" %d" % held)
            if held == ROUNDS // 2:
                break
        await floor.flush(WAIT)


async def officer(name: str) -> dict[bytes, int]:
    """Adds up what desks hold, and has seen every fill before."""
    async with domain(name) as floor:
        await floor.join("quotes")
        orders, risk = await floor.join("orders"), await floor.join("risk")
        fills = dict.fromkeys((desk.encode() for desk in DESKS), 0)
        held = dict(fills)
        async for group, event in floor:
            if not isinstance(event, semcast.Message):
                continue
            words = event.payload.split()
            if group == orders.name and words[1] == b"has":
                fills[words[0]] += 1
            elif group == risk.name:
                held[words[0]] = int(words[1])
                assert held[words[0]] <= fills[words[0]], "a holding before its fill"
            if all(count == ROUNDS // 2 for count in held.values()):
                break
        await floor.flush(WAIT)
        return held


async def main() -> None:
    """All of them in one program; on a floor they are many."""
    officers = [asyncio.create_task(officer(name)) for name in OFFICERS]
    await asyncio.gather(feed(), exchange(), *map(desk, DESKS), *officers)
    books = [task.result() for task in officers]
    print(f"both officers have the same books: {books[0]}")
    assert books[0] == books[1]


if __name__ == "__main__":
    asyncio.run(main())
