"""What the application of a server is given: green actions, and configurations and states between them.

It is handed on from one incarnation of a server to the next, since the application is the same.
"""

from collections import deque

from semcast.core.events import Delivery, StateReceived, StateRequested, ViewChange
from semcast.core.ids import MAX_NUMBER
from semcast.core.messages import Batch
from semcast.replication.actions import CHANGE, Run, body_of
from semcast.replication.books import Books
from semcast.replication.machine import Machine
from semcast.replication.snapshots import KeptState

_RUNS = 64
"""Runs that are made ready for the application at a time."""


class Handing:
    """To one application."""

    def __init__(self) -> None:
        self.whole = False
        """Whether actions are handed over with who asked for them, and not only their bodies."""
        self.given = 0
        """Green actions that the application was given, or is about to be."""
        self.awaits_state = False
        """A snapshot is on its way to the disk: the application goes on from there."""
        self._asked: tuple[int, int] | None = None  # the number of a question for the state, and its position
        self._questions = 0
        self._rest: deque[Delivery] = deque()
        self._views: deque[tuple[int, ViewChange]] = deque()  # each with the green line before it

    # What comes between actions

    def tell(self, change: ViewChange, line: int) -> None:
        """Of a configuration, after the actions up to a line."""
        self._views.append((line, change))

    def begin(self, books: Books) -> None:
        """The log was read: the service has what is not in it on its own, or goes on from a state in it."""
        self.given = books.colours.start
        self.hand_over_state(books)

    def hand_over_state(self, books: Books) -> None:
        """The application goes on from the state in the log."""
        kept, self.awaits_state = books.state, False
        if kept is not None:
            self._rest.append(StateReceived(books.prim.index, kept.state))
            self.given = kept.position

    def want_state(self) -> None:
        """Ask the application, at the point of the order that it is given next."""
        if self._asked is None and not self.awaits_state:
            self._questions += 1
            self._asked = self._questions, self.given
            self._rest.append(StateRequested(self._questions))

    def answered(self, question: int, state: bytes) -> KeptState | None:
        """What the application was then; None if that is not what was asked last."""
        if self._asked is None or self._asked[0] != question:
            return None
        kept, self._asked = KeptState(self._asked[1], state), None
        return kept

    # Actions

    def deliver(self, machine: Machine, most: int) -> tuple[list[Delivery], int]:
        """What comes next, with so many actions at most; and how many there are in it."""
        taken: list[Delivery] = []
        left = most
        while left > 0:
            if not self._rest:
                if not self._refill(machine):
                    break
                continue
            each = self._rest.popleft()
            if isinstance(each, Batch):
                count = len(each.payloads)
                if count > left:
                    self._rest.appendleft(each.cut(each.first + left, each.last))
                    each, count = each.cut(each.first, each.first + left - 1), left
                left -= count
            taken.append(each)
        return taken, most - left

    def ready(self, machine: Machine) -> bool:
        """Whether there is anything to deliver."""
        if self._rest:
            return True
        if self.awaits_state:
            return False
        return bool(self._views and self._views[0][0] <= self.given) or machine.limit > self.given

    def _refill(self, machine: Machine) -> bool:
        """The next run, or the next configuration; returns whether there is anything."""
        if self.awaits_state:
            return False
        if self._views and self._views[0][0] <= self.given:
            self._rest.append(self._views.popleft()[1])
            return True
        upto = min(machine.limit, self._views[0][0] if self._views else MAX_NUMBER)
        some = machine.books.colours.between(self.given, upto, _RUNS)
        for position, run in some:
            self._rest += self._behind(self._batches(run, position, machine.books.void))
            self.given = position + len(run.actions) - 1
        return bool(some)

    def _behind(self, batches: list[Batch]) -> list[Batch]:
        """Without what is in the state that the application was given."""
        given = self.given
        if batches and batches[0].order is not None and batches[0].order <= given:
            ends = [(each, (each.order or 0) + len(each.payloads) - 1) for each in batches]
            return [
                each.cut(each.first + max(0, given - (each.order or 0) + 1), each.last)
                for each, end in ends
                if end > given
            ]
        return batches

    def _batches(self, run: Run, position: int, void: set[int]) -> list[Batch]:
        """What of a run is for the service: not what changes the group, nor what was done before."""
        if self.whole:
            return [_as_they_are(run, position, void)]
        bodies = [
            None if place in void else body_of(action) for place, action in enumerate(run.actions, position)
        ]
        found: list[Batch] = []
        start = 0
        for stop in range(len(bodies) + 1):
            if stop == len(bodies) or bodies[stop] is None:
                some = [body for body in bodies[start:stop] if body is not None]
                if some:
                    size = sum(map(len, some))
                    first, order = run.first + start, position + start
                    found.append(Batch(run.creator.member, first, some, None, size, order=order))
                start = stop + 1
        return found


def _as_they_are(run: Run, position: int, void: set[int]) -> Batch:
    """A run with all its positions; what is not for the service is empty there."""
    actions = run.actions
    if not run.plain:
        actions = [
            b"" if action[0] == CHANGE or (void and place in void) else action
            for place, action in enumerate(run.actions, position)
        ]
    size = sum(map(len, actions))
    return Batch(run.creator.member, run.first, actions, None, size, order=position)
