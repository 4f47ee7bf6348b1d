"""Simulated processes of a causal domain, with programs that have a will of their own.

A program reads what it is given, at once or slowly, and now and then answers a message in another of its
groups: so that causes and effects run through several groups.
"""

from collections.abc import Sequence
from random import Random

import msgspec

from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Outbox, Timer
from semcast.core.stack import Stack
from semcast.protocols.isis import Isis, IsisSettings
from semcast.protocols.lightweight.events import Delivered, PrivateDelivered
from semcast.protocols.lightweight.sessions import Refused
from semcast.sim.faults import Deed

_PACE: Nanos = 11 * MILLISECOND
"""How often slow programs read."""


class IsisPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The domain of one run."""

    settings: IsisSettings
    groups: tuple[tuple[str, tuple[int, ...]], ...]
    """Groups, and the numbers of the processes that found them."""
    slow: tuple[int, ...] = ()
    """Whose programs read one thing at a time."""
    answers: int = 20
    """So many messages at most a program answers, each with a chance of one in three."""
    directs: float = 0.0
    """The chance that an answer goes to the one who said it alone."""
    many: int = 2
    """Things that a slow program reads at a time."""


class ReadTimer(Timer):
    """When slow programs read."""

    READ = "read"


class DomainProcess(Isis):
    """A process and its program, which acts whenever its host has a turn.

    Args:
        me: who this is.
        plan: of the run.
        number: of the process in the run.
        rng: chance.
        out: for everything that it wants.
    """

    def __init__(self, me: MemberId, plan: IsisPlan, number: int, rng: Random, out: Outbox) -> None:
        super().__init__(me, plan.settings, rng, out)
        self.plan = plan
        self.number = number
        self.wanted: dict[str, int] = {}
        """Groups that the program wants to be in, and how many found each."""
        self._chance = Random(rng.getrandbits(64))
        self._answers = plan.answers
        self._slow = number in plan.slow
        self._busy = self._reads = False
        for name, founders in plan.groups:
            if number in founders:
                self.wanted[name] = len(founders) // 2 + 1

    def start(self, now: Nanos) -> None:
        """Be in the groups that the program wants to be in."""
        super().start(now)
        for name, minimum in self.wanted.items():
            self.join(now, name, minimum)
        self.settle(now)

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> Stack | None:
        """Another incarnation wants the same, of groups that are there."""
        again = type(self)(member, self.plan, self.number, rng, out)
        again.wanted = dict.fromkeys(self.wanted, 0)
        return again

    def settle(self, now: Nanos) -> None:
        """The program reads, and answers, until nothing more comes of it."""
        if self._busy:
            return
        self._busy = True
        super().settle(now)
        while not self._slow and self._read(now, None):
            super().settle(now)
        self._busy = False
        if self._slow and len(self.program) and not self._reads:
            self._reads = True
            self.out.set_timer(ReadTimer.READ, now + _PACE)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Slow programs read a little."""
        if timer is not ReadTimer.READ:
            super().on_timer(now, timer)
            return
        self._reads = False
        self._read(now, self.plan.many)
        self.settle(now)

    def _read(self, now: Nanos, most: int | None) -> bool:
        events = self.program.take(most)
        for event in events:
            if isinstance(event, Delivered | PrivateDelivered) and event.sender != self.me:
                self._answer(now, event.sender)
        return bool(events)

    def _answer(self, now: Nanos, sender: MemberId) -> None:
        if self._answers <= 0 or self._chance.random() >= 1 / 3 or not self.seats:
            return
        self._answers -= 1
        if self.plan.directs and self._chance.random() < self.plan.directs:
            self.tell(now, sender, 1)
            return
        self.say(now, self._chance.choice(sorted(self.seats)), 1)

    def say(self, now: Nanos, group: str, run: int, item: str | None = None) -> None:
        """Send, if the program is in the group, and may."""
        items = None if item is None else [item] * run
        try:
            self.cast(group, [b"m" * self._chance.choice((1, 20))] * run, items)
        except Refused:
            return  # it is not there, or has no credit
        self.settle(now)

    def tell(self, now: Nanos, to: MemberId, count: int) -> None:
        """Send to one member alone, if the program may."""
        try:
            for _ in range(count):
                self.send_to(to, b"d" * self._chance.choice((1, 20, 3000)))
        except Refused:
            return  # it has no credit
        self.settle(now)

    def pending(self) -> int:
        """What is yet to happen: what is asked for, what is received, and groups that are joined."""
        joining = sum(seat.entered is None for seat in self.seats.values())
        return super().pending() + len(self.line) + len(self.arrivals) + joining


class Act(Deed, frozen=True, tag="isis-act", kw_only=True):
    """A program sends, to a group or to one member, joins a group or leaves one."""

    what: str
    group: str
    run: int = 1
    to: int = 0
    """Who is told something alone."""
    item: str | None = None

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:
        """If its process is there, and lets it."""
        process = stacks[self.member]
        assert isinstance(process, DomainProcess)
        if process.phase() == "left":
            return
        try:
            if self.what == "join":
                process.join(now, self.group)
                process.wanted[self.group] = 0
            elif self.what == "leave":
                process.ask_to_leave(self.group)
                process.wanted.pop(self.group, None)
            elif self.what == "flush":
                process.flush()
            elif self.what == "tell":
                to = stacks[self.to]
                assert isinstance(to, DomainProcess)
                process.tell(now, to.me, self.run)
            else:
                process.say(now, self.group, self.run, self.item)
        except Refused:
            return  # it is there already, or not at all
        process.settle(now)
