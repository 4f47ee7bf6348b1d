"""What a history says about servers, put together once for all checkers.

A server is followed across its restarts by its store. A green action *counts* if its process did not crash,
or had it on its disk, or answered from it: then it stands for ever.
"""

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

from semcast.core.annotations import Item
from semcast.core.ids import MemberId, Nanos
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.replication.kinds import (
    COLOUR,
    DURABLE,
    GREEN,
    GROUP,
    GUEST,
    INSTALL,
    PUT_BACK,
    REPLY,
    REQUEST,
    SNAPSHOT,
    STORE,
    WHOLE,
)

FOREVER = 1 << 62
ANSWERS = ("strict", "queued")
"""Levels of replies about actions; the others are about reads."""

Action = tuple[MemberId, int]
"""Who made it, and its index."""


class GreenPlace(NamedTuple):
    """An action that is green somewhere."""

    action: Action
    event: Event


def text_of(event: Event) -> str:
    """The text of a row; none where it has none."""
    return event.annotation.item if isinstance(event.annotation, Item) else ""


class Life:
    """A server from one start to its end.

    Args:
        process: who it is.
        events: what it did.
    """

    def __init__(self, process: MemberId, events: list[Event]) -> None:
        self.process = process
        self.events = events
        start = next(event for event in events if event.kind is STORE)
        assert start.members is not None
        self.server = start.members[0]
        self.creator = MemberId(process.name, start.seq)
        """Who its actions are by."""
        self.began = start.at
        self.recovered, self.recovered_primary = start.order or 0, start.view or 0
        self.crashed = any(event.kind is Kind.CRASH for event in events)
        self.left = any(event.kind is Kind.LEFT for event in events)
        self.greens = [
            (event.order, event) for event in events if event.kind is COLOUR and event.level == GREEN
        ]
        self.snapshots = [event for event in events if event.kind is SNAPSHOT]
        self.installs = [event for event in events if event.kind is INSTALL]
        self.put_back = any(event.kind is PUT_BACK for event in events)
        """Whether its disk was put back to an old copy in the end."""
        self._synced = [event for event in events if event.kind is DURABLE]
        answered = [event.order or 0 for event in events if event.kind is REPLY and event.level == "strict"]
        self._answered = max(answered, default=0)
        self.durable = self._durable("order")
        self.durable_primary = self._durable("view")
        self.following: Life | None = None
        """The next one of the same store."""
        self.rolled_back = False
        """Whether its disk has less than it had before: an old copy was put back."""
        self.given_up = FOREVER
        """Greens behind this position count only where others have them: an operator made the others go on
        without this server, or put its disk back."""
        self.given_up_at: Nanos = 0
        """When an operator made the others go on without it."""

    def _durable(self, column: str) -> int:
        return max((getattr(event, column) or 0 for event in self._synced), default=0)

    @cached_property
    def _disk(self) -> tuple[list[Nanos], list[int]]:
        """The times of its syncs, and the line that the disk had after each."""
        synced = sorted(self._synced, key=lambda event: event.at)
        lines = accumulate((event.order or 0 for event in synced), max)
        return [event.at for event in synced], list(lines)

    def on_disk(self, at: Nanos) -> int:
        """The line that the disk has at this time, by the syncs of this life."""
        times, lines = self._disk
        done = bisect_right(times, at)
        return lines[done - 1] if done else 0

    def has_lost(self, earlier: "list[Life]") -> bool:
        """Whether it lacks what its disk had in lives before the disk was put back."""
        last = max((at for at, life in enumerate(earlier) if life.put_back), default=-1)
        return any(
            life.durable > self.recovered or life.durable_primary > self.recovered_primary
            for life in earlier[: last + 1]
        )

    @property
    def counts_upto(self) -> int:
        """Greens up to here stand for ever."""
        if not self.crashed:
            return self.given_up
        after = 0 if self.following is None else self.following.recovered
        return min(self.given_up, max(self.recovered, self.durable, after, self._answered))

    @property
    def installs_upto(self) -> int:
        """Primaries up to this one stand for ever."""
        if not self.crashed:
            return FOREVER
        after = 0 if self.following is None else self.following.recovered_primary
        return max(self.durable_primary, after)

    def stands(self, install: Event) -> bool:
        """Whether a primary stands for ever. One that an operator gave up, with all who had it, does not."""
        lost = install.at <= self.given_up_at and (install.order or 0) > self.given_up
        return (install.view or 0) <= self.installs_upto and not lost

    def steps(self) -> Iterator[tuple[int, GreenPlace | None]]:
        """The same with snapshots, which have a position and no action."""
        jumps = list(self.snapshots)
        for position, place in self.places():
            while jumps and jumps[0].index < place.event.index:
                yield jumps.pop(0).order or 0, None
            yield position, place
        for jump in jumps:
            yield jump.order or 0, None

    def places(self) -> Iterator[tuple[int, GreenPlace]]:
        """Positions and actions, one by one."""
        for first, event in self.greens:
            assert event.sender is not None
            assert first is not None
            for step in range(event.count):
                yield first + step, GreenPlace((event.sender, event.seq + step), event)


class Ledger:
    """All servers of a run."""

    def __init__(self, history: History) -> None:
        self.quiesced = history.info.quiesced
        self.lives = [
            Life(process, list(history.of(process)))
            for process in history.processes
            if any(event.kind is STORE for event in history.of(process))
        ]
        self.cut_off = frozenset(life.creator for life in self.lives if life.process in history.info.cut_off)
        """Creators whose recordings end before they did."""
        self.lives.sort(key=lambda life: (life.began, life.process))
        self.by_server: dict[MemberId, list[Life]] = {}
        before: dict[str, list[Life]] = {}
        for life in self.lives:
            earlier = self.by_server.setdefault(life.server, [])
            named = before.setdefault(life.process.name, [])
            if earlier:
                earlier[-1].following = life
                # The folder may have been that of another store when an old copy of this one was put there.
                earlier[-1].put_back = any(each.put_back for each in named[named.index(earlier[-1]) :])
                life.rolled_back = life.has_lost(earlier)
            earlier.append(life)
            named.append(life)
        self._given_up = self._gone_without()
        self.forgotten = frozenset(self._given_up)
        """Servers that an operator gave up."""
        for life in self.lives:
            whole = self._given_up.get(life.server)
            given_up = FOREVER if whole is None else whole.order or 0
            life.given_up = min(given_up, self._kept_by_disk(life))
            life.given_up_at = 0 if whole is None else whole.at
        self.order: dict[int, GreenPlace] = {}
        """The global order, as far as it counts: whoever was first to say."""
        self.positions: dict[Action, int] = {}
        for life in self.lives:
            upto = life.counts_upto
            for position, place in life.places():
                if position <= upto:
                    self.order.setdefault(position, place)
                    self.positions.setdefault(place.action, position)
        self.requests: dict[Action, Event] = {}
        for event in history.events:
            if event.kind is REQUEST and event.sender is not None:
                for index in range(event.seq, event.seq + event.count):
                    self.requests[event.sender, index] = event

    def _kept_by_disk(self, life: Life) -> int:
        """What a disk had that was put back later is gone; where others have it, it counts by these."""
        lives = self.by_server[life.server]
        later = lives[lives.index(life) :]
        return min((after.recovered for before, after in pairwise(later) if before.put_back), default=FOREVER)

    def _gone_without(self) -> dict[MemberId, Event]:
        """Servers that an operator gave up, each with the first primary without it.

        They were in a primary before, and are not of the group any more. Behind the position of that
        primary the order is another.
        """
        found: dict[MemberId, Event] = {}
        installs = [(life, install) for life in self.lives for install in life.installs]
        for life, install in installs:
            if text_of(install) != WHOLE:
                continue
            rest = next(each for each in life.events if each.kind is GROUP and each.index > install.index)
            before = [each for _, each in installs if (each.view or 0) < (install.view or 0)]
            for server in {server for each in before for server in installed(each)}:
                if server not in (rest.members or ()):
                    other = found.setdefault(server, install)
                    if (install.order or 0) < (other.order or 0):
                        found[server] = install
        return found

    def alive(self) -> list[Life]:
        """The servers that are there at the end."""
        return [
            lives[-1]
            for lives in self.by_server.values()
            if not lives[-1].crashed and not lives[-1].left and lives[-1].creator not in self.cut_off
        ]

    def dead(self) -> list[MemberId]:
        """Stores that are lost, or have lost something: what was only there is gone."""
        return [
            server
            for server, lives in self.by_server.items()
            if server not in self.forgotten and (lives[-1].crashed or any(each.put_back for each in lives))
        ]

    def life_at(self, server: MemberId, at: int) -> Life | None:
        """The life of a server at a moment."""
        found = [life for life in self.by_server.get(server, ()) if life.began <= at]
        return found[-1] if found else None

    def client_of(self, action: Action) -> MemberId | None:
        """The client and number that asked for an action, if one did."""
        event = self.requests.get(action)
        return None if event is None or not event.members else event.members[0]


def taking_part(install: Event) -> list[tuple[MemberId, int | None]]:
    """Who was there at an installation, each with its weight; None for a guest."""
    assert install.members is not None
    assert install.level is not None
    weights = [None if weight == GUEST else int(weight) for weight in install.level.split()]
    return list(zip(install.members, weights, strict=True))


def installed(install: Event) -> dict[MemberId, int]:
    """The servers of the primary, with their weights."""
    return {server: weight for server, weight in taking_part(install) if weight is not None}


_ledgers: WeakKeyDictionary[History, Ledger] = WeakKeyDictionary()


def ledger_of(history: History) -> Ledger:
    """The ledger of a history, made at the first call."""
    ledger = _ledgers.get(history)
    if ledger is None:
        ledger = _ledgers[history] = Ledger(history)
    return ledger
