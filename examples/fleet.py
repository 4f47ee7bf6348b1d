"""Fleet telemetry with a phone that is away now and then: it gets every alarm, and where each van is now.

Vans report where they are, which replaces what they reported before, and alarms, which nothing replaces. The
dispatcher's phone keeps them with a durable subscription: what comes while it is away waits in the log.
"""

import asyncio
import tempfile
from secrets import token_hex

import semcast

VANS = ("van-1", "van-2", "van-3")


async def drive(van: semcast.Group, reports: range) -> None:
    """A place at a time, and an alarm every 50 of them; the last is on disk when this returns."""
    name = van.member.name
    for number in reports:
        if number % 50 == 0:
            await van.send(f"{name}: door open, report {number}".encode())
        await van.send(f"km {number}".encode(), item=name)
    await van.send(f"{name}: parked".encode(), logged=True, timeout=20)


async def look(group: str, parked: int) -> tuple[dict[str, str], list[str], int]:
    """What the phone sees until so many vans have parked: places, alarms, and how many messages that took."""
    places: dict[str, str] = {}
    alarms: list[str] = []
    count = 0
    async with semcast.subscribe(group, durable="phone", start="all", ack="explicit") as fleet:
        async for batch in fleet:
            for message in batch:
                count += 1
                if isinstance(message.annotation, semcast.Item):
                    places[message.annotation.item] = message.payload.decode()
                elif message.payload.endswith(b"parked"):
                    parked -= 1
                else:
                    alarms.append(message.payload.decode())
            await batch.ack()
            if not parked:
                break
    return places, alarms, count


async def main() -> None:
    """The phone looks, is away while the vans drive on, and looks again."""
    group = f"example-fleet-{token_hex(4)}"
    with tempfile.TemporaryDirectory() as folder:
        log = semcast.join(group, stack="gossip", name="log", logger=True, data=folder, receive=False)
        async with log:
            vans = [await semcast.join(group, stack="gossip", name=van, receive=False) for van in VANS]
            looking = asyncio.create_task(look(group, len(VANS)))
            await asyncio.gather(*(drive(van, range(1, 101)) for van in vans))
            places, alarms, _ = await looking
            print(f"{places}, {len(alarms)} alarms; now the phone is away")
            await asyncio.gather(*(drive(van, range(101, 1001)) for van in vans))
            places, missed, count = await look(group, len(VANS))
            print(f"{places}, {len(missed)} alarms more; {count} messages said so, of {3 * 919}")
            assert set(places.values()) == {"km 1000"}
            assert len(alarms) == 2 * len(VANS)
            assert len(missed) == 18 * len(VANS)
            for van in vans:
                await van.close()


if __name__ == "__main__":
    asyncio.run(main())
