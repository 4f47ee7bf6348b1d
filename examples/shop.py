"""A shop with three replicas and no database: each buys what is asked for, in the same order as the others.

`buy` is a call: it has its place among all requests of the group, so all replicas have the same stock when
they come to it, and any majority of them gives the answer. One replica is lost, and nobody notices.
"""

import asyncio

import semcast

SEATS = 20


class Replica:
    """The seats that are left, as one member of the group knows them."""

    def __init__(self, group: semcast.Group) -> None:
        self.group = group
        self.seats = SEATS
        group.on_call(self.buy)

    def buy(self, request: semcast.CallRequest) -> bytes:
        """Runs at its place in the order, so a plain function is all it takes."""
        wanted = int(request.payload)
        if wanted > self.seats:
            return b"sold out"
        self.seats -= wanted
        return b"%d left" % self.seats


async def customer(shop: semcast.Group, wanted: int) -> bytes:
    """Buy, and believe what most replicas say."""
    answer = await shop.call(b"%d" % wanted, replies="majority", timeout=5)
    assert answer.complete, f"departed {answer.departed}, missing {answer.missing}"
    said = set(answer.replies.values())
    assert len(said) == 1, "all replicas say the same"
    return said.pop()


async def main() -> None:
    """Customers buy at all replicas at once."""
    async with (
        semcast.join("example-shop", name="north") as north,
        semcast.join("example-shop", name="south") as south,
        semcast.join("example-shop", name="east") as east,
    ):
        groups = (north, south, east)
        replicas = [Replica(group) for group in groups]
        await asyncio.gather(*(group.wait_for(3, timeout=20) for group in groups))
        bought = await asyncio.gather(*(customer(group, 2) for group in groups for _ in range(3)))
        print("nine customers:", ", ".join(sorted(each.decode() for each in bought)))
        await east.close()
        print(
            "after east is gone:",
            (await customer(north, 2)).decode(),
            "/",
            (await customer(south, 1)).decode(),
        )
        assert replicas[0].seats == replicas[1].seats == 0


if __name__ == "__main__":
    asyncio.run(main())
