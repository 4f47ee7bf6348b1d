"""A counter with a primary and backups: the first member of the view answers, the others stand by.

Everybody applies the same requests in the same order, so when the primary goes, the next one knows the count.
Requests are safe: they count only once every member has them.
"""

import asyncio

import semcast


class Replica:
    """One copy of the counter."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.answers: list[int] = []
        self.view_size = 0
        self.changed = asyncio.Condition()

    async def run(self, stop: asyncio.Event) -> None:
        """Apply requests until told to stop."""
        async with semcast.join("example-counter", name=self.name) as group:
            self.group = group
            reader = asyncio.create_task(self._read(group))
            await stop.wait()
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read(self, group: semcast.Group) -> None:
        async for event in group:
            if isinstance(event, semcast.ViewChange):
                self.view_size = len(event.view.members)
            elif isinstance(event, semcast.Message) and event.payload == b"+1":
                self.count += 1
                if self.is_primary():
                    self.answers.append(self.count)
            async with self.changed:
                self.changed.notify_all()

    def is_primary(self) -> bool:
        """Whether it is up to this one to answer."""
        view = self.group.view
        return view is not None and view.members[0] == self.group.member

    async def until(self, view_size: int, count: int) -> None:
        """Wait for a view of a size, and a count."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.view_size == view_size and self.count >= count)


async def main() -> None:
    """Three replicas; the primary leaves in the middle."""
    replicas = [Replica(name) for name in ("a", "b", "c")]
    stops = [asyncio.Event() for _ in replicas]
    tasks = [asyncio.create_task(r.run(s)) for r, s in zip(replicas, stops, strict=True)]
    await asyncio.gather(*(replica.until(3, 0) for replica in replicas))
    for _ in range(10):
        await replicas[1].group.send(b"+1", order="safe")
    await asyncio.gather(*(replica.until(3, 10) for replica in replicas))
    primary = next(place for place, replica in enumerate(replicas) if replica.is_primary())
    print(f"{replicas[primary].name} is the primary and answered up to {replicas[primary].answers[-1]}")
    stops[primary].set()
    await tasks[primary]
    rest = [replica for place, replica in enumerate(replicas) if place != primary]
    await asyncio.gather(*(replica.until(2, 10) for replica in rest))
    for _ in range(5):
        await rest[0].group.send(b"+1", order="safe")
    await asyncio.gather(*(replica.until(2, 15) for replica in rest))
    successor = next(replica for replica in rest if replica.is_primary())
    print(f"{successor.name} took over and answered {successor.answers}")
    assert successor.answers == [11, 12, 13, 14, 15]
    for stop in stops:
        stop.set()
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(main())
