"""One client of a daemon in a process of its own: `python -m semcast.chaos.client '{"host": ..., ...}'`.

It runs an ordinary program, tells on its standard output what it sees in one group that all know, and obeys
its standard input as `chaos.member` does.
"""

import asyncio
import json
import os
import random
import sys
from pathlib import Path

import semcast
from semcast.chaos.calling import Calling
from semcast.chaos.daemon import socket_of
from semcast.chaos.insisting import Insisting
from semcast.chaos.ledger import letter
from semcast.chaos.orders import MARK, Orders, say
from semcast.domains import Domain, LightGroup
from semcast.domains.domain import QUEUE
from semcast.domains.light import Flavour
from semcast.domains.recording import DomainRecording
from semcast.domains.remote import DaemonAddress, RemoteLink
from semcast.processes import Line

_MAIN = "everybody"
_SIDE: dict[str, Flavour] = {f"group {n}": "vs" if n % 4 == 0 else "evs" for n in range(40)}
"""Groups that some are in for a while."""
_QUESTION, _ANSWER = b"?", b"!"
_CONFIRMED = 0.05
"""Of the messages, those for whose place a program waits: also where it reads."""
_WINDOW = 64
"""Messages that may be under way to a program."""
_REPORTS = 1.0


class DaemonSession:
    """A program at its daemon. It tries until the daemon is there, as programs that start early do.

    Args:
        where: the daemon's socket.
        name: of the program.
        queue: messages that wait in the program; all others wait in the daemon.
        recording: of what it hears, and of its calls.
    """

    def __init__(self, where: str, name: str, queue: int, recording: DomainRecording) -> None:
        self._where = where
        self._name = name
        self._queue = queue
        self._recording = recording
        self._entered: Domain | None = None

    @property
    def domain(self) -> Domain:
        """Once it was entered."""
        assert self._entered is not None
        return self._entered

    async def __aenter__(self) -> "DaemonSession":
        while self._entered is None:
            try:
                link = RemoteLink(DaemonAddress(self._where), self._name, window=_WINDOW)
                domain = Domain(self._where, link, queue=self._queue, recording=self._recording)
                self._entered = await domain
            except semcast.GroupError as error:
                say("refused", text=str(error))
                await asyncio.sleep(0.1)
        return self

    async def close(self) -> None:
        """Leave all groups."""
        if self._entered is not None:
            await self._entered.close()


class ClientProgram:
    """Reads, and joins, leaves and sends to many groups. Others are made from it.

    Args:
        domain: in which it is a client.
        rng: what it does, and when.
        rate: messages a second, about.
    """

    queue = QUEUE
    """Messages that wait in the program."""

    def __init__(self, domain: Domain, rng: random.Random, rate: float) -> None:
        self.domain = domain
        self.rng = rng
        self.sent = self.delivered = 0
        self.quiet = False
        self._rate = rate
        self._insisting = Insisting()
        self.calling = Calling(rng, self._insisting)
        self._seats: dict[str, LightGroup] = {}

    async def read(self) -> None:
        """Until the domain is closed."""
        async for group, event in self.domain:
            if isinstance(event, semcast.Message):
                self.delivered += 1
                if event.payload.startswith(MARK):
                    say("mark", text=event.payload[len(MARK) :].decode())
                else:
                    await self.on_message(event)
            elif isinstance(event, semcast.ViewChange) and group == _MAIN:
                tell_of(event)
            elif isinstance(event, semcast.Rejoining):
                say("rejoining", incarnation=event.member.incarnation, cause=event.cause)

    async def on_message(self, message: semcast.Message) -> None:
        """What it does with a message."""

    async def write(self) -> None:
        """Be in the group of all; then go on until it shall be quiet."""
        await self.enter()
        while not self.quiet:
            await self.rng.choice((self.roam, self.ask, self.ask, self.whisper, self.call))()
            await asyncio.sleep(self.rng.expovariate(self._rate))

    async def enter(self) -> None:
        """Be in the group of all, and answer calls there."""
        main = await self.domain.join(_MAIN)
        main.on_call(self.calling.answer)

    async def call(self) -> None:
        """Ask one or many in some group that it is in."""
        seats = list(self.domain.groups())
        try:
            await self.calling.call(self.rng.choice(seats))
        except semcast.GroupClosedError:
            self.domain.is_over()  # raises where that is more than one group

    async def roam(self) -> None:
        """Join a group, or leave one."""
        group = self.rng.choice(list(_SIDE))
        seat = self._seats.pop(group, None)
        if seat is None:
            await self._insisting.until_done(lambda: self._join(group))
        else:
            await self._insisting.until_done(seat.leave)

    async def ask(self) -> None:
        """A message that others may answer."""
        await self.send(_QUESTION)

    async def whisper(self) -> None:
        """A message to one member of some group, who may be gone."""
        members = [member for seat in self.domain.groups() for member in seat.members()]
        if members:
            to, payload = self.rng.choice(members), letter(_ANSWER, "", b"to you alone")
            await self._insisting.until_done(lambda: self.domain.send_to(to, payload))
            self.sent += 1

    async def _join(self, group: str) -> None:
        self._seats[group] = await self.domain.join(group, flavour=_SIDE[group])

    async def send(self, kind: bytes) -> None:
        """A message to one group or several, about an item or not; some must get a place first."""
        rng = self.rng
        groups = [_MAIN] if rng.random() < 0.8 else rng.sample(list(_SIDE), rng.randint(1, 3))
        item = f"item {rng.randrange(5)}" if rng.random() < 0.6 else None
        size = 30_000 if rng.random() < 0.003 else rng.randrange(4, 400)
        payload = letter(kind, item or "", rng.randbytes(size))
        order = "safe" if rng.random() < 0.1 else "agreed"
        if rng.random() < _CONFIRMED:
            await self._insisting.until_done(
                lambda: self.domain.cast(groups, payload, item=item, order=order, confirm="safe")
            )
        else:
            await self._insisting.until_done(
                lambda: self.domain.cast(groups, payload, item=item, order=order)
            )
        self.sent += 1

    async def mark(self, text: str) -> None:
        """A message that others look for."""
        await self._insisting.until_done(lambda: self.domain.send(_MAIN, MARK + text.encode()))

    async def report(self) -> None:
        """How it is doing, again and again."""
        while True:
            say(
                "report",
                sent=self.sent,
                delivered=self.delivered,
                refused=self._insisting.refused,
                unconfirmed=self._insisting.unconfirmed,
                waits=round(self._insisting.waits(), 1),
                phase=f"{self.domain.member} in {len(self.domain.groups())} groups",
                unsent=0,
            )
            await asyncio.sleep(_REPORTS)


class AnsweringClient(ClientProgram):
    """Answers some of what it reads, from where it reads it, and sends nothing else."""

    async def write(self) -> None:
        """Be in the group of all, and in some others."""
        await self.enter()
        for group in self.rng.sample(list(_SIDE), 10):
            await self._insisting.until_done(lambda group=group: self._join(group))  # type: ignore[misc]

    async def on_message(self, message: semcast.Message) -> None:
        """Answer a question in four; answers are never answered."""
        if message.payload.startswith(_QUESTION) and not self.quiet and self.rng.random() < 0.25:
            await self.send(_ANSWER)


class Publishes(ClientProgram):
    """Only sends, and is in no group."""

    async def read(self) -> None:
        """Nothing."""

    async def write(self) -> None:
        """A few messages, a pause, and again."""
        while not self.quiet:
            for _ in range(burst := self.rng.choice((1, 1, 2, 10))):
                await self.ask()
            await asyncio.sleep(burst * self.rng.expovariate(self._rate))


class Sleeps(ClientProgram):
    """Is in the group of all, and never comes to read: the daemon puts it out. It does not even hear that."""

    queue = 16

    async def read(self) -> None:
        """The first event, for ever."""
        async for _ in self.domain:
            await asyncio.Event().wait()

    async def write(self) -> None:
        """Be in the group."""
        await self.domain.join(_MAIN)


PROGRAMS: dict[str, type[ClientProgram]] = {
    "roams": ClientProgram,
    "answers": AnsweringClient,
    "publishes": Publishes,
    "sleeps": Sleeps,
}


def tell_of(change: semcast.ViewChange) -> None:
    """A view of the group of all: the programs' own names, without those of their daemons."""
    members = [[member.name.partition("@")[0], member.incarnation] for member in change.view.members]
    say("view", number=change.view.id, members=members)


class ChaosClient:
    """A session, the program in it, and the orders.

    Args:
        order: what the process was given as its argument.
    """

    def __init__(self, order: Line) -> None:
        self._order = order
        self._orders = Orders({"mark": self._mark, "quiet": self._quiet})
        self._program: ClientProgram
        self._writing: asyncio.Task[None]

    async def run(self) -> None:
        """Until told to leave, or until the daemon will have it no more."""
        order = self._order
        settings = order["settings"]
        recording = DomainRecording(Path(settings["record"]), settings["record_run"])
        queue = PROGRAMS[order["program"]].queue
        session = DaemonSession(socket_of(order["host"]), order["name"], queue, recording)
        say("begun")
        await self._orders.follow(session, lambda leaving: self._work(session.domain, leaving))

    async def _work(self, domain: Domain, leaving: asyncio.Task[bool]) -> None:
        order = self._order
        rng = random.Random(f"{order['seed']} {domain.member}")
        program = self._program = PROGRAMS[order["program"]](domain, rng, order["rate"])
        self._writing = asyncio.create_task(program.write())
        others = asyncio.create_task(program.read()), asyncio.create_task(program.report())
        await self._orders.watch({leaving, self._writing, *others})

    async def _mark(self, order: Line) -> None:
        await self._program.mark(order["text"])

    async def _quiet(self, _order: Line) -> None:
        self._program.quiet = True
        await asyncio.gather(self._writing, return_exceptions=True)
        say("quiet")


def main() -> None:
    """Run the client that the argument describes."""
    order: Line = json.loads(sys.argv[1])
    os.chdir(order["folder"])
    asyncio.run(ChaosClient(order).run())


if __name__ == "__main__":
    main()
