"""A program in many groups: `python -m tests.live.lab.busybody NAME PREFIX COUNT`.

It says `members` and how many, whenever all groups have equally many. Told `mark` on its standard input, it
sends its name in each group, and says `heard` with who was heard in all of them.
"""

import asyncio
import sys
import threading

import semcast


class Busybody:
    """One program, many groups."""

    def __init__(self, name: str, groups: list[str]) -> None:
        self._name = name
        self._groups = groups
        self._sizes: dict[str, int] = {}
        self._heard: dict[str, set[str]] = {group: set() for group in groups}
        self._joined: list[semcast.Group] = []
        self._said = ""

    async def run(self) -> None:
        joining = [semcast.join(group, name=self._name) for group in self._groups]
        self._joined = await asyncio.gather(*joining)
        threads = [each.name for each in threading.enumerate() if each.name.startswith("semcast")]
        self._say(f"joined {len(threads)} {len({group.address for group in self._joined})}")
        reading = [asyncio.create_task(self._read(group)) for group in self._joined]
        while await asyncio.to_thread(sys.stdin.readline):
            for group in self._joined:
                await group.send(self._name.encode())
        for group in self._joined:
            await group.close()
        await asyncio.gather(*reading)

    async def _read(self, group: semcast.Group) -> None:
        async for event in group:
            if isinstance(event, semcast.ViewChange):
                self._sizes[group.name] = len(event.view.members)
                if len(self._sizes) == len(self._groups) and len(set(self._sizes.values())) == 1:
                    self._say(f"members {len(event.view.members)}")
            elif isinstance(event, semcast.Message):
                self._heard[group.name].add(event.payload.decode())
                if heard := "".join(sorted(set.intersection(*self._heard.values()))):
                    self._say(f"heard {heard}")

    def _say(self, words: str) -> None:
        if words != self._said:
            self._said = words
            print(words, flush=True)


if __name__ == "__main__":
    asyncio.run(Busybody(sys.argv[1], [f"{sys.argv[2]}-{at}" for at in range(int(sys.argv[3]))]).run())
