"""A trading floor in one causal domain: nobody hears of an effect before its cause, whatever the groups.

- `quotes` is a diffusion group: the feed says prices, everybody else is a client and listens.
- `orders` is a client/server group: desks are clients of two exchanges. Both are told of every order; the
  first of them fills it, and tells the other one and the desk.
- `risk` is a group of peers: desks say what they hold, and officers add up.

Clients are in no view: that a desk comes or goes changes none. Nobody looks at a clock or asks for what is
missing: who is told of an order has been told of the quote that it names, and so has who is told of a
holding, although these are three groups, of three kinds.

`python examples/trading_floor.py DIR` records what everybody does: `semcast check DIR` judges it.
"""

import asyncio
import sys

import semcast

ROUNDS = 20
LIMIT = 100
DESKS = ("amy", "bob")
EXCHANGES = ("east", "west")
OFFICERS = ("ida", "otto")
WAIT = 60


def domain(name: str) -> semcast.Domain:
    """The domain, as one of its programs."""
    record = sys.argv[1] if len(sys.argv) > 1 else ""
    return semcast.domain("example-floor", engine="causal", name=name, record=record)


async def feed() -> None:
    """Says prices: even ones are low. It begins when desks and officers are there."""
    async with domain("feed") as floor:
        quotes = await floor.join("quotes", kind="diffusion", role="server")
        risk = await floor.join("risk")
        await risk.wait_for(1 + len(DESKS) + len(OFFICERS), WAIT)
        for number in range(ROUNDS):
            price = LIMIT - 1 if number % 2 == 0 else LIMIT + 1
            await quotes.send(b"%d %d" % (number, price))
        done = 0
        async for group, event in floor:
            done += group == risk.name and isinstance(event, semcast.Message) and b" done" in event.payload
            if done == len(OFFICERS):
                break


async def exchange(name: str) -> None:
    """Fills orders. It has been told of the quote that an order names."""
    async with domain(name) as floor:
        quotes = await floor.join("quotes", kind="diffusion", role="client", timeout=WAIT)
        orders = await floor.join("orders", kind="client-server", role="server")
        seen: set[bytes] = set()
        fills = 0
        async for group, event in floor:
            if not isinstance(event, semcast.Message):
                continue
            if group == quotes.name:
                seen.add(event.payload.split()[0])
            elif event.payload.startswith(b"filled"):
                fills += 1
            else:
                quote = event.payload.split()[1]
                assert quote in seen, "an order before its quote"
                if orders.members()[0] == floor.member:
                    await orders.send(b"filled " + quote, to=event.sender)
            if fills == len(DESKS) * ROUNDS // 2:
                break
        await floor.flush(WAIT)


async def desk(name: str) -> None:
    """Buys at every low quote, and says what it holds after every fill."""
    async with domain(name) as floor:
        quotes = await floor.join("quotes", kind="diffusion", role="client", timeout=WAIT)
        orders = await floor.join("orders", kind="client-server", role="client", timeout=WAIT)
        await orders.wait_for(len(EXCHANGES), WAIT)
        risk = await floor.join("risk")
        held, mine = 0, name.encode()
        async for group, event in floor:
            if not isinstance(event, semcast.Message):
                continue
            words = event.payload.split()
            if group == quotes.name and int(words[1]) < LIMIT:
                await orders.send(b"buy " + words[0])
            elif group == orders.name:
                held += 1
                await risk.send(mine + b" %d " % held + words[1])
            if held == ROUNDS // 2:
                break
        await floor.flush(WAIT)


async def officer(name: str) -> dict[bytes, int]:
    """Adds up what desks hold, and has been told of every quote before."""
    async with domain(name) as floor:
        quotes = await floor.join("quotes", kind="diffusion", role="client", timeout=WAIT)
        risk = await floor.join("risk")
        held = dict.fromkeys((desk.encode() for desk in DESKS), 0)
        seen: set[bytes] = set()
        async for group, event in floor:
            if not isinstance(event, semcast.Message):
                continue
            words = event.payload.split()
            if group == quotes.name:
                seen.add(words[0])
            elif words[0] in held:
                held[words[0]] = int(words[1])
                assert words[2] in seen, "a holding before its quote"
            if all(count == ROUNDS // 2 for count in held.values()):
                break
        await risk.send(name.encode() + b" done")
        await floor.flush(WAIT)
        return held


async def main() -> None:
    """All of them in one program; on a floor they are many."""
    officers = [asyncio.create_task(officer(name)) for name in OFFICERS]
    await asyncio.gather(feed(), *map(exchange, EXCHANGES), *map(desk, DESKS), *officers)
    books = [task.result() for task in officers]
    print(f"both officers have the same books: {books[0]}")
    assert books[0] == books[1]


if __name__ == "__main__":
    asyncio.run(main())
