"""Stacks of one group in one process: frames are carried between them in order and at once.

Nothing is lost, and only timers make time pass.
"""

from collections import deque
from collections.abc import Callable

from semcast.core import Batch, Frame, MemberId, Nanos, Timer
from semcast.core.stack import Stack

MEMBERS = 3


class Bench:
    """The members, and what is on its way to each.

    Args:
        make: a stack for a member, given its number.
    """

    def __init__(self, make: Callable[[MemberId, int], Stack]) -> None:
        self.now: Nanos = 0
        self.members = [MemberId(f"p{number}") for number in range(MEMBERS)]
        self.stacks = {member: make(member, number) for number, member in enumerate(self.members)}
        self.delivered = dict.fromkeys(self.members, 0)
        self._inbox: dict[MemberId, deque[tuple[MemberId, Frame]]] = {m: deque() for m in self.members}
        self._timers: dict[tuple[MemberId, Timer], Nanos] = {}

    def form(self) -> None:
        """Start all, and wait until each sees all."""
        for member, stack in self.stacks.items():
            stack.start(self.now)
            self.drain(member)
        while any(len(stack.view().members) < MEMBERS for stack in self.stacks.values()):
            self.turn()

    def turn(self) -> None:
        """Let every member handle what has come; if nothing has, let the next timer fire."""
        busy = False
        for member in self.members:
            inbox, stack = self._inbox[member], self.stacks[member]
            if inbox:
                busy = True
                self._inbox[member] = deque()
                for source, frame in inbox:
                    stack.on_frame(self.now, source, frame)
                self.drain(member)
            busy = self._due(member) or busy
        if not busy:
            (member, timer), at = min(self._timers.items(), key=lambda due: (due[1], due[0][0]))
            self.now = max(self.now, at)
            self._fire(member, timer)

    def drain(self, member: MemberId) -> None:
        """Take what is delivered, and carry what is sent."""
        stack = self.stacks[member]
        out = stack.out
        if stack.deliverable():
            batches = stack.deliver(self.now, 1 << 30)
            self.delivered[member] += sum([len(b.payloads) for b in batches if type(b) is Batch])
        for timer, at in out.timers:
            if at is None:
                self._timers.pop((member, timer), None)
            else:
                self._timers[member, timer] = at
        out.timers.clear()
        out.events.clear()
        for dest, frame in out.sends:
            for other in (dest,) if isinstance(dest, MemberId) else self.members:
                if other is not member:
                    self._inbox[other].append((member, frame))
        out.sends.clear()

    def _due(self, member: MemberId) -> bool:
        """What a member asked for at the end of this burst."""
        due = [timer for (whose, timer), at in self._timers.items() if whose is member and at <= self.now]
        for timer in due:
            self._fire(member, timer)
        return bool(due)

    def _fire(self, member: MemberId, timer: Timer) -> None:
        del self._timers[member, timer]
        self.stacks[member].on_timer(self.now, timer)
        self.drain(member)
