"""A lab: a group in memory, whose frames wait on a wire until a test carries, drops or lets them flow."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from semcast.core.handover import Handover
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Dest, Frame, Reach, Timer
from semcast.core.stack import Stack
from semcast.lab.application import Application, Keeper
from semcast.lab.disk import Disk
from semcast.lab.seat import Seat, Storage
from semcast.wire import Codec, Datagram

Carries = Callable[[str, str, Frame], bool]
"""Whether a frame arrives: from one name, at another."""


class Letter(NamedTuple):
    """What travels together: one frame, or with bursts all that was sent to a member in a row."""

    source: MemberId
    dest: str
    frames: Sequence[Frame]
    at: Nanos
    """When it arrives, if it does."""


class Lab:
    """Members by name, on one wire that keeps the order, in virtual time.

    Args:
        latency: of every frame.
        codec: frames go through it, if one is given.
        bursts: a member is given all that arrives at one moment in one turn, not each frame in its own.

    >>> from random import Random
    >>> from semcast.core import Batch, Outbox
    >>> from semcast.protocols.semantic import SemanticMulticast, Settings
    >>> lab, members = Lab(), [MemberId("p"), MemberId("q")]
    >>> p, q = (lab.add(m, SemanticMulticast(m, members, Settings(), Random(0), Outbox())) for m in members)
    >>> lab.start()
    >>> p.multicast(b"lost"), lab.drop()
    (1, None)
    >>> p.multicast(b"found")
    1
    >>> [(letter.dest, letter.frames[0].first) for letter in lab.wire]
    [('q', 2)]
    >>> lab.run(1_000_000_000)                # q learns that something is missing, and asks for it
    >>> [each.payloads for each in q.application.taken if isinstance(each, Batch)]
    [[b'lost'], [b'found']]
    """

    def __init__(self, *, latency: Nanos = 0, codec: Codec | None = None, bursts: bool = False) -> None:
        self.now: Nanos = 0
        self.seats: dict[str, Seat] = {}
        self.wire: deque[Letter] = deque()
        self.carries: Carries = _always
        """Asked when a frame arrives."""
        self._latency = latency
        self._codec = codec
        self._bursts = bursts
        self._others: dict[str, list[str]] = {}

    def add(
        self,
        member: MemberId,
        stack: Stack,
        application: Application | None = None,
        handover: Handover | None = None,
        kind: type[Seat] = Seat,
        disk: Disk | None = None,
    ) -> Seat:
        """Another member, in the place of who had its name before; it has yet to be started.

        With a disk it recovers what that kept. Crash who had the disk before first.
        """
        seat = kind(self, member, stack, Keeper() if application is None else application, handover, disk)
        self.seats[member.name] = seat
        self._others = {name: [other for other in self.seats if other != name] for name in self.seats}
        return seat

    def start(self) -> None:
        """Start all."""
        for seat in self.seats.values():
            seat.start()

    # Frames

    def post(self, source: MemberId, sends: Sequence[tuple[Dest, Frame]]) -> None:
        """Put frames on the wire."""
        at = self.now + self._latency
        for dest, frames in self._runs(sends):
            data = None if self._codec is None else self._codec.encode(source, frames)
            for name in self._names(source, dest):
                arriving = frames if data is None else self._decoded(data)
                self.wire.append(Letter(source, name, arriving, at))

    def _names(self, source: MemberId, dest: Dest) -> list[str]:
        if isinstance(dest, MemberId):
            return [dest.name]
        return [member.name for member in dest] if isinstance(dest, tuple) else self._others[source.name]

    def step(self) -> None:
        """Carry the next letter; with bursts, all that arrive at the same moment."""
        self.now = max(self.now, self.wire[0].at)
        letters = [self.wire.popleft()]
        while self._bursts and self.wire and self.wire[0].at <= self.now:
            letters.append(self.wire.popleft())
        self._bring(letters)
        if self._bursts:
            self._fire_all()

    def carry(self) -> None:
        """Carry what is on the wire; answers stay there."""
        letters, self.wire = self.wire, deque()
        if letters:
            self.now = max(self.now, letters[-1].at)
        for some in [letters] if self._bursts else [[letter] for letter in letters]:
            self._bring(some)

    def flow(self) -> None:
        """Carry frames until there are none."""
        while self.wire:
            self.step()

    def drop(self) -> None:
        """Lose what is on the wire."""
        self.wire.clear()

    # Time

    def run(self, duration: Nanos) -> None:
        """Let time pass."""
        end = self.now + duration
        for seat in self.seats.values():
            if seat.wants():
                seat.run()
        while self.advance(end):
            pass
        self.now = end

    def advance(self, end: Nanos) -> bool:
        """Do what happens next, if that is not after `end`: a frame arrives, or else a timer goes off."""
        first = self.wire[0].at if self.wire else None
        if first is not None and first <= self.now:
            self.step()
            return True
        timer = self._next_timer()
        if first is not None and first <= end and (timer is None or first <= timer[0]):
            self.step()
            return True
        if timer is None or timer[0] > end:
            return False
        at, seat, name = timer
        self.now = max(self.now, at)
        if self._bursts:
            self._fire_all()
        else:
            seat.fire(name)
        return True

    def _next_timer(self) -> tuple[Nanos, Seat, Timer] | None:
        found: tuple[Nanos, Seat, Timer] | None = None
        for seat in self.seats.values():
            if seat.alive:
                for timer, at in seat.timers.items():
                    if found is None or at < found[0]:
                        found = at, seat, timer
        return found

    def _fire_all(self) -> None:
        """All timers that are due: those of one member in one turn."""
        for seat in self.seats.values():
            due = seat.due(self.now)
            if Storage.SYNCED in due:
                due.remove(Storage.SYNCED)
                seat.finish_sync()
            if due:
                seat.run(timers=due)

    # Inside

    def _bring(self, letters: Iterable[Letter]) -> None:
        arrivals: dict[str, list[tuple[MemberId, Sequence[Frame]]]] = {name: [] for name in self.seats}
        for source, dest, sent, _ in letters:
            frames = sent
            if self.carries is not _always:
                frames = [frame for frame in sent if self.carries(source.name, dest, frame)]
            mine = arrivals.get(dest)
            if mine is None or not frames:
                continue
            if mine and mine[-1][0] is source:
                mine[-1] = source, [*mine[-1][1], *frames]
            else:
                mine.append((source, frames))
        for name, mine in arrivals.items():
            if mine:
                self.seats[name].run(mine)

    def _runs(self, sends: Sequence[tuple[Dest, Frame]]) -> list[tuple[Dest, list[Frame]]]:
        """What travels together."""
        if not self._bursts:
            return [(dest, [frame]) for dest, frame in sends]
        return [(dest, [frame for _, frame in run]) for dest, run in groupby(sends, key=_place)]

    def _decoded(self, datagrams: Iterable[bytes]) -> list[Frame]:
        assert self._codec is not None
        found: list[Frame] = []
        for data in datagrams:
            decoded = self._codec.decode(data)
            assert isinstance(decoded, Datagram), f"{decoded}"
            found += decoded.frames
        return found


def _place(send: tuple[Dest, Frame]) -> Dest:
    """Whom a frame is for; None for all others: in a lab there are no strangers."""
    return None if isinstance(send[0], Reach) else send[0]


def _always(_source: str, _dest: str, _frame: Frame) -> bool:
    return True
