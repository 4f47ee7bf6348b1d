"""A replicated dictionary: reads are local, writes go to everybody, joiners find it filled."""

import asyncio

import semcast


async def main() -> None:
    """Two members, one after the other."""
    async with semcast.ReplicatedDict.join("example-dictionary", name="first") as first:
        await first.set("colour", "blue")
        await first.set("limits", {"low": 3, "high": 9})
        async with semcast.ReplicatedDict.join("example-dictionary", name="second") as second:
            await second.ready()
            print("the second finds", dict(second))
            await second.set("colour", "green")
            await first.wait_until(lambda seen: seen.get("colour") == "green")
            print("the first sees the new colour:", first["colour"])
        await first.delete("limits")
        print("what is left:", dict(first))


if __name__ == "__main__":
    asyncio.run(main())
