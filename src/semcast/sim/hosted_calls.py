"""Calls of simulated programs of a domain: of clients of daemons, and of processes of a causal domain.

The machine of calls is the one of live programs, and its messages are casts as theirs are. What it does is
written down apart from the history of the daemons, as live programs do: each session is a process there.
"""

import heapq
from collections.abc import Collection
from itertools import count
from random import Random
from typing import Protocol

from semcast.core.events import Note, TransitionalView, ViewChange
from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.history import History, Recorder, RunInfo
from semcast.history.schema import TOTAL
from semcast.patterns.calls import ALL, ONE, CallRequest, Calls, Notes, Run, read
from semcast.protocols.clients.caller import Caller, Heard
from semcast.protocols.clients.permissions import CALLS
from semcast.protocols.lightweight.events import Delivered, GroupTransitional, GroupView, LeftGroup
from semcast.protocols.lightweight.ids import place_of, plain_view

GROUP = "e0"
"""Where programs call each other."""
_SLOWEST = 20 * MILLISECOND
"""How long a program works on an answer, at most."""
_SILENT, _FAILS, _IDLE = 0.05, 0.1, 0.1
"""How often a request is never answered, or with an error; how many programs answer none at all."""


class CallBook:
    """What all programs of a run did about calls.

    Args:
        run: its name.
        seed: of the run.
        machine: of calls: its kind, or a mutant.
        group: in which they call each other.
        order: of its messages.
    """

    def __init__(
        self, run: str, seed: int, machine: type[Calls] = Calls, group: str = GROUP, order: str = TOTAL
    ) -> None:
        self.machine = machine
        self.group = group
        info = RunInfo.one(
            run, f"{group} (calls)", "calls", seed, (), None, uniform=False, quiesced=False, order=order
        )
        self._recorder = Recorder(info)
        self._homes: dict[MemberId, MemberId] = {}  # the daemons of those who are there
        self._last: Nanos = 0

    def begin(self, client: MemberId, home: MemberId) -> None:
        """A program is in the group."""
        self._homes[client] = home

    def note(self, now: Nanos, client: MemberId, note: Note) -> None:
        """Another row."""
        self._last = now
        self._recorder.note(now, client, note)

    def left(self, now: Nanos, client: MemberId) -> None:
        """It is out of the group."""
        del self._homes[client]
        self._recorder.left(now, client)

    def close(self, alive: Collection[MemberId]) -> History:
        """Programs end with their daemons; these are there."""
        for client, home in self._homes.items():
            if home not in alive:
                self._recorder.crash(self._last, client)
        return self._recorder.close(quiesced=True)


class Port(Protocol):
    """How a program sends."""

    direct: bool
    """Whether answers go to the caller alone."""

    @property
    def member(self) -> MemberId:
        """Who it is."""

    def open(self) -> bool:
        """Whether it may send one more."""

    def send(self, group: str, payload: bytes, to: MemberId | None = None) -> None:
        """To the group, or to one member there, with the mark."""


class CallerPort:
    """That of a client of a daemon.

    Args:
        caller: its side of the session.
    """

    direct = False

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    @property
    def member(self) -> MemberId:
        """Who it is in this session."""
        return self._caller.member

    def open(self) -> bool:
        """Whether it has credit."""
        caller = self._caller
        return caller.connected and caller.ended is None and caller.room_for(1)

    def send(self, group: str, payload: bytes, to: MemberId | None = None) -> None:
        """To the group, and to the one in which nobody is."""
        assert to is None, "answers are multicast"
        self._caller.cast((group, CALLS), [payload])


class ClientCalls:
    """The calls of one session, from its first view of the group until it leaves it.

    Args:
        port: how it sends.
        home: its daemon.
        book: where it writes down what it does.
    """

    def __init__(self, port: Port, home: MemberId, book: CallBook) -> None:
        self.over = False
        self._me = port.member
        self._port = port
        self._group = book.group
        self._book = book
        self._rng = Random(f"calls of {self._me}")
        self._machine = book.machine(self._me, notes=Notes(self))
        self._machine.serves = self._rng.random() >= _IDLE
        self._machine.direct = port.direct
        self._working: list[tuple[Nanos, int, CallRequest]] = []
        self._works = count()
        self._now: Nanos = 0
        book.begin(self._me, home)

    def deliver(self, note: Note) -> None:
        """A row of the machine."""
        self._book.note(self._now, self._me, note)

    # What the program does

    def call(self, now: Nanos, replies: str, to: MemberId | None, timeout: Nanos) -> None:
        """Ask all, one of them (its own name stands for that), or a member."""
        self._now = now
        whom = ALL if to is None else ONE if to == self._me else to
        self._machine.call(now, b"?", replies if to is None else "first", whom, timeout)  # type: ignore[arg-type]
        self.tend(now)

    def sent(self, now: Nanos, first: int, count: int) -> None:
        """The program multicasts messages of its own."""
        self._now = now
        if not self.over:
            self.deliver(Note("call-sent", self._me, first, count))

    def hear(self, now: Nanos, event: Heard) -> None:
        """The next thing that the program is told."""
        self._now, machine = now, self._machine
        if isinstance(event, Delivered):
            if event.groups == (self._group, CALLS):
                order = (
                    None if event.position is None else place_of(event.position.epoch, event.position.index)
                )
                for place, payload in enumerate(event.payloads):
                    at = None if order is None else order + place
                    machine.on_envelope(now, event.sender, read(payload), at)
            elif self._port.direct and event.groups == (self._group,) and event.items is None:
                self.deliver(Note("call-told", event.sender, event.first, len(event.payloads)))
        elif isinstance(event, GroupView) and event.group == self._group:
            machine.on_delivery(now, ViewChange(plain_view(event.id, event.members)))
        elif isinstance(event, GroupTransitional) and event.group == self._group:
            machine.on_delivery(now, TransitionalView(plain_view(event.id, event.members)))
        elif isinstance(event, LeftGroup) and event.group == self._group:
            self.end(now, "it left")
        if not self.over:
            self.tend(now)

    def tend(self, now: Nanos) -> None:
        """Answer what is ready, give up what has taken too long, and send, as far as there is credit."""
        self._now, machine = now, self._machine
        machine.expire(now)
        self._obey(now)
        while self._working and self._working[0][0] <= now:
            request = heapq.heappop(self._working)[2]
            machine.answer(request.key, b"!", error=self._rng.random() < _FAILS)
        port = self._port
        while (machine.outgoing or machine.letters) and port.open():
            if machine.letters:
                to, payload = machine.letters.popleft()
                port.send(self._group, payload, to)
            else:
                port.send(self._group, machine.outgoing.popleft())

    def _obey(self, now: Nanos) -> None:
        for effect in self._machine.take_effects():
            if isinstance(effect, Run) and self._rng.random() >= _SILENT:
                ready = now + self._rng.randrange(_SLOWEST) * self._rng.randrange(2)
                heapq.heappush(self._working, (ready, next(self._works), effect.request))

    def next_at(self) -> Nanos | None:
        """When there is something to do, though nothing happens."""
        moments = [self._machine.next_at(), self._working[0][0] if self._working else None]
        return min((at for at in moments if at is not None), default=None)

    def end(self, now: Nanos, cause: str) -> None:
        """The program is in the group no more."""
        if not self.over:
            self._now, self.over = now, True
            self._machine.end(cause)
            self._book.left(now, self._me)
