"""Simulated processes of a causal domain, with programs that have a will of their own.

A program reads what it is given, at once or slowly, and now and then answers a message in another of its
groups: so that causes and effects run through several groups.
"""

from collections.abc import Sequence
from contextlib import suppress
from random import Random

import msgspec

from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Outbox, Timer
from semcast.core.stack import Stack
from semcast.protocols.clients.permissions import is_call
from semcast.protocols.isis import Isis, IsisSettings
from semcast.protocols.lightweight.events import ClientEvent, Delivered, GroupView, PrivateDelivered
from semcast.protocols.lightweight.sessions import Refused
from semcast.sim.faults import Deed
from semcast.sim.hosted_calls import CallBook, ClientCalls

_PACE: Nanos = 11 * MILLISECOND
"""How often slow programs read."""


class IsisPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The domain of one run."""

    settings: IsisSettings
    groups: tuple[tuple[str, tuple[int, ...]], ...]
    """Groups, and the numbers of the processes that found them."""
    styles: tuple[tuple[str, str], ...] = ()
    """Groups that have clients: their styles."""
    clients: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Of such groups, the numbers of the processes that begin as clients."""
    slow: tuple[int, ...] = ()
    """Whose programs read one thing at a time."""
    answers: int = 20
    """So many messages at most a program answers, each with a chance of one in three."""
    directs: float = 0.0
    """The chance that an answer goes to the one who said it alone."""
    ordered: float = 0.0
    """The chance that messages have a place in the one order of the domain."""
    calls: str = ""
    """The group in which programs call each other, if they do."""
    many: int = 2
    """Things that a slow program reads at a time."""


class ProgramTimer(Timer):
    """When slow programs read, and when there is something to do about calls."""

    READ = "read"
    CALLS = "calls"


class ProcessPort:
    """How a program sends what belongs to its calls.

    Args:
        process: of the program.
    """

    direct = True

    def __init__(self, process: "DomainProcess") -> None:
        self._process = process

    @property
    def member(self) -> MemberId:
        """Who it is."""
        return self._process.me

    def open(self) -> bool:
        """Whether it has credit."""
        program = self._process.program
        return not program.closed and program.credit > 0

    def send(self, group: str, payload: bytes, to: MemberId | None = None) -> None:
        """To the group, or to who called, if it is still there."""
        with suppress(Refused):
            if to is None:
                self._process.cast(group, [payload], marked=True)
            else:
                self._process.send_to(to, payload, group, marked=True)


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
        self.book: CallBook | None = None
        """Where all programs of the run write down their calls, if they call."""
        self._calls: ClientCalls | None = None
        self._calls_at: Nanos | None = None
        self._styles = dict(plan.styles)
        self.visited: set[str] = set()
        """Groups that the program wants to be a client of."""
        for name, founders in plan.groups:
            if number in founders:
                self.wanted[name] = len(founders) // 2 + 1
        self.visited.update(name for name, clients in plan.clients if number in clients)

    def start(self, now: Nanos) -> None:
        """Be in the groups that the program wants to be in."""
        super().start(now)
        for name, minimum in self.wanted.items():
            self.enter(now, name, minimum)
        for name in sorted(self.visited):
            self.enter(now, name, client=True)
        self.settle(now)

    def enter(self, now: Nanos, group: str, minimum: int = 0, *, client: bool = False) -> None:
        """Join a group of whatever style."""
        style = self._styles.get(group)
        if style is None:
            self.join(now, group, minimum)
        else:
            self.join(now, group, minimum, style, "client" if client else "server")

    def successor(self, member: MemberId, rng: Random, out: Outbox) -> Stack | None:
        """Another incarnation wants the same, of groups that are there."""
        again = type(self)(member, self.plan, self.number, rng, out)
        again.wanted = dict.fromkeys(self.wanted, 0)
        again.visited = set(self.visited)
        again.book = self.book
        return again

    def settle(self, now: Nanos) -> None:
        """The program reads, and answers, until nothing more comes of it."""
        if self._busy:
            return
        self._busy = True
        super().settle(now)
        while (not self._slow and self._read(now, None)) or self._tend_calls(now):
            super().settle(now)
        self._busy = False
        self._set_calls_timer()
        if self._slow and len(self.program) and not self._reads:
            self._reads = True
            self.out.set_timer(ProgramTimer.READ, now + _PACE)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Slow programs read a little, and programs do what is due about calls."""
        if timer is ProgramTimer.CALLS:
            self._calls_at = None
            self.settle(now)
            return
        if timer is not ProgramTimer.READ:
            super().on_timer(now, timer)
            return
        self._reads = False
        self._read(now, self.plan.many)
        self.settle(now)

    def _read(self, now: Nanos, most: int | None) -> bool:
        events = self.program.take(most)
        for event in events:
            self._hear_calls(now, event)
            if isinstance(event, Delivered) and is_call(event.groups):
                continue
            if isinstance(event, Delivered | PrivateDelivered) and event.sender != self.me:
                self._answer(now, event.sender)
        return bool(events)

    # Calls

    def _hear_calls(self, now: Nanos, event: ClientEvent) -> None:
        if self.book is None:
            return
        if self._calls is None and isinstance(event, GroupView) and event.group == self.book.group:
            self._calls = ClientCalls(ProcessPort(self), self.me, self.book)
        if self._calls is not None and not self._calls.over:
            self._calls.hear(now, event)

    def _tend_calls(self, now: Nanos) -> bool:
        """Whether something was sent."""
        calls, before = self._calls, self.program.last
        if calls is None or calls.over:
            return False
        if self.phase() == "left":
            calls.end(now, "it is out of the domain")
        else:
            calls.tend(now)
        return self.program.last > before

    def _set_calls_timer(self) -> None:
        due = None if self._calls is None or self._calls.over else self._calls.next_at()
        if due is not None and due != self._calls_at:
            self._calls_at = due
            self.out.set_timer(ProgramTimer.CALLS, due)

    def call(self, now: Nanos, replies: str, to: MemberId | None, timeout: Nanos) -> None:
        """Ask all, one of them (its own name stands for that), or a member, if it is in the group."""
        if self._calls is not None and not self._calls.over:
            self._calls.call(now, replies, to, timeout)
            self.settle(now)

    # Messages

    def _answer(self, now: Nanos, sender: MemberId) -> None:
        visits = self.clientele.visits
        if self._answers <= 0 or self._chance.random() >= 1 / 3 or not (self.seats or visits):
            return
        self._answers -= 1
        if self.plan.directs and self._chance.random() < self.plan.directs:
            self.tell(now, sender, 1)
            return
        self.say(now, self._chance.choice(sorted([*self.seats, *visits])), 1)

    def say(self, now: Nanos, group: str, run: int, item: str | None = None) -> None:
        """Send, if the program is in the group, and may."""
        items = None if item is None else [item] * run
        try:
            payload = b"m" * self._chance.choice((1, 20))
            ordered = items is None and self.plan.ordered > 0 and self._chance.random() < self.plan.ordered
            if group in self._styles:
                first = self._cast_styled(group, [payload] * run, items)
            else:
                first = self.cast(group, [payload] * run, items, ordered=ordered)
        except Refused:
            return  # it is not there, or has no credit
        if self.book is not None and group == self.book.group and items is None and self._calls is not None:
            self._calls.sent(now, first, run)
        self.settle(now)

    def _cast_styled(self, group: str, payloads: list[bytes], items: list[str] | None) -> int:
        """Where there are clients, a server sends to one of them now and then."""
        seat = self.seats.get(group)
        serving = None if seat is None else seat.serving
        if serving is None:
            return self.cast(group, payloads)
        clients = sorted(serving.roster.listed) if self._styles[group] == "client-server" else []
        if clients and self._chance.random() < 0.7:
            return self.cast(group, payloads, to=self._chance.choice(clients))
        return self.cast(group, payloads, items)

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
        joining += sum(visit.entered is None for visit in self.clientele.visits.values())
        return (
            super().pending()
            + len(self.line)
            + len(self.arrivals)
            + len(self.totals)
            + joining
            + self.clientele.pending()
        )


class Act(Deed, frozen=True, tag="isis-act", kw_only=True):
    """A program sends, to a group or to one member, joins a group or leaves one."""

    what: str
    group: str
    run: int = 1
    to: int = 0
    """Who is told something alone, or called; -1 for all."""
    replies: str = "all"
    timeout: Nanos = 500 * MILLISECOND
    item: str | None = None

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:
        """If its process is there, and lets it."""
        process = stacks[self.member]
        assert isinstance(process, DomainProcess)
        if process.phase() == "left":
            return
        try:
            if self.what == "join":
                process.enter(now, self.group)
                process.wanted[self.group] = 0
            elif self.what == "visit":
                process.enter(now, self.group, client=True)
                process.visited.add(self.group)
            elif self.what == "leave":
                process.ask_to_leave(self.group)
                process.wanted.pop(self.group, None)
                process.visited.discard(self.group)
            elif self.what == "flush":
                process.flush()
            elif self.what == "tell":
                to = stacks[self.to]
                assert isinstance(to, DomainProcess)
                process.tell(now, to.me, self.run)
            elif self.what == "call":
                whom = None if self.to < 0 else stacks[self.to].me  # type: ignore[attr-defined]
                process.call(now, self.replies, whom, self.timeout)
            else:
                process.say(now, self.group, self.run, self.item)
        except Refused:
            return  # it is there already, or not at all
        process.settle(now)
