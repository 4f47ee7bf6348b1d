"""From requests to actions: what waits here, what is under way, and who is answered when (sections 6.2, 7).

Requests that come while own actions are under way are made into one run, with one clock and one record: the
more there is to do, the less each costs.
"""

from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from semcast.replication.actions import ASKED, Asked, Run, read_asked
from semcast.replication.ids import Creator

Cut = tuple[tuple[Creator, int], ...]
"""What a client saw of actions without a place: the last one of each creator."""

STRICT, QUEUED = "strict", "queued"


class Wish(msgspec.Struct, frozen=True, gc=False):
    """A request that waits to become an action."""

    action: bytes
    level: str = STRICT
    ticket: int | None = None
    seen: Cut = ()


class Owed(msgspec.Struct, frozen=True, gc=False):
    """An answer that an own action is waited for."""

    creator: Creator
    index: int
    wish: Wish
    request: Asked | None


class Creation:
    """The requests of one server."""

    def __init__(self, most: int, run_bytes: int, *, watched: bool = False) -> None:
        self._most = most
        self._watched = watched  # also what nobody waits for is followed, for the history
        self._run_bytes = run_bytes
        self._wishes: deque[Wish] = deque()
        self._inherited: list[Owed] = []
        """Actions of an earlier epoch: on the disk as soon as this one is."""
        self._queued: deque[Owed] = deque()
        """Answered once they are on the disk here."""
        self._strict: dict[Creator, deque[Owed]] = {}
        """Answered once their place is. Those of an earlier epoch may get theirs later than newer ones."""
        self._places: deque[tuple[Run, int]] = deque()  # own runs that have a place, and which
        self.blocked = False
        """Somebody was told to wait."""

    def __len__(self) -> int:
        return len(self._wishes)

    @property
    def room(self) -> int:
        """How many more requests may wait."""
        return self._most - len(self._wishes)

    def add(self, wishes: Sequence[Wish]) -> None:
        """Behind all others, in every state (slip 9)."""
        self._wishes += wishes

    def adopt(self, former: "Creation") -> None:
        """What waited at the same server before it came back from outside."""
        self._wishes += former._wishes
        self.blocked = former.blocked
        self._inherited = [*former._inherited, *former._queued]
        self._strict, self._places = former._strict, former._places

    def take(self, refuse: Callable[[Wish], bool]) -> list[Wish]:
        """The wishes of the next run; those that are refused are answered by whoever refuses."""
        taken: list[Wish] = []
        room, wishes = self._run_bytes, self._wishes
        while wishes:
            wish = wishes.popleft()
            if wish.seen and refuse(wish):
                continue
            room -= len(wish.action)
            if room < 0 and taken:
                wishes.appendleft(wish)
                break
            taken.append(wish)
        return taken

    def made(self, creator: Creator, first: int, wishes: Sequence[Wish]) -> None:
        """They are actions now, from this index on."""
        for index, wish in enumerate(wishes, first):
            if wish.ticket is not None or self._watched:
                request = read_asked(wish.action) if wish.action[0] == ASKED else None
                owed = Owed(creator, index, wish, request)
                if wish.level == QUEUED:
                    self._queued.append(owed)
                else:
                    self._strict.setdefault(creator, deque()).append(owed)

    def durable(self, own: int) -> list[Owed]:
        """Own actions up to this one are on the disk: who is answered."""
        inherited, self._inherited = self._inherited, []
        return [*inherited, *_upto(self._queued, own)]

    def place(self, run: Run, position: int) -> None:
        """Own actions have their place."""
        if run.creator in self._strict:
            self._places.append((run, position))

    def overtaken(self, runs: Sequence[Run]) -> list[Owed]:
        """Own runs have places that are not known here: who waits for them."""
        return [owed for run in runs if run.creator in self._strict for owed in self._pop(run)]

    def _pop(self, run: Run) -> list[Owed]:
        waiting = self._strict[run.creator]
        found = [owed for owed in waiting if run.first <= owed.index <= run.last]
        self._strict[run.creator] = deque(owed for owed in waiting if owed not in found)
        return found

    def placed(self, line: int) -> list[tuple[Owed, int]]:
        """Places up to a line are on the disk: who is answered, with the place of the action."""
        found: list[tuple[Owed, int]] = []
        places = self._places
        while places and places[0][1] + len(places[0][0].actions) - 1 <= line:
            run, position = places.popleft()
            waiting = self._strict.get(run.creator)
            if waiting is None:
                continue
            due = _upto(waiting, run.last)
            found += [(owed, position + owed.index - run.first) for owed in due]
            if not waiting:
                del self._strict[run.creator]
        return found


def _upto(owed: "deque[Owed]", last: int) -> list[Owed]:
    found = []
    while owed and owed[0].index <= last:
        found.append(owed.popleft())
    return found
