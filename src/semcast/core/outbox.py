"""What a protocol wants from the world: frames out, timers, events up."""

import enum
from collections.abc import Sequence

import msgspec

from semcast.core.events import Event
from semcast.core.ids import MemberId, Nanos


class Frame(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of everything that travels between protocol objects. The types are in `semcast.wire`."""


class Timer(enum.Enum):
    """Base of each protocol's closed set of timers."""

    __hash__ = object.__hash__  # there is one of each: much quicker than by its name


class Reach(enum.Enum):
    """How far a frame goes that is not for one member."""

    ANYBODY = "anybody"
    """To every other member, and wherever strangers may hear it."""


class Run(msgspec.Struct, frozen=True, gc=False):
    """Several records."""

    records: Sequence[bytes]


class Sync(msgspec.Struct, frozen=True, gc=False):
    """All records before it shall outlive a crash; `on_synced` with its ticket says that they do."""

    ticket: int


class Anew(msgspec.Struct, frozen=True, gc=False):
    """The records before it are of no use any more once those after it are synced."""


class Trim(msgspec.Struct, frozen=True, gc=False):
    """The records before a position are of no use any more once those before it in this list are synced."""

    before: int


Write = bytes | Run | Sync | Anew | Trim
"""One step of what a stack wants from its disk: records, or what shall be done about them."""

Dest = MemberId | tuple[MemberId, ...] | Reach | None
"""One member, several, anybody, or, with None, every other member."""


class Outbox:
    """Filled by a protocol during one input, drained by the driver after it.

    A driver makes one call into the protocol, then acts on `writes`, `timers`, `events` and `sends` and
    clears them. Nothing re-enters.
    """

    __slots__ = ("events", "sends", "timers", "writes")

    def __init__(self) -> None:
        self.sends: list[tuple[Dest, Frame]] = []
        self.timers: list[tuple[Timer, Nanos | None]] = []
        self.events: list[Event] = []
        self.writes: list[Write] = []

    def send(self, dest: MemberId, frame: Frame) -> None:
        """Send to one member."""
        self.sends.append((dest, frame))

    def multicast(self, frame: Frame) -> None:
        """Send to every other member."""
        self.sends.append((None, frame))

    def announce(self, frame: Frame) -> None:
        """Send to every other member, and to those who are not known yet."""
        self.sends.append((Reach.ANYBODY, frame))

    def set_timer(self, timer: Timer, at: Nanos) -> None:
        """Ask for `on_timer(timer)` at `at`; replaces an earlier request for the same timer."""
        self.timers.append((timer, at))

    def cancel_timer(self, timer: Timer) -> None:
        """Withdraw the request, if there is one."""
        self.timers.append((timer, None))

    def deliver(self, event: Event) -> None:
        """Tell the application something that is not a message."""
        self.events.append(event)

    # Storage. Nothing blocks: a protocol keeps back whatever depends on a record until that is synced.
    # The position of a record is the number of records that were appended before it, by all incarnations.

    def append(self, record: bytes) -> None:
        """Write a record after the others. It may be lost in a crash until it is synced."""
        self.writes.append(record)

    def append_all(self, records: Sequence[bytes]) -> None:
        """Write several records: as `append` for each, but paid for once. They must not change any more."""
        self.writes.append(Run(records))

    def sync(self, ticket: int) -> None:
        """Ask for `on_synced(ticket)` once every record so far outlives a crash."""
        self.writes.append(Sync(ticket))

    def begin_anew(self) -> None:
        """What is appended from here on replaces all records before it, once a later `sync` is done.

        After a crash before that, `recover` is given those before it, and after them what survived.
        """
        self.writes.append(Anew())

    def trim(self, before: int) -> None:
        """The records before this position are of no use any more, once a later `sync` is done.

        A disk gives up whole files only: `recover` may be given some of them all the same.
        """
        self.writes.append(Trim(before))
