"""One member in a process of its own: `python -m semcast.chaos.member '{"group": ..., "settings": {...}}'`.

It runs an ordinary program, tells on its standard output what it sees, and obeys its standard input: `mark`
(send a message that all others look for), `quiet` (send nothing more), `state` (say what it is), `leave`.
"""

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, cast

import semcast
from semcast.chaos.calling import Calling
from semcast.chaos.insisting import Insisting
from semcast.chaos.ledger import SharedLedger, letter
from semcast.chaos.orders import MARK, Orders, say
from semcast.core.ids import MemberId, Nanos
from semcast.core.stack import Stack
from semcast.group.confirming import Confirm
from semcast.group.drafts import Order
from semcast.group.families import FAMILIES
from semcast.processes import Line
from semcast.protocols.gossip import Member

_QUESTION = b"?"
_REPORTS = 1.0
_CONFIRMED = 0.05
"""Of the messages, those for whose confirmation a program waits: also where it reads."""
_ACKNOWLEDGED = 0.05
"""How often a program acknowledges what it has dealt with, after a message."""
_CALLS = 0.1
"""How often a program also calls after it has sent something."""


class MemberProgram:
    """A program that reads what comes and sends now and then. Others are made from it.

    Args:
        group: of which it is a member.
        ledger: its state.
        rng: what it sends, and when.
        rate: messages a second, about.
    """

    reads = True
    """Whether it iterates over its group."""

    def __init__(self, group: semcast.Group, ledger: SharedLedger, rng: random.Random, rate: float) -> None:
        self.group = group
        self.ledger = ledger
        self.rng = rng
        self.sent = self.delivered = 0
        self._insisting = Insisting()
        self.calling = Calling(rng, self._insisting)
        self.quiet = False
        self._rate = rate
        family = FAMILIES.of(group.settings.stack)
        self._safe = family.safe
        self._calls = family.calls and group.settings.receive
        if self._calls:
            group.on_call(self.calling.answer)
        self._confirms = cast("Sequence[Confirm]", family.confirms)

    async def read(self) -> None:
        """Until the group ends."""
        async for event in self.events():
            if isinstance(event, semcast.Message):
                self.delivered += 1
                if event.payload.startswith(MARK):
                    say("mark", text=event.payload[len(MARK) :].decode())
                else:
                    self.ledger.apply(event)
                    await self.on_message(event)
            else:
                tell_of(event)

    def events(self) -> AsyncIterator[semcast.GroupEvent]:
        """How it reads."""
        return aiter(self.group)

    async def on_message(self, message: semcast.Message) -> None:
        """What it does with a message."""

    async def write(self) -> None:
        """A few messages, a pause, and again, until it shall be quiet."""
        rng = self.rng
        while not self.quiet:
            for _ in range(burst := rng.choice((1, 1, 2, 10))):
                await self.send()
            if self._calls and rng.random() < _CALLS:
                await self.calling.call(self.group)
            await asyncio.sleep(burst * rng.expovariate(self._rate))

    async def send(self, answer: bool = False) -> None:
        """One message: about an item or not, small or large, safe or not, and some must be confirmed."""
        rng = self.rng
        size = 30_000 if rng.random() < 0.003 else rng.randrange(4, 400)
        item = f"item {rng.randrange(5)}" if rng.random() < 0.6 else None
        payload = letter(b"!" if answer else _QUESTION, item or "", rng.randbytes(size))
        safe = self._safe and rng.random() < 0.1
        order: Order = "safe" if safe else "agreed"
        if rng.random() < _CONFIRMED:
            asked = rng.choice(self._confirms)
            await self._call(lambda: self.group.send(payload, item=item, order=order, confirm=asked))
        else:
            await self._call(lambda: self.group.send(payload, item=item, order=order))

    async def mark(self, text: str) -> None:
        """A message that others look for."""
        await self._call(lambda: self.group.send(MARK + text.encode()))

    async def _call(self, send: Callable[[], Coroutine[Any, Any, object]]) -> None:
        await self._insisting.until_done(send)
        self.sent += 1

    def report(self) -> None:
        """How it is doing."""
        stats = self.group.stats()
        say(
            "report",
            sent=self.sent,
            delivered=self.delivered,
            refused=self._insisting.refused,
            unconfirmed=self._insisting.unconfirmed,
            waits=round(self._insisting.waits(), 1),
            phase=stats.phase,
            unsent=stats.waiting_to_send,
            buffered=stats.buffered,
        )


class AnsweringMember(MemberProgram):
    """Answers some of what it reads, from where it reads it."""

    async def on_message(self, message: semcast.Message) -> None:
        """Answer a question in four; answers are never answered."""
        if message.payload.startswith(_QUESTION) and not self.quiet and self.rng.random() < 0.25:
            await self.send(answer=True)

    async def write(self) -> None:
        """Asks nothing."""


class Publishes(MemberProgram):
    """Only sends."""

    reads = False


class Logs(MemberProgram):
    """A logger: the others send and read."""

    reads = False

    async def write(self) -> None:
        """Nothing."""

    async def mark(self, text: str) -> None:
        """Nothing."""


class Bursts(MemberProgram):
    """Does something else for a while, then reads a lot."""

    async def events(self) -> AsyncIterator[semcast.GroupEvent]:
        """Many of them, then a pause."""
        left = 0
        async for event in self.group:
            if not left:
                left = self.rng.choice((10, 100, 1000))
                if not self.quiet:
                    await asyncio.sleep(self.rng.uniform(0.1, 1.5))
            left -= 1
            yield event


class Deals(MemberProgram):
    """Acknowledges now and then all that it has dealt with; what it has not comes again after a restart."""

    def __init__(self, group: semcast.Group, ledger: SharedLedger, rng: random.Random, rate: float) -> None:
        super().__init__(group, ledger, rng, rate)
        self._done: dict[MemberId, int] = {}

    async def events(self) -> AsyncIterator[semcast.GroupEvent]:
        """Dealt with when it comes back for the next."""
        async for event in self.group:
            yield event
            if isinstance(event, semcast.Rejoining):
                self._done.clear()
            elif isinstance(event, semcast.Message):
                self._done[event.sender] = event.id.seq
                if self.rng.random() < _ACKNOWLEDGED:
                    self._acknowledge()

    def _acknowledge(self) -> None:
        done, self._done = self._done, {}

        def tell(stack: Stack, now: Nanos) -> None:
            assert isinstance(stack, Member)
            there = stack.receiver.streams
            with suppress(ValueError):  # of an incarnation that was given nothing yet
                stack.acknowledge(now, {sender: seq for sender, seq in done.items() if sender in there})

        self.group.command(tell)


PROGRAMS: dict[str, type[MemberProgram]] = {
    "talks": MemberProgram,
    "answers": AnsweringMember,
    "publishes": Publishes,
    "bursts": Bursts,
    "deals": Deals,
    "logs": Logs,
}


def tell_of(event: semcast.GroupEvent) -> None:
    """What is not a message."""
    if isinstance(event, semcast.ViewChange):
        members = [[member.name, member.incarnation] for member in event.view.members]
        say("view", number=event.view.id, members=members)
    elif isinstance(event, semcast.Rejoining):
        say("rejoining", incarnation=event.member.incarnation, cause=event.cause)
    else:
        say("other", kind=type(event).__name__)


class ChaosMember:
    """A group, the program on it, and the orders.

    Args:
        order: what the process was given as its argument.
    """

    def __init__(self, order: Line) -> None:
        self._order = order
        self._ledger = SharedLedger()
        self._orders = Orders({"mark": self._mark, "quiet": self._quiet, "state": self._state})
        self._program: MemberProgram
        self._writing: asyncio.Task[None]

    async def run(self) -> None:
        """Until told to leave, or until the group ends it."""
        hands_over = FAMILIES.of(self._order["settings"]["stack"]).transfers
        state = self._ledger if hands_over else None
        group = semcast.join(self._order["group"], state=state, **self._order["settings"])
        say("begun", incarnation=group.member.incarnation)
        await self._orders.follow(group, lambda leaving: self._work(group, leaving))

    async def _work(self, group: semcast.Group, leaving: asyncio.Task[bool]) -> None:
        order = self._order
        rng = random.Random(f"{order['seed']} {group.member}")
        program = self._program = PROGRAMS[order["program"]](group, self._ledger, rng, order["rate"])
        self._writing = asyncio.create_task(program.write())
        watched: set[asyncio.Task[Any]] = {leaving, self._writing, asyncio.create_task(self._report())}
        if program.reads:
            watched.add(asyncio.create_task(program.read()))
        await self._orders.watch(watched)

    async def _report(self) -> None:
        while True:
            self._program.report()
            await asyncio.sleep(_REPORTS)

    async def _mark(self, order: Line) -> None:
        await self._program.mark(order["text"])

    async def _quiet(self, _order: Line) -> None:
        self._program.quiet = True
        await asyncio.gather(self._writing, return_exceptions=True)
        say("quiet")

    async def _state(self, _order: Line) -> None:
        say("state", summary=self._ledger.summary(), restored=self._ledger.restored)


def main() -> None:
    """Run the member that the argument describes."""
    asyncio.run(ChaosMember(json.loads(sys.argv[1])).run())


if __name__ == "__main__":
    main()
