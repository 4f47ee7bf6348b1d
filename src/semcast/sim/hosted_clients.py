"""Simulated programs that speak the client protocol with their daemon, over connections that break.

Frames are encoded and decoded as on a socket. What a program hears is written down beside what its daemon
told it, so that checkers can compare the two.
"""

from collections import deque
from collections.abc import Sequence

from semcast.core.ids import MICROSECOND, MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.protocols.clients.caller import Caller, Ended, Heard
from semcast.protocols.clients.guests import Link
from semcast.protocols.clients.host import Host, HostSettings
from semcast.protocols.clients.notes import heard_row
from semcast.protocols.clients.permissions import Identity, Permissions
from semcast.protocols.lightweight import Lightweight, Machine
from semcast.protocols.lightweight.events import Block, GroupView
from semcast.sim.faults import Deed
from semcast.sim.hosted_calls import GROUP, CallBook, CallerPort, ClientCalls

_WHO = Identity(("simulated",), resumes=True)
_WINDOW = 4
"""Events under way to a program: few, so that the queue of a slow one fills."""


_BYE = Ended("bye", "it said bye")


class Program:
    """One program, and its connection."""

    def __init__(self, name: str, *, slow: bool) -> None:
        self.name = name
        self.slow = slow
        self.caller = Caller(name, window=_WINDOW)
        self.link: Link | None = None
        self.arriving: deque[bytes] = deque()
        """Frames that are on their way to it."""
        self.calls: ClientCalls | None = None
        """From its first view of the group where programs call each other."""

    @property
    def over(self) -> bool:
        """Whether its session has ended."""
        return self.caller.ended is not None


class Hosting:
    """The daemon's side, and all programs that are connected to it."""

    def __init__(self, machine: Machine, out: Outbox, host: type[Host], book: CallBook | None) -> None:
        self._secrets = 0
        self._book = book  # where programs write down their calls, if they call at all
        self._machine = machine
        self._out = out
        self.programs: dict[str, Program] = {}
        self.host = host(
            machine,
            HostSettings(grace=40 * MILLISECOND, hello_timeout=MILLISECOND),
            permissions=Permissions(),
            authenticate=lambda _token: _WHO,
            secret=self._secret,
            wall=lambda: machine.now // MICROSECOND + 1,
            about=lambda _what, _about: "",
        )

    def _secret(self) -> str:
        self._secrets += 1
        return f"{self._machine.me} {self._secrets}"

    # What programs do

    def program(self, now: Nanos, name: str, *, slow: bool) -> Program:
        """The program of this name; it connects if it has to."""
        found = self.programs.get(name)
        if found is None or found.over:
            self._end_calls(found)
            found = self.programs[name] = Program(name, slow=slow)
        if found.link is None:
            found.link = Link(now)
            self.host.opened(found.link)
            found.caller.connect()
            self.pump()
        return found

    def break_connection(self, now: Nanos, program: Program) -> None:
        """What was on its way, in both directions, is lost."""
        link, program.link = program.link, None
        program.arriving.clear()
        program.caller.out.clear()
        program.caller.connected = False
        if link is not None:
            link.out.clear()
            self.host.broken(now, link, "it broke")

    # What goes back and forth

    def pump(self) -> bool:
        """Let those who are quick say and hear what there is; returns whether there was anything."""
        stirred = False
        for program in self.programs.values():
            stirred |= self._say(program)
        for _ in self.host.flush():
            stirred = True
        for program in self.programs.values():
            self._carry(program)
            if not program.slow:
                stirred |= self._hear(program, len(program.arriving))
        return stirred

    def read_slowly(self) -> None:
        """Slow programs read a frame each."""
        for program in self.programs.values():
            if program.slow:
                self._hear(program, 1)
                if program.link is not None:
                    program.link.backlog = sum(map(len, program.arriving))
                    self.host.writable(program.link)

    @property
    def waits(self) -> bool:
        """Whether a slow program has something to read."""
        return any(program.slow and program.arriving for program in self.programs.values())

    def _say(self, program: Program) -> bool:
        bodies, program.caller.out = program.caller.out, []
        for body in bodies:
            if program.link is not None:
                self.host.heard(program.link, body)
        return bool(bodies)

    def _carry(self, program: Program) -> None:
        link = program.link
        if link is None:
            return
        program.arriving.extend(link.out)
        link.out = []
        if program.slow:
            link.backlog = sum(map(len, program.arriving))

    def _hear(self, program: Program, most: int) -> bool:
        caller, count = program.caller, min(most, len(program.arriving))
        caller.receive([program.arriving.popleft() for _ in range(count)])
        for heard in caller.take():
            self._note(caller.member, heard)
            if isinstance(heard, Block):
                caller.ready(heard.group, heard.view)
            self._let_call(program, heard)
        caller.say_taken()
        if program.over:
            self._end_calls(program)
        if program.over and program.link is not None:
            self.host.broken(self._machine.now, program.link, "it is over")
            program.link = None
        return count > 0

    # Calls

    def _let_call(self, program: Program, heard: Heard) -> None:
        if program.calls is None and self._book is not None:
            if not isinstance(heard, GroupView) or heard.group != GROUP:
                return
            program.calls = ClientCalls(CallerPort(program.caller), self._machine.me, self._book)
        if program.calls is not None and not program.calls.over:
            program.calls.hear(self._machine.now, heard)

    def _end_calls(self, program: Program | None) -> None:
        if program is not None and program.calls is not None:
            program.calls.end(self._machine.now, "its session is over")

    def tend_calls(self) -> Nanos | None:
        """Programs answer what they have worked out; returns when there is something to do again."""
        dues: list[Nanos] = []
        for program in self.programs.values():
            calls = program.calls
            if calls is None or calls.over:
                continue
            calls.tend(self._machine.now)
            due = calls.next_at()
            if due is not None:
                dues.append(due)
        return min(dues, default=None)

    def _note(self, client: MemberId, heard: Heard) -> None:
        row = heard_row(client, heard)
        if row is not None and self._machine.settings.notes:
            self._out.deliver(row)


class Hosts(Lightweight):
    """A daemon with programs. See `lightweight_clients.Daemon`."""

    hosting: Hosting


class Do(Deed, frozen=True, tag="do", kw_only=True):
    """A program does something: join, leave, cast, call, break, bye."""

    program: str
    what: str
    group: str = "e0"
    run: int = 1
    item: str = ""
    slow: bool = False
    replies: str = "all"
    to: tuple[int, str] | None = None
    """Whom a call is for: a host, and a program there; itself for one of all. None for all."""
    timeout: Nanos = 300 * MILLISECOND

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:
        """If its daemon is there, and it has credit."""
        daemon = stacks[self.member]
        assert isinstance(daemon, Hosts)
        if daemon.inner.phase() == "left":
            return
        hosting = daemon.hosting
        program = hosting.program(now, self.program, slow=self.slow)
        caller = program.caller
        if self.what == "break":
            hosting.break_connection(now, program)
        elif caller.connected and caller.room_for(self.run):
            if self.what == "join":
                caller.join(self.group, vs=self.group.startswith("v"))
            elif self.what == "leave":
                caller.leave(self.group)
            elif self.what == "bye":
                caller.bye()
                hosting.pump()
                program.caller.ended = program.caller.ended or _BYE
            elif self.what == "call":
                self._call(stacks, now, program)
            else:
                caller.cast((self.group,), [b"m"] * self.run, items=[self.item] * self.run)
        daemon.settle(now)

    def _call(self, stacks: Sequence[Stack], now: Nanos, program: Program) -> None:
        if program.calls is None or program.calls.over:
            return
        to: MemberId | None = None
        if self.to is not None:
            daemon = stacks[self.to[0]]
            assert isinstance(daemon, Hosts)
            other = daemon.hosting.programs.get(self.to[1], program)
            to = (program if other.caller.welcome is None else other).caller.member
        program.calls.call(now, self.replies, to, self.timeout)
