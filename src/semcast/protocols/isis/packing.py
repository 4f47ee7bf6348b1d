"""Frames for the same members leave side by side, so that they share datagrams.

A program that changes the group from message to message would else send each in a datagram of its own: what
goes to other members comes between. Nobody receives anything in another order than without this. Where
groups have members in common, little would be put together that way: then each member gets its frames by
themselves, encoded for it alone.
"""

from itertools import chain, islice

from semcast.core.ids import MemberId
from semcast.core.outbox import Dest, Frame, Outbox

Send = tuple[Dest, Frame]
_MANY = 8
"""With more runs of frames, and more than twice as many as there are members, each member gets its own."""
_BACK = 16
"""So many runs are looked at for one that a frame may join."""


class Run:
    """Frames for the same members, one behind the other.

    Args:
        dest: whom they are for.
        sends: the frames.
    """

    def __init__(self, dest: Dest, sends: list[Send]) -> None:
        self.dest = dest
        self.sends = sends
        self.members: frozenset[MemberId] | None = None
        """Nothing goes past what is for everybody."""
        if isinstance(dest, MemberId | tuple):
            self.members = frozenset(dest if isinstance(dest, tuple) else (dest,))


class Packing:
    """Of one process.

    Args:
        out: what it wants from the world.
    """

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._sends: list[Send] | None = None  # as they were left the last time
        self._count = 0
        self._runs: list[Run] = []
        self._moved = self._apart = False

    def tidy(self) -> None:
        """Put what is to be sent where it shares a datagram with others."""
        sends = self._out.sends
        if sends is not self._sends:
            self._sends, self._count, self._runs, self._apart = sends, 0, [], False
        if len(sends) == self._count:
            return
        self._moved = False
        for send in sends[self._count :]:
            self._put(send)
        if self._moved:
            sends[:] = chain.from_iterable(run.sends for run in self._runs)
        self._count = len(sends)

    def _put(self, send: Send) -> None:
        dest, runs = send[0], self._runs
        if runs and dest == runs[-1].dest:
            runs[-1].sends.append(send)
            return
        if self._apart and isinstance(dest, tuple):
            self._moved = True
            for member in dest:
                self._join(Run(member, [(member, send[1])]))
            return
        self._join(Run(dest, [send]))
        if len(runs) > _MANY and isinstance(dest, tuple):
            self._part()

    def _join(self, new: Run) -> None:
        """The latest run for the same members, if none of them is sent something else behind it."""
        for run in islice(reversed(self._runs), _BACK):
            if run.members is None or new.members is None:
                break
            if run.dest == new.dest:
                run.sends += new.sends
                self._moved = True
                return
            if not run.members.isdisjoint(new.members):
                break
        self._runs.append(new)

    def _part(self) -> None:
        """Each member gets its own, if that makes fewer runs."""
        named = [run.members for run in self._runs if run.members is not None]
        if len(named) <= 2 * len(frozenset().union(*named)):
            return
        whole, self._runs = self._runs, []
        self._apart = self._moved = True
        for run in whole:
            if not isinstance(run.dest, tuple):
                self._join(run)
                continue
            for member in run.dest:
                self._join(Run(member, [(member, frame) for _, frame in run.sends]))
