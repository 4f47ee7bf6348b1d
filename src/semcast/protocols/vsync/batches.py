"""The total order of consensus over batches (Pereira 2002, 4.6, after Chandra and Toueg).

Each member proposes what it has queued, as prefixes; what is decided comes next, sender by sender. A value is
adopted only by who has queued what it names, so what is decided survives whichever minority crashes: this
order is always uniform.

When the view ends, everybody reports the decisions it knows and what it adopted in the next instance. If
anybody decided that one, a majority adopted it, so among the reports of a majority the value adopted last is
the decided one: it is lined up first, and then the rest.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from semcast.core.ids import Nanos
from semcast.core.outbox import Frame
from semcast.protocols.semantic.frames import Seq
from semcast.protocols.vsync.consensus import Consensus
from semcast.protocols.vsync.consensus_frames import ConsensusFrame, Decision, Estimate, Instance
from semcast.protocols.vsync.orders import Lines
from semcast.protocols.vsync.total import TotalOrder
from semcast.wire.limits import MAX_MEMBERS

_AHEAD = 1024
"""How many decisions a member may be behind before the others wait for it."""

_AT_ONCE = 64
"""Decisions that one who is behind is told at a time."""

_Vector = Annotated[list[Seq], msgspec.Meta(max_length=MAX_MEMBERS)]


class InstanceStanding(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many decisions a member knows, and what it adopted in the next instance and when."""

    settled: Seq
    ts: Seq = 0
    value: _Vector | None = None


_encode = msgspec.msgpack.Encoder().encode
_read_vector = msgspec.msgpack.Decoder(_Vector).decode
_read_standing = msgspec.msgpack.Decoder(InstanceStanding).decode


class BatchOrder(TotalOrder):
    """One consensus after the other, as long as there is something to order."""

    def __init__(self, lines: Lines, view: int, position: int) -> None:
        super().__init__(lines, view, position)
        self._running: Consensus | None = None
        self._decisions: dict[int, bytes] = {}
        self._known = [0] * len(lines.members)
        self._asked = 0  # decisions up to here are wanted to end the view
        self._expected = 0  # and up to here they were asked for
        self._reported = 0
        self._planned = False
        self._awaited: tuple[int, int] | None = None  # instance and round that ran at the last `resend`

    @property
    def busy(self) -> bool:
        """Whether an instance is running."""
        return self._running is not None

    def settle(self, now: Nanos) -> None:
        """Line up; what is new goes into the next instance once the burst is over."""
        if self._running is not None and not self.lines.frozen:
            self._propose(now, self._running)
            self._running.recheck(now)
            self._follow(now)
        if not self._planned and self._may_start():
            self._planned = True
            self.lines.wake_at(now)
        self.line_up()

    def tick(self, now: Nanos) -> None:
        """Begin an instance, if there is something to order and nobody is too far behind."""
        self._planned = False
        if self._may_start():
            self._start(now)

    def _may_start(self) -> bool:
        if self._running is not None or self.lines.frozen:
            return False
        return self.unassigned() and self.settled - min(self._known) < _AHEAD

    def may_follow(self, rank: int, upto: int, by_rank: int, by: int) -> bool:  # noqa: ARG002
        """What was decided may be lined up as soon as it is here."""
        return self.lines.queued[rank] >= upto

    def heard(self, rank: int, settled: int) -> None:
        """Forget the decisions that everybody knows."""
        if self.lines.frozen:
            return  # what is known by now has still to be lined up
        self._known[rank] = max(self._known[rank], settled)
        self._known[self.lines.rank] = self.settled
        least = min(self._known)
        for number in [number for number in self._decisions if number <= least]:
            del self._decisions[number]

    def resend(self, now: Nanos) -> None:
        """Repeat what the running instance waits for, or ask for decisions.

        Not what began since this was called last: its answers are still under way.
        """
        running = self._running
        if self.lines.frozen:
            self._ask()
        elif running is not None:
            awaited, self._awaited = self._awaited, (running.instance.number, running.round)
            if awaited == self._awaited:
                running.resend(now)
                self._drain(running)

    def on_frame(self, now: Nanos, rank: int, frame: Frame) -> None:
        """Consensus goes on, or somebody is behind."""
        assert isinstance(frame, ConsensusFrame)
        number = frame.instance.number
        if number in self._decisions:
            if not isinstance(frame, Decision):
                self._tell(rank, number)
        elif number == self.settled + 1:
            if isinstance(frame, Decision):
                self._decide(now, frame.value)
            elif self.takes_part():
                if self._running is None:
                    self._start(now)
                if self._running is not None:
                    self._running.on_frame(now, rank, frame)
                    self._follow(now)
                elif number in self._decisions:  # this member is a quorum by itself
                    self._tell(rank, number)
        self.line_up()

    def takes_part(self) -> bool:
        """Whether a value may still be adopted here: not after this member has reported what it adopted."""
        return not self.lines.frozen

    def _tell(self, rank: int, number: int) -> None:
        """A member is behind: tell it that decision, and those that came after it."""
        for known in range(number, min(self.settled, number + _AT_ONCE - 1) + 1):
            self.lines.send(rank, Decision(Instance(self.view, known), self._decisions[known]))

    # Instances

    def _start(self, now: Nanos) -> None:
        lines = self.lines
        instance = Instance(self.view, self.settled + 1)
        self._running = Consensus(instance, lines.rank, len(lines.members), self._holds, lines.suspects)
        self._running.join(now)
        self._propose(now, self._running)
        self._follow(now)

    def _propose(self, now: Nanos, running: Consensus) -> None:
        """Only what is new: who cannot take in what others have would have it decided to order nothing."""
        if not running.spoke and self.unassigned():
            running.propose(now, _encode(list(self.lines.queued)))

    def _holds(self, value: bytes) -> bool:
        vector = self._vector(value)
        return vector is not None and all(map(int.__ge__, self.lines.queued, vector))

    def _vector(self, value: bytes) -> list[int] | None:
        try:
            vector = _read_vector(value)
        except msgspec.MsgspecError:
            return None
        lines = self.lines
        if len(vector) != len(lines.members):
            return None
        possible = all(
            last <= queued + lines.reach for last, queued in zip(vector, lines.queued, strict=True)
        )
        return vector if possible else None

    def _follow(self, now: Nanos) -> None:
        """Send what the running instance says, and act on its decision."""
        running = self._running
        if running is not None:
            self._drain(running)
            if running.decided is not None:
                self._decide(now, running.decided)

    def _drain(self, running: Consensus) -> None:
        sends, running.out = running.out, []
        for rank, frame in sends:
            self.lines.send(rank, frame)

    def _decide(self, now: Nanos, value: bytes) -> None:
        vector = self._vector(value)
        if vector is None:
            return
        self.settled += 1
        self._running = None
        self._decisions[self.settled] = value
        if len(self._known) == 1:
            self.heard(self.lines.rank, self.settled)  # nobody else will
        if not self.lines.frozen:
            self._assign(vector, self.settled)
            self.settle(now)
        elif self.settled >= self._expected:
            self._ask()

    def _assign(self, vector: Sequence[int], number: int) -> None:
        """Line up sender by sender; another one is first each time."""
        size = len(vector)
        for rank in (*range(number % size, size), *range(number % size)):
            self.assign(rank, vector[rank], (rank, vector[rank]))

    # The end of the view

    def report(self) -> bytes:
        """The decisions known here, and what was adopted last."""
        self._reported = self.settled
        ts, value = (0, None) if self._running is None else self._running.adopted
        return _encode(InstanceStanding(self.settled, ts, self._vector(value) if ts and value else None))

    def merge(self, reports: Sequence[bytes]) -> bytes | None:
        """The most decisions anybody knows, and what was adopted last after them."""
        try:
            standings = [_read_standing(report) for report in reports]
        except msgspec.MsgspecError:
            return None
        size = len(self.lines.members)
        if any(standing.value is not None and len(standing.value) != size for standing in standings):
            return None
        settled = max(standing.settled for standing in standings)
        last = self.last_adopted([standing for standing in standings if standing.settled == settled])
        return _encode(InstanceStanding(settled, last.ts, last.value))

    def last_adopted(self, standings: Sequence[InstanceStanding]) -> InstanceStanding:
        """Which of these members adopted its value last: if one was decided, it is this."""
        return max(standings, key=lambda standing: standing.ts)

    def has(self, report: bytes) -> bool:
        """Whether those decisions are known here, too."""
        try:
            standing = _read_standing(report)
        except msgspec.MsgspecError:
            return False
        if self.settled < standing.settled:
            self._asked = max(self._asked, standing.settled)
            return False
        return True

    def finish(self, report: bytes) -> None:
        """Line up what was decided, what may have been, and the rest."""
        standing = _read_standing(report)
        for number in range(self._reported + 1, standing.settled + 1):
            vector = self._vector(self._decisions[number])
            assert vector is not None
            self._assign(vector, number)
        if standing.value is not None:
            self._assign(standing.value, standing.settled + 1)
        self.finish_turns()

    def _ask(self) -> None:
        """Whoever knows the next decisions, say them."""
        if self.settled < self._asked:
            self._expected = self.settled + _AT_ONCE
            instance = Instance(self.view, self.settled + 1)
            self.lines.send(None, Estimate(instance, 1, 0, None))
