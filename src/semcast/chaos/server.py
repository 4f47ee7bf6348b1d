"""One replication server in a process of its own: `python -m semcast.chaos.server '{"group": ..., ...}'`.

It runs a client beside it, tells on its standard output what it sees, and obeys its standard input.
"""

import asyncio
import hashlib
import json
import random
import sys
import time
from typing import Any

import semcast
from semcast.chaos.orders import MARK, Orders, say
from semcast.engine.levels import ReadLevel, UpdateLevel
from semcast.processes import Line

_REPORTS = 1.0
_LOOKS = 0.1
"""Seconds between two looks at how the server stands."""
_UPDATES: dict[str, tuple[UpdateLevel, ...]] = {
    "strict": ("strict",),
    "queued": ("queued",),
    "mixed": ("strict", "queued", "timestamped", "commutative"),
    "asks": ("strict",),
}
_READS: tuple[ReadLevel, ...] = ("weak", "dirty", "session", "linear")


class Chain:
    """A service whose state is all that was done, in order: two that differ anywhere differ for ever."""

    def __init__(self) -> None:
        self._done = 0
        self._digest = b""

    def apply(self, action: bytes, context: semcast.Context) -> bytes:
        """One more; who waits for a mark hears of it, unless this is but a guess."""
        self._done += 1
        self._digest = hashlib.blake2b(self._digest + action, digest_size=8).digest()
        if context.position and action.startswith(MARK):
            say("mark", text=action[len(MARK) :].decode())
        return self.query(b"")

    def query(self, _question: bytes) -> bytes:
        """How many, and which."""
        return f"{self._done} {self._digest.hex()}".encode()

    def snapshot(self) -> bytes:
        """For who is far behind."""
        return self.query(b"")

    def restore(self, state: bytes) -> None:
        """Go on from there."""
        done, digest = state.decode().split(" ")
        self._done, self._digest = int(done), bytes.fromhex(digest)


class DatabaseClient:
    """Asks its server for this and that. A new session at every start: what was open before stays open.

    Args:
        replica: its server.
        program: which levels it uses.
        rng: what it asks, and when.
        rate: requests a second, about.
    """

    def __init__(self, replica: semcast.Replica, program: str, rng: random.Random, rate: float) -> None:
        self.quiet = False
        self.sent = self.refused = 0
        self.waits_since: float | None = None
        self._replica = replica
        self._session = replica.session()
        self._program = program
        self._rng = rng
        self._rate = rate

    async def run(self) -> None:
        """Until it shall be quiet."""
        while not self.quiet:
            await self._ask()
            await asyncio.sleep(self._rng.expovariate(self._rate))

    async def _ask(self) -> None:
        rng = self._rng
        self.waits_since = time.monotonic()
        try:
            if self._program == "asks" and rng.random() < 0.7:
                await self._session.query(b"", level=rng.choice(_READS))
            else:
                level = rng.choice(_UPDATES[self._program])
                await self._session.update(rng.randbytes(rng.randrange(1, 300)), level=level)
        except semcast.RefusedError as error:
            self.refused += 1
            say("refused", text=str(error))
        self.waits_since = None
        self.sent += 1

    async def mark(self, text: str) -> None:
        """An action that all others look for."""
        await self._replica.update(MARK + text.encode())


class ChaosServer:
    """A replica, its client, and the orders.

    Args:
        order: what the process was given as its argument.
    """

    def __init__(self, order: Line) -> None:
        self._order = order
        self._chain = Chain()
        self._orders = Orders(
            {"mark": self._mark, "quiet": self._quiet, "state": self._state, "stall": self._stall}
        )
        self._stalled_until = 0.0
        self._client: DatabaseClient
        self._asking: asyncio.Task[None]
        self._seen: tuple[bool, tuple[str, ...]] | None = None

    async def run(self) -> None:
        """Until told to leave, or until the server fails."""
        order = self._order
        settings = {name: value for name, value in order["settings"].items() if name != "stack"}
        replica = semcast.replicate(order["group"], self._chain, **settings)
        assert replica.group.disk is not None
        replica.group.disk.before_sync = self._wait_for_disk
        say("begun", incarnation=replica.group.member.incarnation)
        await self._orders.follow(replica, lambda leaving: self._work(replica, leaving))

    async def _work(self, replica: semcast.Replica, leaving: asyncio.Task[bool]) -> None:
        order = self._order
        rng = random.Random(f"{order['seed']} {replica.group.member}")
        client = self._client = DatabaseClient(replica, order["program"], rng, order["rate"])
        self._asking = asyncio.create_task(client.run())
        watching = asyncio.create_task(self._watch(replica)), asyncio.create_task(self._report(replica))
        tasks: set[asyncio.Task[Any]] = {leaving, self._asking, *watching}
        await self._orders.watch(tasks)

    async def _watch(self, replica: semcast.Replica) -> None:
        """Tell of primaries and of who is within reach."""
        while True:
            status = replica.status()
            if status.alarm:
                raise RuntimeError(f"alarm: {status.alarm}")
            if (status.primary, status.view) != self._seen:
                self._seen = status.primary, status.view
                say("view", number=int(status.primary), members=[[name, 0] for name in status.view])
            await asyncio.sleep(_LOOKS)

    async def _report(self, replica: semcast.Replica) -> None:
        client = self._client
        while True:
            status = replica.status()
            waits = 0.0 if client.waits_since is None else time.monotonic() - client.waits_since
            say(
                "report",
                sent=client.sent,
                delivered=status.position,
                refused=client.refused,
                waits=round(waits, 1),
                phase=status.state,
                unsent=status.reds,
            )
            await asyncio.sleep(_REPORTS)

    async def _mark(self, order: Line) -> None:
        await self._client.mark(order["text"])

    async def _quiet(self, _order: Line) -> None:
        self._client.quiet = True
        await asyncio.gather(self._asking, return_exceptions=True)
        say("quiet")

    async def _stall(self, order: Line) -> None:
        self._stalled_until = time.monotonic() + order["lasts"]

    def _wait_for_disk(self) -> None:
        """In the thread that syncs."""
        time.sleep(max(0.0, self._stalled_until - time.monotonic()))

    async def _state(self, _order: Line) -> None:
        say("state", summary=self._chain.query(b"").decode())


def main() -> None:
    """Run the server that the argument describes."""
    asyncio.run(ChaosServer(json.loads(sys.argv[1])).run())


if __name__ == "__main__":
    main()
